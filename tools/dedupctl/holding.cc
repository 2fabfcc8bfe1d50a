#include "tools/dedupctl/holding.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "tools/dedupctl/decode.h"
#include "tools/dedupctl/some_of_nodes.h"

namespace dedup::ctl {
namespace {

constexpr std::uint64_t kNobody = std::numeric_limits<std::int64_t>::max();

// A piece of a chunk in a batch of blocks, and what is found of the chunk.
struct Held {
  const Piece* piece = nullptr;
  const plan::Placement* placement = nullptr;  // by the recipe
  std::uint64_t copies = 0;
  std::uint64_t first = kNobody;  // position of the first store that has it
  plan::Redundancy kept{};

  NamedChunk chunk() const { return {piece->fingerprint, piece->chunk_length}; }
};

class Measuring {
 public:
  Measuring(Generation& generation, plan::Redundancy wanted)
      : generation_(generation),
        holding_{plan::Tally(generation.record().size, wanted)},
        counts_(4 * (generation.record().stores.size() + 1)) {
    for (const Part& part : generation.parts()) {
      counted_.emplace_back(part.index() == nullptr ? 0 : part.index()->size());
    }
  }

  Result<Holding> run() {
    DEDUP_TRY(generation_.walk([&](std::span<const NumberedBlock> blocks) -> Status {
      take(blocks);
      return Status::ok();
    }));
    for (const std::uint32_t s : generation_.lost_shards()) {
      holding_.tally.add_unknown_blocks(s, generation_.record().shards.size());
    }
    generation_.ranks().sum(counts_);
    for (std::size_t i = 0; i < counts_.size(); i += 4) {
      holding_.of_copies.push_back({counts_[i], counts_[i + 1]});
      holding_.in_stripes.push_back({counts_[i + 2], counts_[i + 3]});
    }
    return std::move(holding_);
  }

 private:
  void take(std::span<const NumberedBlock> blocks) {
    holding_.stripes.look_at(generation_, blocks);
    std::vector<Held> batch;
    for (const NumberedBlock& block : blocks) {
      for (const Piece& piece : block.block.pieces) {
        if (!piece.is_zero()) batch.push_back({&piece, &block.placement_of(piece)});
      }
    }
    look_up(batch);
    judge(batch);
    try_to_make(batch);
    for (const Held& held : batch) count(held);
    add_to_tally(blocks, batch);
  }

