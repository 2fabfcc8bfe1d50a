// Segments: append-only files of chunks. Format in doc/format.md.
//
// Each chunk is a header (length, fingerprint, XXH3 checksum over both and the data) followed by
// its bytes, so that a reader who knows (segment, offset) finds out from the chunk itself whether
// it is the one it looks for and whether it is sound.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "base/worker.h"

namespace dedup::store {

inline constexpr std::uint32_t kChunkHeaderSize = 44;  // what stands before each chunk's data

// Chunks read or written at once: two parts each, and a buffer, within IOV_MAX.
inline constexpr std::size_t kRunChunks = 511;

// Where a chunk is within one store.
struct ChunkLocation {
  std::uint64_t segment = 0;  // its number
  std::uint64_t offset = 0;   // of the chunk's header within the segment
  std::uint32_t length = 0;   // of the chunk's data
  auto operator<=>(const ChunkLocation&) const = default;
};

struct SegmentChunk {
  Fingerprint fingerprint;
  std::span<const std::byte> data;  // 1 to kMaxChunkSize bytes
};

// Appends chunks to one segment file. One thread, one process.
class SegmentWriter {
 public:
  // Creates the file `path` exclusively (directories must be there).
  static Result<std::unique_ptr<SegmentWriter>> create(const std::string& path,
                                                       const Id128& identity, std::uint64_t number);
  ~SegmentWriter();

  // Little at a time is buffered (up to 1 MiB); much goes out by writev, from where it is. After a
  // failure every further call fails with the same status. The first chunk's location; the others
  // follow it without a gap.
  Result<ChunkLocation> append(std::span<const SegmentChunk> chunks);
  Result<ChunkLocation> append(const Fingerprint& fingerprint, std::span<const std::byte> data);
  // Hands everything to the kernel: readers in other processes see it.
  Status write_out();
  // write_out, then fsync. A failed fsync is never tried again: the writer stays failed.
  Status flush();
  // The same in two steps: begun by write_out here and fsync in `worker`, ended by waiting for it.
  // Harmless to end what was not begun.
  Status begin_flush(Worker& worker);
  Status end_flush();
  // `worker` sees to it that what the kernel has is on its way to the disk, once it is much, so
  // that flushing takes less long.
  void start_write_back(Worker& worker);
  std::uint64_t number() const;
  std::uint64_t size() const;  // bytes appended, headers included

 private:
  struct Private;
  explicit SegmentWriter(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// Reads chunks of one segment file by position. Safe for several threads at once (pread).
class SegmentReader {
 public:
  static Result<std::unique_ptr<SegmentReader>> open(const std::string& path);
  ~SegmentReader();

  // Reads and checks a whole chunk into `out` (location.length bytes). kCorrupt if it is not
  // `fingerprint`'s chunk or its checksum does not hold, kIo if it cannot be read.
  Status read(const ChunkLocation& location, const Fingerprint& fingerprint,
              std::span<std::byte> out) const;
  // Reads the chunks of one segment that stand in [first.offset, last chunk's end) with one system
  // call where they are adjacent: for runs of consecutive chunks. outs[i].size() == length of i.
  Status read_run(std::span<const ChunkLocation> locations,
                  std::span<const Fingerprint> fingerprints,
                  std::span<const std::span<std::byte>> outs) const;
  // For a reader that guesses: reads chunks from `offset` on, as if they stood there one after the
  // other, with one system call for kRunChunks of them. How many do, up to the first that does not
  // or is damaged; what is in the others' `outs` means nothing.
  std::size_t read_following(std::uint64_t offset, std::span<const Fingerprint> fingerprints,
                             std::span<const std::span<std::byte>> outs) const;

  // Walks the whole segment from the start; calls visit(fingerprint, location) for every chunk that
  // is sound. kCorrupt where a chunk is cut off or its length cannot be: nothing after it can be
  // found. For checking and for tests.
  template <typename Visit>
  Status scan(Visit&& visit) const {
    std::uint64_t offset = first_offset();
    Fingerprint fingerprint;
    ChunkLocation location;
    for (;;) {
      DEDUP_ASSIGN(bool more, next(offset, fingerprint, location));
      if (!more) return Status::ok();
      visit(fingerprint, location);
    }
  }

 private:
  struct Private;
  explicit SegmentReader(std::unique_ptr<Private> p);
  std::uint64_t first_offset() const;
  // The chunk at `offset`; moves `offset` past it. False at the end.
  Result<bool> next(std::uint64_t& offset, Fingerprint& fingerprint, ChunkLocation& location) const;
  std::unique_ptr<Private> p_;
};

// Makes no chunk of a sound one whose content is not what it is named after, so that whoever comes
// upon it does not take it: overwrites its checksum. On the disk when this returns. Twice undoes
// it.
Status spoil_chunk(const std::string& path, const ChunkLocation& location);

}  // namespace dedup::store
