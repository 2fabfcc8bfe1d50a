#include "engine/chunks/judge.h"

#include <limits>

namespace dedup::engine {
namespace {

void note_undealt(FirstError& error) {
  error.note({Code::kInternal, "a chunk could not be dealt although the dealing was feasible"});
}

Verdict judge_frequent(NodeIndex node, const plan::FrequentSet& result,
                       const plan::FrequentSet::Element& element, const plan::Dealer& dealer,
                       FirstError& error) {
  plan::Dealer::Deal deal;
  const auto designated = result.designated(element);
  if (!dealer.deal(designated, element.fingerprint.prefix(), deal)) note_undealt(error);
  Verdict verdict{false, {}, std::move(deal.placement)};
  for (const plan::Designated& d : designated) {
    if (d.node != node) continue;
    verdict.keep = dealer.stores(d, verdict.placement);
  }
  for (const plan::Dealer::Copy& copy : deal.copies) {
    if (copy.from == node) verdict.targets.push_back(copy.to);
  }
  return verdict;
}

// Of chunks that no other node has, as far as the result says. Many that follow each other have one
// verdict.
class UniqueVerdicts {
 public:
  // All must outlive it.
  UniqueVerdicts(NodeIndex node, const plan::Dealer& dealer, PartTurns& turns,
                 Numbered<Verdict>& list, FirstError& error)
      : node_(node), dealer_(dealer), turns_(turns), list_(list), error_(error) {}

  // The number of the next one's.
  std::uint32_t next(bool held) {
    const std::uint32_t part = turns_.next(held);
    Last& last = last_[held ? 1 : 0];
    if (last.part != part) last = {part, list_.number(judge(held, part))};
    return last.number;
  }

 private:
  struct Last {
    std::uint32_t part = 0xffffffff;  // none
    std::uint32_t number = 0;
  };

  Verdict judge(bool held, std::uint32_t part) const {
    plan::Dealer::Deal deal;
    if (!dealer_.deal_unique(node_, held, part, deal)) note_undealt(error_);
    Verdict verdict{!held && dealer_.keeps(node_), {}, std::move(deal.placement)};
    for (const plan::Dealer::Copy& copy : deal.copies) verdict.targets.push_back(copy.to);
    return verdict;
  }

