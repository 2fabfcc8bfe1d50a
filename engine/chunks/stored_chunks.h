// Finds out which of a rank's chunks this node's store has, by what they are called: no byte of a
// chunk is read.
//
// Those of the committed generation a rank finds by itself, in its index; of the others, and of
// what came since the commit, it asks the service, which hears of each chunk once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/own_store.h"
#include "service/client.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// One thread. Of the dumps of one generation keeps that generation's index: 0.5 bytes for each
// chunk that the node has of it, and 4 MiB.
class StoredChunks {
 public:
  // All must outlive it.
  StoredChunks(service::Client& client, const OwnStore& store, const Id128& identity)
      : client_(client), store_(store), identity_(identity) {}

  // Local. Of open chunks, those that the committed generation has are held, under the names that
  // they have there.
  void find_committed(NamedChunks& chunks);

  // Asks the service for all that is not held, 65536 chunks at once; what it has is held.
  Status look(NamedChunks& chunks, const service::DumpRound& round);

  // Frees the index. The next dump opens it, of whatever is committed then.
  void forget_committed();

 private:
  const store::IndexReader* index();  // null if there is none
  // Whether its segment has that place: it may have been lost.
  bool is_present(const store::IndexEntry& entry);
  // In terms of the job's nodes; on none if that cannot be told.
  plan::Placement of_job(plan::Placement committed) const;
  Status take_answer(NamedChunks& chunks, std::span<const std::uint32_t> asked,
                     const service::LookReply& reply) const;

  service::Client& client_;
  const OwnStore& store_;
  Id128 identity_;
  OwnIndex index_;
  bool opened_ = false;                                             // or found to be none
  std::unordered_map<std::uint64_t, std::uint64_t> segment_sizes_;  // 0: not to be had
};

}  // namespace dedup::engine
