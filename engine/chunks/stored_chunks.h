// Finds out which of a rank's chunks this node's store has.
//
// Chunks that were single when they were stored have no strong fingerprint, so a new one with the
// same fast hash is compared with them byte by byte. Those of the committed generation a rank finds
// by itself, in its index; of the others, and of what came since the commit, it asks the service,
// which hears of each chunk once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/hasher.h"
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

  // Local. Names those chunks that the committed generation has as single ones. may_have_twin[i]
  // becomes 1 for those others that may be in it under a strong fingerprint, or have another
  // content than a single one with the same fast hash.
  void find_committed(NamedChunks& chunks, std::vector<std::uint8_t>& may_have_twin);

  // Asks the service for all that is not held, 65536 chunks at once. `hashes`: of all chunks. Names
  // those that it has; may_have_twin[i] becomes 1 for open ones that have another content than a
  // single one with the same fast hash.
  Status look(NamedChunks& chunks, std::span<const FastHash> hashes,
              const service::DumpRound& round, std::vector<std::uint8_t>& may_have_twin);

  // Frees the index. The next dump opens it, of whatever is committed then.
  void forget_committed();

 private:
  // A stored chunk that may be the same as chunk number `chunk`.
  struct Candidate {
    std::uint32_t chunk = 0;
    Fingerprint name;
    store::ChunkLocation location;
    std::uint32_t placement = 0;  // number of one where it was found
  };

  const store::IndexReader* index();  // null if there is none
  // In terms of the job's nodes; on none if that cannot be told.
  plan::Placement of_job(plan::Placement committed) const;
  // For each candidate 1 if it has the same bytes; 4 MiB of them are read at once.
  std::vector<std::uint8_t> compare(const NamedChunks& chunks,
                                    std::span<const Candidate> candidates) const;
  Status take_answer(NamedChunks& chunks, std::span<const std::uint32_t> asked,
                     const service::LookReply& reply,
                     std::vector<std::uint8_t>& may_have_twin) const;

  service::Client& client_;
  const OwnStore& store_;
  Id128 identity_;
  OwnIndex index_;
  bool opened_ = false;  // or found to be none
};

}  // namespace dedup::engine
