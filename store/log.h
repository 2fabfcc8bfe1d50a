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
  // Drops all content, once it has become chunks. Frees its space, or keeps it for what comes.
  enum class Space { kFree, kKeep };
  virtual Status clear(Space space) = 0;
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
