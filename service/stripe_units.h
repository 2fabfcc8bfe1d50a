// What one node gives to the stripes of an attempt at a commit: units of the chunks that are not
// kept well enough, in the order in which they lie in its store, so that each is read in one piece.
//
// Memory: 36 bytes a chunk of a unit, 64 while units are made; some 150 for one that the last
// commit has. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "plan/stripe_content.h"
#include "service/file_chunks.h"
#include "service/messages/store_node.h"

namespace dedup::service {

class StripeUnits {
 public:
  // `chunks` must outlive it.
  StripeUnits(FileChunks& chunks, const Id128& identity) : chunks_(chunks), identity_(identity) {}

  // See ListShares.
  Result<std::vector<UnitShare>> shares(const ListShares& request);
  // See MakeUnits; this node is `self` of the job's `nodes`. Again: makes them anew.
  Result<MakeUnitsReply> make_units(const MakeUnits& request, NodeIndex self, NodeIndex nodes);
  // kArgument if there is no such one.
  Result<plan::UnitChunks> unit(std::uint32_t number) const;
  // See JoinStripes: stores the tables of these units. kArgument if there is no such one.
  Status join(const JoinStripes& request);
  // See FindPlacements.
  FindPlacementsReply placements_of(std::span<const Fingerprint> fingerprints);

  // The chunks of this node that a part of a stripe names, which it has: none if it is not the
  // table of a unit of data. kCorrupt if it cannot be read.
  Result<plan::UnitChunks> read_table(const NamedChunk& part) const;

 private:
  class Choice;
  struct Candidate {
    NamedChunk chunk;
    store::ChunkLocation location;
  };
  Status add_committed(const MakeUnits& request, const Choice& is_chosen,
                       std::vector<Candidate>& candidates);
  void cut(std::vector<Candidate> candidates, unsigned data);

  FileChunks& chunks_;
  Id128 identity_;
  // Of the committed generation; those that name a store this job does not have may do so.
  plan::Placement committed_placement(const store::IndexEntry& entry) const;

  std::vector<NodeIndex> stores_;  // of the committed generation's record, as nodes
  std::vector<plan::UnitChunks> units_;
  std::unordered_map<Fingerprint, plan::Placement> committed_;  // of joined units
};

}  // namespace dedup::service
