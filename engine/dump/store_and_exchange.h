// Storing and sending: the stage of a round in which chunks' bytes move.
#pragma once

#include <cstdint>

#include "engine/chunks/chunk_writer.h"
#include "engine/chunks/first_error.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/sends.h"
#include "engine/dump/dump_stripes.h"
#include "engine/dump/exchange.h"
#include "engine/dump/node_plan.h"

namespace dedup::engine {

// The same on all ranks.
struct ExchangeShape {
  std::size_t header_size = 0;  // bytes: CopyHeader::size()
  std::size_t longest = 0;      // bytes of the longest chunk of any rank
  std::uint32_t number = 0;     // of the exchange; different from the one before
  service::DumpRound round;
};

struct Moved {
  std::uint64_t bytes_kept = 0;      // of the chunks that this rank is to keep
  std::uint64_t bytes_received = 0;  // of copies
  double seconds_storing = 0;
};

// Collective. Stores what this rank keeps, while its copies are on their way to other nodes and
// others' copies arrive, which are stored too; or while stripes are made of it. `frequent`: the
// chunks that all nodes have agreed on. A node that has one of these and is sent it stores it so;
// of others each keeps its own.
Moved store_and_exchange(const NamedChunks& chunks, const Verdicts& verdicts, const Sends& sends,
                         const plan::FrequentSet& frequent, const NodePlan& plan,
                         const ExchangeShape& shape, Exchange& exchange, DumpStripes& stripes,
                         ChunkWriter& writer, FirstError& error);

// Local: the copies for nodes that the communicator does not reach, to their services.
void put_to_guests(const NamedChunks& chunks, const Verdicts& verdicts, const Sends& sends,
                   const Topology& topology, ChunkWriter& writer, FirstError& error);

}  // namespace dedup::engine
