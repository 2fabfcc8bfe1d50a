// Logs: a rank's independent writes until they become chunks. Format in doc/format.md.
//
// A log belongs to the process that created it and is worth nothing without that process: there is
// no commit protocol and no checksum for each write. Offsets are never used twice, not even after
// clear(): a reader who comes too late finds out instead of reading other bytes. The space
// is used again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "base/types.h"
#include "store/lease_table.h"
#include "store/segment.h"

namespace dedup::store {

// Bytes of a log where they are, in memory when it is made. Should the kernel need that memory for
// something else meanwhile, it reads them again when they are looked at: a disk that fails then
// ends the process (SIGBUS).
class LogView {
 public:
  // `memory` holds `bytes`.
  LogView(std::shared_ptr<const void> memory, std::span<const std::byte> bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<const void> memory_;
  std::span<const std::byte> bytes_;
};

// A log that is a segment, too, under the same number: chunks that stand in it need not be written
// again. append() takes those that it has in the memory of the log's newest view() and that have no
// header, where they are (kArgument for others); nothing else of the log is the segment's. For the
// thread of the LogWriter.
class AdoptedLog : public SegmentWriter {
 public:
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  // Where these bytes of memory stand in the segment, if they are in that memory.
  virtual std::uint64_t place_of(std::span<const std::byte> data) const = 0;
};

// Appends to one log. One thread, one process.
class LogWriter {
 public:
  virtual ~LogWriter() = default;

  // When it returns, readers in other processes see the data. Returns the offset of the data in the
  // log. After a failure the log is as it was before: appending may be tried again, when space was
  // freed.
  virtual Result<std::uint64_t> append(std::span<const std::byte> data) = 0;
  // What was appended and not cleared, to be looked at before clear() and only then. kIo if it
  // cannot be had that way: a LogReader tells why.
  virtual Result<LogView> view(std::uint64_t offset, std::uint64_t bytes) = 0;
  // Takes the space for the table of leases. Once.
  virtual Result<std::unique_ptr<LeaseTable>> make_leases() = 0;
  // Drops all content, once it has become chunks. Frees its space, or keeps it for what comes. If
  // chunks stand in it (AdoptedLog) the rest is freed and it is no log any more: has_ended().
  enum class Space { kFree, kKeep };
  virtual Status clear(Space space) = 0;
  // Nothing may be called any more but number().
  virtual bool has_ended() const { return false; }
  // Makes the content durable.
  virtual Status flush() = 0;
  virtual std::uint64_t number() const = 0;
  virtual std::uint64_t size() const = 0;  // bytes appended since creation or clear()
};

// Reads a log that some process of this node writes. Safe for several threads at once.
class LogReader {
 public:
  virtual ~LogReader() = default;

  // Fills `out`. kNotFound if the writer has cleared that part of the log: its content is in chunks
  // by now, ask for it anew. kCorrupt if it was never written.
  virtual Status read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

}  // namespace dedup::store
