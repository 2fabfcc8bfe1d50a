// One round of a dump: a bounded number of chunks of each rank, from their bytes to their stores.
//
// The round is the order of its stages. Each takes what the ones before it hand on, and knows
// nothing of how they came to it; those that need no MPI are in engine/chunks/. Every stage that
// communicates is taken by all ranks, whatever went wrong on one of them: its error is noted, and
// agreed on at the two points where all learn whether to go on (the dealing, and the end).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/chunk_namer.h"
#include "base/numbered.h"
#include "engine/chunks/chunk_writer.h"
#include "engine/chunks/cut_chunks.h"
#include "engine/chunks/dump_result.h"
#include "engine/chunks/own_store.h"
#include "engine/chunks/stored_chunks.h"
#include "engine/dump/counting.h"
#include "engine/dump/exchange.h"
#include "engine/dump/twins.h"
#include "engine/mpi/topology.h"
#include "engine/protocol/keeping.h"
#include "hints/hints.h"
#include "plan/settled.h"
#include "service/client.h"

namespace dedup::engine {

// What a rank's dumps of a file share, whoever takes part in them.
struct RankDumps {
  RankDumps(service::Client& the_client, OwnStore own_store, const Id128& the_identity,
            const Id128& the_key, const hints::Hints& the_hints)
      : client(the_client),
        store(std::move(own_store)),
        identity(the_identity),
        key(the_key),
        hints(the_hints),
        writer(the_client, store, the_identity, the_hints.fsync == hints::Fsync::kCommit),
        stored(the_client, store, the_identity) {}

  service::Client& client;
  OwnStore store;
  Id128 identity;
  Id128 key;  // of the chunks' names
  const hints::Hints& hints;
  ChunkWriter writer;
  StoredChunks stored;
  SingleNumbers singles;
  std::optional<ChunkNamer> namer;
  UniqueNumbers numbers;
};

// What all rounds of the dumps share that the ranks of one communicator take together.
struct DumpState {
  DumpState(const Topology& the_topology, RankDumps& rank, const Id128& handle)
      : topology(the_topology),
        client(rank.client),
        identity(rank.identity),
        hints(rank.hints),
        keeping(rank.hints, the_topology.job_nodes()),
        writer(rank.writer),
        stored(rank.stored),
        singles(rank.singles),
        namer(rank.namer),
        numbers(rank.numbers),
        round{handle, 0},
        settled(rank.hints.threshold),
        counting(the_topology, rank.hints.threshold),
        twins(the_topology.comm(),
              rank.hints.threshold / static_cast<unsigned>(the_topology.size()) + kTwinsAtLeast) {}

  // Remembered by each rank, however many ranks there are.
  static constexpr std::size_t kTwinsAtLeast = 4096;

  bool deduplicates() const { return hints.mode != hints::Mode::kNone; }
  bool is_collective() const { return hints.mode == hints::Mode::kCollective; }
  bool may_count() const { return is_collective() && hints.reduction == hints::Reduction::kExact; }

  const Topology& topology;
  service::Client& client;
  Id128 identity;
  const hints::Hints& hints;
  const Keeping keeping;
  ChunkWriter& writer;
  StoredChunks& stored;
  SingleNumbers& singles;
  std::optional<ChunkNamer>& namer;
  UniqueNumbers& numbers;
  service::DumpRound round;     // the newest; the same on all ranks
  plan::SettledChunks settled;  // this rank's part of what the tree found
  Counting counting;
  // Whether shared chunks are counted at homes in this round, rather than merged up a tree; and
  // whether homes remember any of this generation. The same on all ranks.
  bool counts = false;
  bool has_counted = false;
  Twins twins;
  std::vector<NodeIndex> order;           // of partners; on leaders
  std::pair<bool, unsigned> ordered_for;  // whether it is a ring, and the size of a group
  std::unique_ptr<Exchange> exchange;
  hints::Exchange exchange_kind = hints::Exchange::kSend;
  std::uint32_t exchanges = 0;  // so far; the same on all ranks
};

// Collective. Takes chunks from `cursor` until there were `most` that are not zeros, and appends
// their pieces to the result, which is not to be moved in memory meanwhile; their placements are
// numbers in `placements`. `longest`: bytes of the longest chunk of any rank. The same code on all
// ranks.
Status dump_round(DumpState& state, RunCursor& cursor, std::uint64_t most, std::size_t longest,
                  Numbered<plan::Placement>& placements, DumpResult& result);

}  // namespace dedup::engine
