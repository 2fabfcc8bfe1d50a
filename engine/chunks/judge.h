// What a rank puts into the reduction, what it tells its leader, and what becomes of each chunk
// once the dealing is known. Pure: whoever has the same input comes to the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/chunks/first_error.h"
#include "engine/chunks/known_chunks.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/node_chunks.h"
#include "plan/deal.h"
#include "plan/question.h"
#include "plan/reduce.h"

namespace dedup::engine {

// The part of its node's chunks that a rank decides about.
struct NodeView {
  NodeIndex node = kNoNode;
  NodeChunks chunks;
  KnownChunks known;
  plan::Redundancy wanted;  // of each chunk
};

// Chunks outside the result that a rank decides about; see plan::NodeState.
struct ChunkTotals {
  std::uint64_t new_chunks = 0;
  std::uint64_t new_bytes = 0;
  std::uint64_t held_chunks = 0;
  std::uint64_t held_bytes = 0;

  bool operator==(const ChunkTotals&) const = default;
};

// Which part of their node's (plan::Dealer::parts) the chunks outside the result are in, new ones
// and held ones apart: those that a rank decides about come behind those of its node's lower ranks,
// and are asked for in the order in which judge() and then judge_own() come to them.
class PartTurns {
 public:
  // Totals of the node's lower ranks, and of all its ranks.
  PartTurns(const plan::Dealer& dealer, NodeIndex node, const ChunkTotals& before,
            const ChunkTotals& all);

  std::uint32_t next(bool held);

 private:
  struct Turn {
    std::uint64_t next = 0;
    std::uint64_t all = 0;
    std::uint32_t parts = 1;
  };

  Turn new_;
  Turn held_;
};

// What goes into the reduction; finished. `outside`: chunks that this rank keeps without it.
plan::FrequentSet frequent_part(const NodeView& view, std::uint32_t outside,
                                const plan::ReduceLimits& limits);

// What is asked of a view's chunks, where they are counted.
struct AskedChunks {
  plan::Questions questions;
  std::vector<std::uint32_t> chunks;  // by question
};
// Of those whose names are in a lane (Lanes).
AskedChunks ask_about(const NodeView& view, int lane, int lanes);
// Adds the chunks that somebody is designated for.
void take_answers(const NodeView& view, const AskedChunks& asked, const plan::Answers& answers,
                  plan::FrequentSet& result);

// Of the node's chunks that are not in `result`, and of `mine` that are single.
ChunkTotals total(const NodeView& view, const NamedChunks& mine, const plan::FrequentSet& result);

// By chunk of `view`. kInternal if the dealing has no room for a chunk.
NodeVerdicts judge(const NodeView& view, const plan::FrequentSet& result,
                   const plan::Dealer& dealer, PartTurns& turns, FirstError& error);

// What becomes of this rank's chunks. 4 bytes a chunk.
struct Verdicts {
  Numbered<Verdict> list;
  std::vector<std::uint32_t> of;  // by chunk

  const Verdict& operator[](std::size_t chunk) const { return list[of[chunk]]; }
};

// `answers`: for each chunk that is not single, in order, the number of a verdict in `list`; if
// there are none, such chunks are neither kept nor sent. Single ones are judged here: `node` has
// them alone.
Verdicts judge_own(const NamedChunks& mine, NodeIndex node, const plan::Dealer& dealer,
                   const std::vector<std::uint32_t>& answers, Numbered<Verdict> list,
                   PartTurns& turns, FirstError& error);

}  // namespace dedup::engine
