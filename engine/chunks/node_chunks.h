// Deduplication among the ranks of a node, as far as one rank does it by itself.
//
// The fingerprints of a node are divided among its ranks, so that none has to hold them all: each
// rank gets its part of every other's, decides about it, and answers. engine/dump/node_exchange.h
// sends them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/numbered.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/verdict.h"

namespace dedup::engine {

// How names are divided among a node's ranks: into lanes, of which there are as many on all nodes,
// as many as the node with most ranks has. A node with fewer has ranks with several lanes.
struct Lanes {
  int count = 1;
  int ranks = 1;  // of this node

  static int of(const Fingerprint& fingerprint, int lanes) {
    std::uint64_t spread;
    // Not the prefix: that deals copies.
    std::memcpy(&spread, fingerprint.bytes.data() + 8, sizeof spread);
    return static_cast<int>(spread % static_cast<std::uint64_t>(lanes));
  }
  // Which of the node's ranks decides about a chunk.
  int decider(const Fingerprint& fingerprint) const { return of(fingerprint, count) % ranks; }
};

// A rank's records as they go to the node's ranks, by the rank that decides.
struct DealtRecords {
  Bytes bytes;                        // one message after the other
  std::vector<std::uint64_t> sizes;   // of the messages
  std::vector<std::uint64_t> counts;  // of the records in each
  std::vector<std::uint32_t> place;   // among all that go, of each in the order in which they came
};
DealtRecords deal_records(ChunkRecords mine, const Lanes& lanes);

// What is decided about a rank's part of its node's chunks; equal verdicts are kept once.
struct NodeVerdicts {
  Numbered<Verdict> list;
  std::vector<std::uint32_t> of;  // by chunk
};

// What goes to each rank of the node, one after the other.
struct Answers {
  Bytes bytes;
  std::vector<std::uint64_t> sizes;
};

// This rank's part of its node's chunks, each once. About 64 bytes a record.
class NodeChunks {
 public:
  NodeChunks() = default;
  // `records`: by the rank that they came from; `counts`: how many each rank sent.
  NodeChunks(ChunkRecords records, std::vector<std::uint64_t> counts);
  // Of what the node's ranks sent (DealtRecords); `sizes`: of each one's message. kIo if it cannot
  // be.
  static Result<NodeChunks> read(const Bytes& bytes, const std::vector<std::uint64_t>& sizes);

  std::uint32_t size() const { return static_cast<std::uint32_t>(chunks_.size()); }
  const ChunkRecord& operator[](std::uint32_t i) const { return records_[chunks_[i].record]; }
  // How it is kept, if one of the ranks found it in the node's store; else null.
  const plan::Placement* held(std::uint32_t i) const;
  // How many of the node's ranks have it.
  std::uint32_t ranks(std::uint32_t i) const { return chunks_[i].ranks; }

  // What the node's ranks are told of the chunks that they sent. The one rank that is chosen for a
  // chunk is told the verdict; the choice goes round. The others only learn who holds it.
  Answers answer(const NodeVerdicts& verdicts) &&;

 private:
  struct Chunk {
    std::uint32_t record = 0;  // the first of its records
    std::uint32_t ranks = 0;
    std::uint32_t held = ChunkRecord::kNotHeld;  // number in placements_
  };

  std::vector<ChunkRecord> records_;
  Numbered<plan::Placement> placements_;
  std::vector<std::uint64_t> counts_;
  std::vector<std::uint32_t> chunk_of_;  // for each record
  std::vector<Chunk> chunks_;
};

// Reads what the node's ranks answered to `counts` records each (DealtRecords). Numbers, in
// `verdicts`, in the order in which these were sent. kIo if it cannot be.
Result<std::vector<std::uint32_t>> read_answers(const Bytes& bytes,
                                                const std::vector<std::uint64_t>& counts,
                                                Numbered<Verdict>& verdicts);

}  // namespace dedup::engine
