// Logs: a rank's independent writes until they become chunks. Format in doc/format.md.
//
// A log belongs to the process that created it and is worth nothing without that process: there is
// no commit protocol and no checksum for each write. Offsets are never used twice, not even after
// clear(): a reader who comes too late finds out instead of reading other bytes. The file's bytes
// are used again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/types.h"
#include "store/fs.h"
#include "store/lease_table.h"

namespace dedup::store {

// Bytes of a log where the kernel has them, in memory when it is made. Should the kernel need that
// memory for something else meanwhile, it reads them again when they are looked at: a disk that
// fails then ends the process (SIGBUS).
class LogView {
 public:
  LogView(std::shared_ptr<const fs::Mapping> mapping, std::span<const std::byte> bytes)
      : mapping_(std::move(mapping)), bytes_(bytes) {}
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<const fs::Mapping> mapping_;
  std::span<const std::byte> bytes_;
};

// Appends to one log. One thread, one process.
class LogWriter {
 public:
  // Creates the file `path` exclusively (directories must be there).
  static Result<std::unique_ptr<LogWriter>> create(const std::string& path, const Id128& identity,
                                                   std::uint64_t number);
  ~LogWriter();

  // When it returns, readers in other processes see the data. Returns the offset of the data in the
  // log. After a failure the log is as it was before: appending may be tried again, when space was
  // freed.
  Result<std::uint64_t> append(std::span<const std::byte> data);
  // What was appended and not cleared, to be looked at before clear() and only then. kIo if it
  // cannot be had that way: a LogReader tells why.
  Result<LogView> view(std::uint64_t offset, std::uint64_t bytes);
  // Takes the space for the table of leases. Once.
  Result<std::unique_ptr<LeaseTable>> make_leases();
  // Drops all content, once it has become chunks. Frees its space, or keeps it for what comes.
  enum class Space { kFree, kKeep };
  Status clear(Space space);
  // Makes the content durable.
  Status flush();
  std::uint64_t number() const;
  std::uint64_t size() const;  // bytes appended since creation or clear()

 private:
  struct Private;
  explicit LogWriter(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// Reads a log that some process of this node writes. Safe for several threads at once.
class LogReader {
 public:
  static Result<std::unique_ptr<LogReader>> open(const std::string& path);
  ~LogReader();

  // Fills `out`. kNotFound if the writer has cleared that part of the log: its content is in chunks
  // by now, ask for it anew. kCorrupt if it was never written. Three system calls.
  Status read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct Private;
  explicit LogReader(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// The table of leases of a log that some process of this node writes, and whose make_leases() has
// succeeded.
Result<std::unique_ptr<LeaseTable>> open_leases(const std::string& log_path);

}  // namespace dedup::store
