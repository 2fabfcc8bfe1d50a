#include "tools/dedupctl/decode.h"

#include <algorithm>
#include <utility>

#include "base/fields.h"

namespace dedup::ctl {
namespace {

constexpr std::size_t kBytesAtOnce = std::size_t{16} << 20;

// Chunks [begin, end) of those that are lost, all of one unit.
struct Group {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Making {
  Group group;
  plan::StripeDecoding decoding;
};

// A question to a store, from the rank that decodes, and the answer: nothing if the store does not
// have all of it.
struct Asked {
  std::uint32_t making = 0;
  std::uint32_t question = 0;
  NodeIndex node = kNoNode;
  std::vector<Fingerprint> names;
};
struct Answer {
  std::uint32_t making = 0;
  std::uint32_t question = 0;
  std::vector<Bytes> chunks;
};

std::vector<Group> groups_of(std::span<const LostChunk> lost) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (i == 0 || lost[i].unit() != lost[i - 1].unit()) groups.push_back({i, i});
    groups.back().end = i + 1;
  }
  return groups;
}

std::size_t groups_at_once(std::span<const LostChunk> lost) {
  std::size_t most = 1;
  for (const LostChunk& one : lost) most = std::max(most, one.stripe->nodes.size());
  return std::max<std::size_t>(1, kBytesAtOnce / plan::kUnitBytes / most);
}

plan::StripeDecoding begin_decoding(const Generation& generation,
                                    std::span<const LostChunk> chunks) {
  const plan::StripeUnit& stripe = *chunks.front().stripe;
  std::vector<bool> can_ask;
  for (const NodeIndex node : stripe.nodes) {
    can_ask.push_back(node != kNoNode && generation.rank_of(node) >= 0);
  }
  std::vector<NamedChunk> names;
  for (const LostChunk& one : chunks) names.push_back(one.chunk);
  return {stripe, std::move(can_ask), std::move(names)};
}

// To each rank, and from each.
template <typename T>
std::vector<std::vector<T>> exchange_items(const Ranks& ranks,
                                           const std::vector<std::vector<T>>& to) {
  std::vector<Bytes> messages;
  for (const std::vector<T>& one : to) messages.push_back(encoded(one));
  std::vector<std::vector<T>> from;
  for (const Bytes& message : ranks.exchange(messages)) {
    from.push_back(decoded<std::vector<T>>(message).value_or(std::vector<T>{}));
  }
  return from;
}

// What each rank is asked by this one.
std::vector<std::vector<Asked>> questions_of(const Generation& generation,
                                             const std::vector<Making>& makings) {
  std::vector<std::vector<Asked>> to(static_cast<std::size_t>(generation.ranks().size()));
  for (std::uint32_t m = 0; m < makings.size(); ++m) {
    const auto& questions = makings[m].decoding.questions();
    for (std::uint32_t q = 0; q < questions.size(); ++q) {
      const NodeIndex node = makings[m].decoding.stripe().nodes[questions[q].slot];
      Asked asked{m, q, node, {}};
      for (const NamedChunk& chunk : questions[q].chunks) asked.names.push_back(chunk.fingerprint);
      to[static_cast<std::size_t>(generation.rank_of(node))].push_back(std::move(asked));
    }
  }
  return to;
}

void take_answer(std::vector<Making>& makings, const Answer& answer) {
  if (answer.making >= makings.size()) return;
  plan::StripeDecoding& decoding = makings[answer.making].decoding;
  if (answer.question >= decoding.questions().size()) return;
  const std::vector<NamedChunk>& asked = decoding.questions()[answer.question].chunks;
  if (!std::equal(asked.begin(), asked.end(), answer.chunks.begin(), answer.chunks.end(),
                  [](const NamedChunk& chunk, const Bytes& bytes) {
                    return chunk.length == 0 || chunk.length == bytes.size();
                  })) {
    return;
  }
  const std::vector<std::span<const std::byte>> chunks(answer.chunks.begin(), answer.chunks.end());
  decoding.take(answer.question, chunks);
}

// All ranks' at the same time, step by step.
void decode(Generation& generation, std::vector<Making>& makings) {
  const Ranks& ranks = generation.ranks();
  for (;;) {
    std::uint64_t questions = 0;
    for (const Making& making : makings) questions += making.decoding.questions().size();
    ranks.sum({&questions, 1});
    if (questions == 0) return;
    std::vector<std::vector<Answer>> answers;
    for (const auto& of_rank : exchange_items(ranks, questions_of(generation, makings))) {
      std::vector<Answer>& to = answers.emplace_back();
      for (const Asked& asked : of_rank) {
        Part* const part = generation.part_at(asked.node);
        if (part != nullptr) to.push_back({asked.making, asked.question, part->read(asked.names)});
      }
    }
    for (const auto& of_rank : exchange_items(ranks, answers)) {
      for (const Answer& answer : of_rank) take_answer(makings, answer);
    }
    for (Making& making : makings) {
      if (!making.decoding.questions().empty()) making.decoding.go_on();
    }
  }
}

}  // namespace

std::vector<int> make_chunks(Generation& generation, std::span<const LostChunk> lost,
                             const std::function<void(std::size_t number, Bytes bytes)>& take) {
  if (lost.empty()) return {};
  const Ranks& ranks = generation.ranks();
  const std::vector<Group> groups = groups_of(lost);
  const auto count = static_cast<std::size_t>(ranks.size());
  const std::size_t at_once = count * groups_at_once(lost);
  std::vector<std::uint64_t> makers(lost.size());  // 1 + the rank
  for (std::size_t begin = 0; begin < groups.size(); begin += at_once) {
    std::vector<Making> mine;
    for (std::size_t g = begin; g < std::min(groups.size(), begin + at_once); ++g) {
      if (g % count != static_cast<std::size_t>(ranks.rank())) continue;
      const auto chunks = lost.subspan(groups[g].begin, groups[g].end - groups[g].begin);
      mine.push_back({groups[g], begin_decoding(generation, chunks)});
    }
    decode(generation, mine);
    for (const Making& making : mine) {
      for (std::size_t i = making.group.begin; i < making.group.end; ++i) {
        const auto& bytes = making.decoding.made()[i - making.group.begin];
        if (!bytes) continue;
        makers[i] = static_cast<std::uint64_t>(ranks.rank()) + 1;
        take(i, *bytes);
      }
    }
  }
  ranks.sum(makers);
  std::vector<int> by;
  for (const std::uint64_t maker : makers) by.push_back(static_cast<int>(maker) - 1);
  return by;
}

}  // namespace dedup::ctl
