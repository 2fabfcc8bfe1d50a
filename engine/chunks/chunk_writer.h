// Storing chunks: in this node's store by this rank, and on nodes that the communicator does not
// reach by their services.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/numbered.h"
#include "base/status.h"
#include "base/types.h"
#include "base/worker.h"
#include "engine/chunks/own_store.h"
#include "plan/placement.h"
#include "service/client.h"
#include "service/messages/store_node.h"
#include "store/log.h"
#include "store/segment.h"

namespace dedup::engine {

struct StoredChunk {
  Fingerprint fingerprint;
  std::span<const std::byte> data;
  std::uint32_t placement = 0;  // number of one in ChunkWriter::placements()
  bool single = false;          // for store_copies(): its name is new, nobody else is storing it
  bool yields = false;          // for store_copies(): a rank of this node that has it stores it
  std::uint64_t checksum = 0;   // for keep() and store_copies(): of the data when they were cut
  bool is_second = false;       // for keep(): another node keeps it, too, that wrote it itself
};

// Appends chunks to segments of this rank. What a dump stores counts only once settle() has
// registered it. One thread at a time; nothing here communicates but with services.
class ChunkWriter {
 public:
  // `flush`: whether finish_segments() will be asked to flush; the disk may begin before.
  // `store`, too, must outlive it.
  ChunkWriter(service::Client& client, const OwnStore& store, const Id128& identity, bool flush)
      : client_(client), store_(store), identity_(identity), flush_(flush) {}
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;
  ~ChunkWriter() { new_segment(); }

  Numbered<plan::Placement>& placements() { return placements_; }
  NodeIndex node() const { return client_.self(); }

  // From now on chunks that stand in the log already are stored where they are, until
  // put_away_log().
  void adopt(std::unique_ptr<store::AdoptedLog> log) { log_ = std::move(log); }
  void put_away_log();
  const store::AdoptedLog* log() const { return log_.get(); }

  // Appends what this node is to keep of this rank's chunks: of the node's ranks nobody else does.
  Status keep(std::span<const StoredChunk> chunks);
  // Appends copies that other nodes sent in this round: the single ones, and, after claiming them
  // at this node's service, those of the others that nobody else has or is storing.
  Status store_copies(std::span<const StoredChunk> chunks, const service::DumpRound& round);
  // Hands what was appended to the kernel. Before settle(true).
  Status write_out();
  // Ends a dump: registers what was appended, or gives the claims back. 48 bytes a chunk are kept
  // until then.
  Status settle(bool succeeded);
  // What was kept as `planned` since the last settle() is kept as `really`: so it is registered.
  void correct(const plan::Placement& planned, const plan::Placement& really) {
    corrected_[placements_.number(planned)] = placements_.number(really);
  }
  // Bytes of chunks appended since the last settle().
  std::uint64_t bytes_stored() const { return bytes_stored_; }

  // Asks another node's service to store chunks, in messages of about 1 MiB, of which two are under
  // way: the service stores one while the next is sent.
  Status put(NodeIndex node, std::span<const StoredChunk> chunks);

  // See Dumper.
  Status finish_segments(bool flush);
  Status wait_for_flush();
  void new_segment();

 private:
  // A chunk that was appended, and where; or that was claimed. 48 bytes.
  struct Taken {
    Fingerprint fingerprint;
    std::uint64_t offset = 0;
    std::uint32_t length : 31 = 0;
    std::uint32_t claimed : 1 = 0;
    std::uint32_t placement = 0;
  };
  static_assert(sizeof(Taken) == 48);

  // Those that are this writer's to store.
  Result<std::vector<StoredChunk>> granted(std::span<const StoredChunk> copies,
                                           const service::DumpRound& round);
  // All three take at most store::kRunChunks. `claims`: those that are not single were claimed.
  Status append(std::span<const StoredChunk> run, store::SegmentUse use, bool claims);
  Status write(std::span<const StoredChunk> run, store::SegmentUse use, bool claims);
  // Of those that stand in the log.
  Status leave_in_log(std::span<const StoredChunk> run);
  bool stands_in_log(const StoredChunk& chunk) const;
  // They are in segment `number`.
  void take(std::span<const StoredChunk> run, std::uint64_t number,
            std::span<const store::ChunkLocation> locations, bool claims);
  // Takes from `rest` what is appended.
  Status append_all(std::span<const StoredChunk>& rest, store::SegmentUse use, bool claims);
  // Waits for the flushes that were begun. Segments for which they failed are forgotten, here and
  // at the service.
  Status end_flushes();
  // The one to which that is appended; without tiers all goes into one.
  std::unique_ptr<store::SegmentWriter>& segment_for(store::SegmentUse use) {
    return use == store::SegmentUse::kCopies && store_.has_tiers ? for_copies_ : segment_;
  }
  // No more is appended to it.
  Status put_away(std::unique_ptr<store::SegmentWriter>& segment);
  Status register_all();
  Status release_all();

  service::Client& client_;
  const OwnStore& store_;
  Id128 identity_;
  bool flush_;
  Numbered<plan::Placement> placements_;
  std::map<std::uint32_t, std::uint32_t> corrected_;  // numbers in it
  std::deque<Taken> taken_;                           // grows without being moved
  // Which segment holds taken_ from a number on.
  std::vector<std::pair<std::size_t, std::uint64_t>> segment_from_;
  std::uint64_t bytes_stored_ = 0;
  Worker disk_;  // waits for the disk in this rank's place
  std::unique_ptr<store::SegmentWriter> segment_;
  std::unique_ptr<store::SegmentWriter> for_copies_;
  std::unique_ptr<store::AdoptedLog> log_;
  std::vector<std::unique_ptr<store::SegmentWriter>> full_;  // written out, not flushed yet
};

}  // namespace dedup::engine
