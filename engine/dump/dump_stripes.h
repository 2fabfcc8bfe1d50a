// Stripes of a round's chunks, made while they are stored: units go to who encodes them from where
// the program has them, so that links and stores are busy at the same time, and nothing is read
// back. What does not fill whole stripes is left to the commit (engine/protocol/striping.h), as is
// whatever could not be made here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/chunks/chunk_writer.h"
#include "engine/chunks/first_error.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/own_units.h"
#include "engine/mpi/topology.h"
#include "engine/protocol/new_stripes.h"
#include "engine/protocol/stripe_maker.h"
#include "hints/hints.h"
#include "plan/stripes.h"
#include "service/client.h"

namespace dedup::engine {

// Of one rank and round. The n-th ranks of a group's nodes make stripes of what they have, if there
// are enough of them: so all ranks of a node send and encode. One thread.
class DumpStripes {
 public:
  struct Round {
    std::uint64_t number = 0;
    std::uint64_t most_bytes = 0;  // that any rank has in it
    plan::StripeShape shape;
  };

  // `round` and `hints` are the same on all ranks. All must outlive it.
  DumpStripes(const Topology& topology, service::Client& client, const Id128& identity,
              const hints::Hints& hints, const Round& round);
  ~DumpStripes();

  // Collective over the ranks that make stripes together. They agree on which, and from now on the
  // verdicts say so. Nothing communicates where no rank can have a whole unit.
  void choose(const NamedChunks& chunks, Verdicts& verdicts, FirstError& error);
  // The same: makes them. `store_some` is called meanwhile: it stores about 1 MiB of what the rank
  // keeps, and returns false once nothing is left. What could not be made is kept as before, by the
  // verdicts and by what `writer` registers. Memory: as StripeMaker::make().
  void make(const std::function<bool()>& store_some, ChunkWriter& writer, FirstError& error);
  const StripeMaker::Figures& figures() const { return figures_; }

 private:
  class LaneRanks;
  bool may_be_made() const;
  std::vector<NodeIndex> partners() const;
  Status join(const std::vector<bool>& made, ChunkWriter& writer);

  const Topology& topology_;
  service::Client& client_;
  Id128 identity_;
  const hints::Hints& hints_;
  Round round_;
  std::unique_ptr<LaneRanks> ranks_;
  std::optional<StripeGroup> group_;
  std::optional<OwnUnits> units_;
  std::uint32_t longest_ = 0;
  std::uint64_t bytes_kept_ = 0;
  std::vector<NewStripe> stripes_;
  StripeMaker::Figures figures_;
};

}  // namespace dedup::engine
