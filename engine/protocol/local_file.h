// One process's share of an open file: its log of independent writes, and the segments and logs of
// its own node's store that it reads from. Shared by all handles of the process on the file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/own_leases.h"
#include "engine/protocol/settled.h"
#include "service/client.h"
#include "service/neighbours.h"
#include "store/log.h"
#include "store/segment.h"
#include "store/store.h"

namespace dedup::engine {

// Bytes of the file that are in this process's log.
struct LoggedRun {
  std::uint64_t file_offset = 0;
  std::uint64_t length = 0;
  std::uint64_t log_offset = 0;
  std::uint64_t end() const { return file_offset + length; }
};

// Thread-safe.
class LocalFile {
 public:
  // The process's object for `identity`; made if there is none. It goes with its last user.
  static Result<std::shared_ptr<LocalFile>> get(service::Client& client, const Id128& identity,
                                                const StorePlace& place);

  // Appends data for file bytes that follow each other from `file_offset`; the log is made when
  // first needed. Returns where it stands.
  struct Appended {
    std::uint64_t log = 0;  // the log's number
    std::uint64_t offset = 0;
  };
  Result<Appended> append(std::span<const std::byte> data);
  // Remembers what was appended, so that a commit can make chunks of it. Runs that continue the one
  // before are joined: 24 bytes for each that does not.
  void remember(const LoggedRun& run);

  // Held by an independent write from its first byte in the log until the block homes know of it.
  std::mutex& writing() { return writing_; }
  OwnLeases& leases() { return leases_; }  // while writing() is held
  Result<std::unique_ptr<store::LeaseTable>> make_leases();

  // What is logged by now, newest writes winning, sorted and disjoint; runs whose file bytes are
  // adjacent stay separate if they are not adjacent in the log. While writing() is held.
  std::vector<LoggedRun> seal();
  bool has_logged() const;
  std::uint64_t log_size() const;  // bytes in the log, overwritten ones too
  // The log's number; only once something was appended.
  std::uint64_t log_number() const;
  // All that was sealed is chunks now: empties the log, unless there is more in it since. Its
  // offsets are never used again, so that nobody who still looks for the old bytes finds other
  // ones. While writing() is held.
  Status discard_sealed(store::LogWriter::Space space);

  // Makes the log a segment, too: see store::Store::adopt_log(). Null if that cannot be.
  std::unique_ptr<store::AdoptedLog> adopt_log();
  // See LogWriter::view(): of what was sealed.
  Result<store::LogView> view_log(std::uint64_t offset, std::uint64_t bytes);

  // Reading this node's store. kNotFound if the file is gone (a commit made something else of it).
  Status read_log(std::uint64_t number, std::uint64_t offset, std::span<std::byte> out);
  Result<std::shared_ptr<const store::SegmentReader>> segment(std::uint64_t number);
  Result<std::uint64_t> segment_size(std::uint64_t number);  // bytes; kNotFound
  // Of a generation, or of the donor's as this file has it.
  Result<std::unique_ptr<store::IndexReader>> index(const Id128& generation);
  // A segment to append to, of a number that the service gave.
  Result<std::unique_ptr<store::SegmentWriter>> create_segment(std::uint64_t number,
                                                               store::SegmentUse use);
  bool has_tiers() const;
  // The same of other nodes of this host.
  service::Neighbours& neighbours() { return neighbours_; }
  // What this process knows as long as nobody can write.
  Settled& settled() { return settled_; }
  // A commit may have removed segments: forget what is open.
  void forget_segments();

  const StorePlace& store_place() const { return place_; }
  ~LocalFile();

 private:
  LocalFile(service::Client& client, const Id128& identity, StorePlace place);

  service::Client* client_;
  Id128 identity_;
  StorePlace place_;
  std::unique_ptr<store::Store> store_;  // while mutex_ is held

  std::mutex writing_;  // before mutex_
  OwnLeases leases_;

  mutable std::mutex mutex_;
  std::unique_ptr<store::LogWriter> log_;
  std::uint64_t log_number_ = 0;
  std::vector<LoggedRun> runs_;  // in the order of writing
  std::size_t sealed_ = 0;       // of them

  service::Neighbours neighbours_;
  Settled settled_;
};

}  // namespace dedup::engine