  void look_up(std::vector<Held>& batch) {
    std::vector<std::uint64_t> sums(2 * batch.size());
    const std::span<std::uint64_t> copies = std::span(sums).first(batch.size());
    SomeOfNodes on{std::span(sums).subspan(copies.size())};
    std::vector<std::uint64_t> first(batch.size(), kNobody);
    for (const Part& part : generation_.parts()) {
      std::optional<std::uint64_t> place;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        const bool again = i > 0 && batch[i].chunk() == batch[i - 1].chunk();
        if (!again) place = part.place_of(batch[i].chunk());
        if (!place) continue;
        ++copies[i];
        on.add(i, batch[i].placement->nodes(), part.position());
        first[i] = std::min<std::uint64_t>(first[i], part.position());
      }
    }
    generation_.ranks().sum(sums);
    generation_.ranks().least(first);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].copies = copies[i];
      batch[i].first = first[i];
      const bool is_as_before =
          i > 0 && on.is_as_before(i) && batch[i].placement == batch[i - 1].placement;
      if (is_as_before || batch[i].placement->stripe() != nullptr) continue;
      add_fatal_set(plan::Placement::copies_on(on.of(i, batch[i].placement->nodes())));
    }
  }

  // A copy may be somewhere else than the recipe says.
  void judge(std::vector<Held>& batch) {
    const plan::Placement* last = nullptr;
    plan::Placement left;
    for (Held& held : batch) {
      held.kept = plan::Redundancy::copies(static_cast<std::uint32_t>(held.copies));
      if (held.placement->stripe() == nullptr) continue;
      if (std::exchange(last, held.placement) != held.placement) {
        left = holding_.stripes.left_of(*held.placement);
        add_fatal_set(left);
      }
      held.kept = std::max(held.kept, left.redundancy());
    }
  }

  // A part of a stripe that is not whole may still have what it takes for some of the chunks.
  void try_to_make(std::vector<Held>& batch) {
    std::vector<Held*> tried;
    for (Held& held : batch) {
      if (held.kept.is_lost() && held.placement->stripe() != nullptr) tried.push_back(&held);
    }
    const auto unit_of = [](const Held* held) {
      return LostChunk{held->chunk(), held->placement->stripe()}.unit();
    };
    std::stable_sort(tried.begin(), tried.end(),
                     [&](const Held* a, const Held* b) { return unit_of(a) < unit_of(b); });
    std::vector<LostChunk> lost;
    for (const Held* held : tried) lost.push_back({held->chunk(), held->placement->stripe()});
    const std::vector<int> makers = make_chunks(generation_, lost, [](std::size_t, Bytes) {});
    for (std::size_t i = 0; i < tried.size(); ++i) {
      if (makers[i] >= 0) tried[i]->kept = plan::Redundancy::copies(1);
    }
  }

  // Each chunk once: by the first store that has it, or if none does, by a rank that its name says.
  void count(const Held& held) {
    if (held.kept.is_lost()) return;
    bool is_mine = false;
    for (std::size_t p = 0; p < counted_.size() && held.first != kNobody; ++p) {
      const Part& part = generation_.parts()[p];
      if (part.position() != held.first) continue;
      const auto place = part.place_of(held.chunk());
      is_mine = place && !counted_[p][*place];
      if (is_mine) counted_[p][*place] = true;
    }
    if (held.first == kNobody) {
      const auto ranks = static_cast<std::uint64_t>(generation_.ranks().size());
      is_mine = held.piece->fingerprint.prefix() % ranks ==
                    static_cast<std::uint64_t>(generation_.ranks().rank()) &&
                nowhere_.insert(held.piece->fingerprint).second;
    }
    if (!is_mine) return;
    const bool in_stripe = held.placement->stripe() != nullptr;
    const std::size_t at = 4 * std::size_t{held.kept.as_copies()} + (in_stripe ? 2 : 0);
    ++counts_[at];
    counts_[at + 1] += held.piece->chunk_length;
  }

  void add_to_tally(std::span<const NumberedBlock> blocks, const std::vector<Held>& batch) {
    auto next = batch.begin();
    for (const NumberedBlock& block : blocks) {
      std::vector<plan::Redundancy> kept;
      for (const Piece& piece : block.block.pieces) {
        kept.push_back(piece.is_zero() ? plan::Redundancy() : (next++)->kept);
      }
      holding_.tally.add(block.number, block.block, kept);
    }
  }

  void add_fatal_set(const plan::Placement& placement) {
    if (!placement.redundancy().is_lost()) holding_.fatal_sets.insert(plan::fatal_set(placement));
  }

  Generation& generation_;
  Holding holding_;
  std::vector<std::uint64_t> counts_;        // by copies: chunks and bytes; in stripes the same
  std::vector<std::vector<bool>> counted_;   // of each part's index
  std::unordered_set<Fingerprint> nowhere_;  // in no index, and counted
};

}  // namespace

ChunkCount Holding::unique() const {
  ChunkCount sum;
  for (const auto* counts : {&of_copies, &in_stripes}) {
    for (const ChunkCount& count : *counts) {
      sum.chunks += count.chunks;
      sum.bytes += count.bytes;
    }
  }
  return sum;
}

Result<Holding> measure(Generation& generation, plan::Redundancy wanted) {
  return Measuring(generation, wanted).run();
}

plan::LossOdds loss_odds(const Generation& generation, const Holding& holding) {
  // Those that are here have numbers of their own: others are lost already.
  NodeIndex here = 0;
  std::vector<NodeIndex> numbers;
  for (std::size_t i = 0; i < generation.record().stores.size(); ++i) {
    const bool is_here = generation.rank_of(static_cast<NodeIndex>(i)) >= 0;
    numbers.push_back(is_here ? here++ : kNoNode);
  }
  std::set<plan::FatalSet> fatal = holding.fatal_sets;
  for (std::size_t s = 0; s < generation.shard_placements().size(); ++s) {
    const plan::Placement& placement = generation.shard_placements()[s];
    if (!placement.redundancy().is_lost() && generation.record().is_shard_of_use(s)) {
      fatal.insert(plan::fatal_set(placement));
    }
  }
  // What has something is here.
  std::vector<plan::FatalSet> sets;
  for (plan::FatalSet set : fatal) {
    for (NodeIndex& node : set.nodes) node = numbers[node];
    sets.push_back(std::move(set));
  }
  return {here, std::move(sets)};
}

}  // namespace dedup::ctl
