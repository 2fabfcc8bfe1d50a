// A segment as a file.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "store/fs.h"
#include "store/segment.h"

namespace dedup::store {

// Of where a segment is, if there are other places for the next one. Asked now and then.
struct SegmentRoom {
  std::function<std::uint64_t()> left;  // bytes
  std::uint64_t most = 0;               // that a segment is to have there
  std::function<void()> ran_out;        // its file system took no more, whatever it had said
};

class SegmentFileWriter final : public SegmentWriter {
 public:
  // Creates the file `path` exclusively (directories must be there). Without `room` there is no
  // other place, and what cannot be written is a failure.
  static Result<std::unique_ptr<SegmentFileWriter>> create(const std::string& path,
                                                           const Id128& identity,
                                                           std::uint64_t number,
                                                           const SegmentRoom& room = {});
  ~SegmentFileWriter() override;

  using SegmentWriter::append;
  Status append(std::span<const SegmentChunk> chunks, std::span<ChunkLocation> locations) override;
  Status write_out() override;
  Status flush() override;
  Status begin_flush(Worker& worker) override;
  Status end_flush() override;
  void start_write_back(Worker& worker) override;
  bool is_full() const override;
  std::uint64_t number() const override;
  std::uint64_t size() const override;

 private:
  struct Private;
  explicit SegmentFileWriter(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

class SegmentFileReader final : public SegmentReader {
 public:
  static Result<std::unique_ptr<SegmentFileReader>> open(const std::string& path);
  static Result<std::unique_ptr<SegmentFileReader>> of(fs::File file);
  ~SegmentFileReader() override;

  Status read_run(std::span<const ChunkLocation> locations,
                  std::span<const Fingerprint> fingerprints,
                  std::span<const std::span<std::byte>> outs,
                  std::span<ChunkSeal> seals = {}) const override;
  std::size_t read_following(std::uint64_t offset, std::span<const Fingerprint> fingerprints,
                             std::span<const std::span<std::byte>> outs,
                             std::span<ChunkSeal> seals = {}) const override;
  std::optional<ChunkGroup> group_at(std::uint64_t offset, const Fingerprint& first,
                                     std::uint32_t length) const override;

  // Walks the whole segment from the start; calls visit(fingerprint, location) for every chunk that
  // is sound. kCorrupt where a chunk is cut off or its length cannot be: nothing after it can be
  // found. Of a segment that was a log only an index knows what is in it: none is visited. For
  // checking and for tests.
  using Visit = std::function<void(const Fingerprint&, const ChunkLocation&)>;
  Status scan(const Visit& visit) const;

 private:
  struct Private;
  explicit SegmentFileReader(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// The checksum in the header of a chunk; see Store::spoil_chunk.
using HeaderChecksum = std::array<std::byte, 8>;
// Inverts it, and returns what it was; if `only` is given, only where it is that.
Result<HeaderChecksum> spoil_chunk(const std::string& path, const ChunkLocation& location,
                                   const std::optional<HeaderChecksum>& only = std::nullopt);

}  // namespace dedup::store