  NodeIndex node_;
  const plan::Dealer& dealer_;
  PartTurns& turns_;
  Numbered<Verdict>& list_;
  FirstError& error_;
  Last last_[2];
};

// Of a chunk outside the result: whether it stays where it is.
bool is_settled(const NodeView& view, std::uint32_t chunk) {
  const KnownChunks& known = view.known;
  return known.is_settled(chunk) ||
         (known.is_held(chunk) && known.placement(chunk).redundancy() >= view.wanted);
}

// A chunk that stays where it is whatever other nodes have: nobody who does not hold it can have
// one of its name.
bool needs_nobody(const NodeView& view, std::uint32_t chunk) {
  return is_single(view.chunks[chunk].fingerprint) && is_settled(view, chunk);
}

}  // namespace

PartTurns::PartTurns(const plan::Dealer& dealer, NodeIndex node, const ChunkTotals& before,
                     const ChunkTotals& all)
    : new_{before.new_chunks, all.new_chunks, dealer.parts(node, all.new_chunks)},
      held_{before.held_chunks, all.held_chunks, dealer.parts(node, all.held_chunks)} {}

// More than were told of have no part; that they are not what was announced is found when they are
// numbered.
std::uint32_t PartTurns::next(bool held) {
  Turn& turn = held ? held_ : new_;
  if (turn.next >= turn.all) return 0;
  return plan::Dealer::part_of(turn.next++, turn.all, turn.parts);
}

plan::FrequentSet frequent_part(const NodeView& view, std::uint32_t outside,
                                const plan::ReduceLimits& limits) {
  plan::FrequentSet part;
  part.reserve(view.chunks.size(), view.chunks.size());
  const NodeSet none;
  for (std::uint32_t c = 0; c < view.chunks.size(); ++c) {
    if (view.known.is_settled(c) || needs_nobody(view, c)) continue;
    const bool held = view.known.is_held(c);
    part.add(view.chunks[c].fingerprint, view.chunks[c].length, view.chunks.ranks(c), view.node,
             held, held ? view.known.placement(c).nodes() : none);
  }
  part.add_outside(view.node, outside);
  part.finish(limits);
  return part;
}

AskedChunks ask_about(const NodeView& view, int lane, int lanes) {
  AskedChunks asked;
  plan::Gathering gathering(0, std::numeric_limits<std::uint64_t>::max());
  gathering.reserve(view.chunks.size() / static_cast<std::uint32_t>(lanes));
  std::vector<std::uint32_t> added;
  for (std::uint32_t c = 0; c < view.chunks.size(); ++c) {
    const Fingerprint& name = view.chunks[c].fingerprint;
    if (lanes > 1 && Lanes::of(name, lanes) != lane) continue;
    if (view.known.is_settled(c) || needs_nobody(view, c)) continue;
    const bool held = view.known.is_held(c);
    gathering.add(name, view.node, held ? &view.known.placement(c).nodes() : nullptr);
    added.push_back(c);
  }
  plan::Gathering::Together together = std::move(gathering).finish();
  asked.questions = std::move(together.questions);
  asked.chunks.resize(added.size());
  for (std::size_t i = 0; i < added.size(); ++i) asked.chunks[together.places[i]] = added[i];
  return asked;
}

void take_answers(const NodeView& view, const AskedChunks& asked, const plan::Answers& answers,
                  plan::FrequentSet& result) {
  result.reserve(answers.size(), answers.designated());
  for (std::size_t i = 0; i < asked.chunks.size(); ++i) {
    const std::uint32_t c = asked.chunks[i];
    if (answers[i].empty()) continue;
    result.add_designated(view.chunks[c].fingerprint, view.chunks[c].length, view.chunks.ranks(c),
                          answers[i]);
  }
}

ChunkTotals total(const NodeView& view, const NamedChunks& mine, const plan::FrequentSet& result) {
  ChunkTotals sum;
  for (std::uint32_t c = 0; c < view.chunks.size(); ++c) {
    if (view.known.is_settled(c) || result.find(view.chunks[c].fingerprint) != nullptr) continue;
    if (view.known.is_new(c)) {
      ++sum.new_chunks;
      sum.new_bytes += view.chunks[c].length;
    } else if (!is_settled(view, c)) {
      ++sum.held_chunks;
      sum.held_bytes += view.chunks[c].length;
    }
  }
  for (std::uint32_t i = 0; i < mine.size(); ++i) {
    if (!mine.is_single(i)) continue;
    ++sum.new_chunks;
    sum.new_bytes += mine.length(i);
  }
  return sum;
}

NodeVerdicts judge(const NodeView& view, const plan::FrequentSet& result,
                   const plan::Dealer& dealer, PartTurns& turns, FirstError& error) {
  NodeVerdicts verdicts;
  verdicts.of.reserve(view.chunks.size());
  UniqueVerdicts unique(view.node, dealer, turns, verdicts.list, error);
  for (std::uint32_t c = 0; c < view.chunks.size(); ++c) {
    const auto* element =
        view.known.is_settled(c) ? nullptr : result.find(view.chunks[c].fingerprint);
    if (element != nullptr) {
      verdicts.of.push_back(
          verdicts.list.number(judge_frequent(view.node, result, *element, dealer, error)));
    } else if (is_settled(view, c)) {
      verdicts.of.push_back(verdicts.list.number(Verdict{false, {}, view.known.placement(c)}));
    } else {
      verdicts.of.push_back(unique.next(view.known.is_held(c)));
    }
  }
  return verdicts;
}

Verdicts judge_own(const NamedChunks& mine, NodeIndex node, const plan::Dealer& dealer,
                   const std::vector<std::uint32_t>& answers, Numbered<Verdict> list,
                   PartTurns& turns, FirstError& error) {
  Verdicts verdicts{std::move(list), {}};
  verdicts.of.reserve(mine.size());
  UniqueVerdicts unique(node, dealer, turns, verdicts.list, error);
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < mine.size(); ++i) {
    if (!mine.is_single(i)) {
      verdicts.of.push_back(next < answers.size() ? answers[next]
                                                  : verdicts.list.number(Verdict{}));
      ++next;
      continue;
    }
    verdicts.of.push_back(unique.next(false));
  }
  return verdicts;
}

}  // namespace dedup::engine
