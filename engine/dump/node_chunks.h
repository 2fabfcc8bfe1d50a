// Deduplication among the ranks of a node.
//
// The fingerprints of a node are divided among its ranks, so that none has to hold them all: each
// rank gets its part of every other's, decides about it, and answers. Two exchanges on the node's
// communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "engine/dump/verdict.h"
#include "engine/mpi/topology.h"
#include "plan/cut.h"

namespace dedup::engine {

// As it travels between ranks of a node. 36 bytes.
struct ChunkRecord {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
};

// Which of a node's ranks decides about a chunk.
inline int decider(const Fingerprint& fingerprint, int ranks) {
  std::uint64_t spread;
  // Not the prefix: that deals copies.
  std::memcpy(&spread, fingerprint.bytes.data() + 8, sizeof spread);
  return static_cast<int>(spread % static_cast<std::uint64_t>(ranks));
}

// This rank's part of its node's chunks, each once.
class NodeChunks {
 public:
  // Collective over node_comm. `mine`: this rank's chunks, each once.
  static NodeChunks gather(const Topology& topology, std::vector<ChunkRecord> mine);

  std::uint32_t size() const { return static_cast<std::uint32_t>(chunks_.size()); }
  const ChunkRecord& operator[](std::uint32_t i) const { return records_[chunks_[i].record]; }
  std::uint32_t ranks(std::uint32_t i) const {
    return chunks_[i].ranks;
  }  // of the node that have it

  // Whether what this rank received is what the others sent. If not, nothing may come of it; it
  // takes part in what is collective all the same.
  bool is_sound() const { return sound_; }

  // Collective over node_comm. verdicts[verdict_of[i]]: what the one rank that is chosen for chunk
  // i is told; the choice goes round. Returns the number, in `mine_verdicts`, for each of this
  // rank's chunks in the order in which gather() got them. kIo if something else than was sent
  // arrived here.
  Result<std::vector<std::uint32_t>> answer(const Numbered<Verdict>& verdicts,
                                            const std::vector<std::uint32_t>& verdict_of,
                                            Numbered<Verdict>& mine_verdicts) &&;

 private:
  struct Chunk {
    std::uint32_t record = 0;  // the first of its records
    std::uint32_t ranks = 0;
  };

  explicit NodeChunks(const Topology& topology) : topology_(&topology) {}

  const Topology* topology_;
  bool sound_ = true;
  std::vector<std::uint64_t> sent_;      // records to each rank of the node
  std::vector<std::uint64_t> received_;  // records from each
  std::vector<std::uint32_t> sent_as_;   // place among the sent records of each of this rank's
  std::vector<ChunkRecord> records_;     // received, by rank
  std::vector<std::uint32_t> chunk_of_;  // for each record
  std::vector<Chunk> chunks_;
};

}  // namespace dedup::engine
