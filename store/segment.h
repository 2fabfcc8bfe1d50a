// Segments: chunks, appended one after the other. Format in doc/format.md.
//
// A reader who knows (segment, offset) finds out from what stands there whether it is the chunk it
// looks for and whether it is sound. The name of a chunk that had no twin has its checksum, which
// says both: it stands there as it is, so that many are written and read as one piece of memory.
// Every other chunk stands behind a header of its own (length, fingerprint, XXH3 checksum over both
// and the data). Names and lengths of the former stand in a list before each group of chunks, for
// whoever walks a segment without an index.
//
// Headers and lists begin with the segment's salt, which nobody knows who makes data. So what
// follows a chunk without a header tells what it is: there can be no data that are taken for a
// header, and no header whose bytes are taken for a chunk with the same checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/status.h"
#include "base/types.h"
#include "base/worker.h"

namespace dedup::store {

// What a segment has for a chunk beside its data, at least: a header, or an entry in a group's
// list.
inline constexpr std::uint32_t kChunkHeaderSize = 52;
inline constexpr std::uint32_t kGroupEntrySize = 36;
// And at most: with the whole of a list.
inline constexpr std::uint32_t kMostBesideChunk = 60;

// Chunks written or read at once: few enough that what is read is still in the processor's cache
// when it is checked, and that no group's list is long.
inline constexpr std::size_t kRunChunks = 512;

// Where a chunk is within one store.
struct ChunkLocation {
  std::uint64_t segment = 0;  // its number
  std::uint64_t offset = 0;   // within the segment, of the chunk's header or, without one, its data
  std::uint32_t length = 0;   // of the chunk's data
  auto operator<=>(const ChunkLocation&) const = default;
};

// What to call a segment in a message to people.
std::string segment_text(const Id128& identity, std::uint64_t number);

// The offset behind a chunk, which is the next one's if they are in one group.
std::uint64_t chunk_end(const Fingerprint& fingerprint, const ChunkLocation& location);
// What a chunk of `length` bytes takes in a segment.
std::uint64_t stored_size(const Fingerprint& fingerprint, std::uint32_t length);

// A group of chunks that stand one after the other.
struct ChunkGroup {
  std::uint64_t offset = 0;  // of the first
  std::size_t chunks = 0;    // at least so many
};

struct SegmentChunk {
  Fingerprint fingerprint;
  std::span<const std::byte> data;  // 1 to kMaxChunkSize bytes
};

// Whether it stands behind a header, as all do but single ones, whose names are checksums.
bool has_header(const Fingerprint& fingerprint);

// What a chunk's header has to check its bytes by, and what goes with them where they go. Means
// nothing for a chunk without a header, whose name is its checksum.
struct ChunkSeal {
  std::uint64_t salt = 0;  // of the segment; of a chunk that is in none yet, 0
  std::uint64_t checksum = 0;
  bool operator==(const ChunkSeal&) const = default;
};
// Of a chunk where its bytes are made.
ChunkSeal seal_of(const SegmentChunk& chunk);
// Whether these are the bytes that were sealed, or, without a header, named so.
bool holds(const ChunkSeal& seal, const SegmentChunk& chunk);

class SegmentReader;

// Leave to read one segment, and nothing else, wherever it is and even if it is removed meanwhile.
// It is a value that goes to another process of this host: what it consists of is known to the
// store, and to who carries it there (service/wire.h).
class LentSegment {
 public:
  LentSegment() = default;  // nothing
  explicit LentSegment(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  bool is_there() const { return descriptor_.is_open(); }
  const Descriptor& descriptor() const { return descriptor_; }
  // Takes it. `name`: what to call the segment in messages. kCorrupt if it is none.
  Result<std::shared_ptr<const SegmentReader>> open(std::string name) &&;

 private:
  Descriptor descriptor_;
};

// Appends chunks to one segment. One thread, one process.
class SegmentWriter {
 public:
  virtual ~SegmentWriter() = default;

  // Little at a time is buffered (up to 1 MiB); much goes out by writev, from where it is. After a
  // failure every further call fails with the same status. `locations`: as many as chunks; what is
  // in them after a failure means nothing. kNoSpace with is_full(): no failure; of at most
  // kRunChunks chunks none was appended, and all that were before are as good as they were.
  virtual Status append(std::span<const SegmentChunk> chunks,
                        std::span<ChunkLocation> locations) = 0;
  Result<ChunkLocation> append(const Fingerprint& fingerprint, std::span<const std::byte> data);
  // Hands everything to the kernel: readers in other processes see it.
  virtual Status write_out() = 0;
  // write_out, then fsync. A failed fsync is never tried again: the writer stays failed.
  virtual Status flush() = 0;
  // The same in two steps: begun by write_out here and fsync in `worker`, ended by waiting for it.
  // Harmless to end what was not begun.
  virtual Status begin_flush(Worker& worker) = 0;
  virtual Status end_flush() = 0;
  // `worker` sees to it that what the kernel has is on its way to the disk, once it is much, so
  // that flushing takes less long.
  virtual void start_write_back(Worker& worker) = 0;
  // Where it is there is no room for more, and elsewhere there may be: what comes next goes into
  // another segment.
  virtual bool is_full() const { return false; }
  virtual std::uint64_t number() const = 0;
  // Bytes appended, whatever stands beside the data included.
  virtual std::uint64_t size() const = 0;
};

// Reads chunks of one segment by position. Safe for several threads at once.
class SegmentReader {
 public:
  virtual ~SegmentReader() = default;

  // Reads and checks a whole chunk into `out` (location.length bytes). kCorrupt if it is not
  // `fingerprint`'s chunk or its checksum does not hold, kIo if it cannot be read. In this and the
  // others: `seals` gets the chunks' seals, if it is not empty.
  Status read(const ChunkLocation& location, const Fingerprint& fingerprint,
              std::span<std::byte> out, std::span<ChunkSeal> seals = {}) const;
  // Reads chunks of one segment, those that stand one after the other with one system call.
  virtual Status read_run(std::span<const ChunkLocation> locations,
                          std::span<const Fingerprint> fingerprints,
                          std::span<const std::span<std::byte>> outs,
                          std::span<ChunkSeal> seals = {}) const = 0;
  // For a reader that guesses: reads chunks from `offset` on, as if they stood there one after the
  // other, with one system call for kRunChunks of them. How many do, up to the first that does not
  // or is damaged; what is in the others' `outs` means nothing. A chunk without a header is taken
  // for the one that is wanted if there is data and its checksum is the same: that it is there
  // must follow from its name's number (store/chunk_reader.h).
  virtual std::size_t read_following(std::uint64_t offset,
                                     std::span<const Fingerprint> fingerprints,
                                     std::span<const std::span<std::byte>> outs,
                                     std::span<ChunkSeal> seals = {}) const = 0;
  // For the same: the group whose list stands at `offset`, where the group before has ended, if it
  // begins with this chunk, which has no header.
  virtual std::optional<ChunkGroup> group_at(std::uint64_t offset, const Fingerprint& first,
                                             std::uint32_t length) const = 0;
};

}  // namespace dedup::store
