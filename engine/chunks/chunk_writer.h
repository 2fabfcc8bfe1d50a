// Storing chunks: in this node's store by this rank, and on nodes that the communicator does not
// reach by their services.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/numbered.h"
#include "base/status.h"
#include "base/types.h"
#include "base/worker.h"
#include "plan/placement.h"
#include "service/client.h"
#include "store/segment.h"

namespace dedup::engine {

struct StoredChunk {
  Fingerprint fingerprint;
  std::span<const std::byte> data;
  std::uint32_t placement = 0;  // number of one in ChunkWriter::placements()
  bool single = false;          // for store(): its name is new, nobody else has it or is storing it
  std::uint64_t checksum = 0;  // for store() and claim(): of the data when they were cut, fast_hash
};

// Makes a segment in this node's store, of a number that the service gave.
using CreateSegment =
    std::function<Result<std::unique_ptr<store::SegmentWriter>>(std::uint64_t number)>;

// Appends chunks to segments of this rank. What a dump stores counts only once settle() has
// registered it: until then others who ask for chunks that are not single are told that somebody is
// storing them. One thread at a time; nothing here communicates but with services.
class ChunkWriter {
 public:
  // `flush`: whether finish_segments() will be asked to flush; the disk may begin before.
  ChunkWriter(service::Client& client, CreateSegment create_segment, const Id128& identity,
              bool flush)
      : client_(client),
        create_segment_(std::move(create_segment)),
        identity_(identity),
        flush_(flush) {}
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;
  ~ChunkWriter() { new_segment(); }

  Numbered<plan::Placement>& placements() { return placements_; }

  // Appends the single ones, and, after claiming them at this node's service, those of the others
  // that nobody else has or is storing.
  Status store(std::span<const StoredChunk> chunks);
  // The same in two steps, so that something else can be done in between: claims, and then appends
  // about so many bytes of what was claimed, as often as there is some left. Data stay where they
  // are until then. Nothing is left when the next are claimed.
  Status claim(std::span<const StoredChunk> chunks);
  Status store_claimed(std::uint64_t bytes);
  bool has_claimed() const { return !unstored_.empty(); }
  // Hands what was appended to the kernel. Before settle(true).
  Status write_out();
  // Ends a dump: registers what was appended, or gives the claims back. 48 bytes a chunk are kept
  // until then.
  Status settle(bool succeeded);
  // Bytes of chunks appended since the last settle().
  std::uint64_t bytes_stored() const { return bytes_stored_; }

  // Asks another node's service to store chunks; split into messages of about service::kPayload.
  Status put(NodeIndex node, std::span<const StoredChunk> chunks);

  // See Dumper.
  Status finish_segments(bool flush);
  Status wait_for_flush();
  void new_segment();

 private:
  // A chunk that is this writer's to store, and where it was appended. 48 bytes.
  struct Taken {
    Fingerprint fingerprint;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
    std::uint32_t placement = 0;
  };

  // Those that are this writer's to store.
  Result<std::vector<StoredChunk>> granted(std::span<const StoredChunk> chunks);
  // At most store::kRunChunks.
  Status append(std::span<const StoredChunk> run);
  // Until so many bytes of `rest` are appended, or all; leaves what is not.
  Status append_some(std::span<const StoredChunk>& rest, std::uint64_t bytes);
  // Waits for the flushes that were begun. Segments for which they failed are forgotten, here and
  // at the service.
  Status end_flushes();
  void keep_names(std::span<const StoredChunk> chunks);
  Status open_segment();
  Status register_all();
  Status release_all();

  service::Client& client_;
  CreateSegment create_segment_;
  Id128 identity_;
  bool flush_;
  Numbered<plan::Placement> placements_;
  std::deque<Taken> taken_;  // grows without being moved
  // Which segment holds taken_ from a number on.
  std::vector<std::pair<std::size_t, std::uint64_t>> segment_from_;
  std::vector<StoredChunk> claimed_;
  std::span<const StoredChunk> unstored_;  // the last of claimed_
  std::uint64_t bytes_stored_ = 0;
  Worker disk_;  // waits for the disk in this rank's place
  std::unique_ptr<store::SegmentWriter> segment_;
  std::vector<std::unique_ptr<store::SegmentWriter>> full_;  // written out, not flushed yet
};

}  // namespace dedup::engine
