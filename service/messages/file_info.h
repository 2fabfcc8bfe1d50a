// What is known of an open file all over the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "store/real_path.h"

namespace dedup::service {

// A place where chunks of a file are, or were: entry i < job nodes is node i's store, later entries
// are stores of the committed generation that no node of this job has.
struct StoreRef {
  Id128 uuid;
  std::string node;  // name, for messages
};

// Whether a file is written back (dedup_flush) when its last handle is closed, and whether that
// close waits for it.
enum class WriteBack : std::uint8_t { kNone, kInBackground, kAtClose };
constexpr WriteBack last_of(WriteBack) {
  return WriteBack::kAtClose;
}

// What every rank that has a file open knows of it.
struct FileInfo {
  Id128 identity;
  std::string path;
  std::string store_template;    // hint dedup_store, %n not yet replaced
  Bytes record;                  // CommitRecord of the committed base; empty: never committed
  std::vector<StoreRef> stores;  // what every placement of this file refers to
  std::uint64_t size = 0;
  bool writable = false;  // the job holds the stores' locks for writing
  Id128 session;          // of this job's writing (LineageEntry); zero if not writable
  Id128 key;              // of the chunks' names (CommitRecord); zero if not writable
  // What its blocks' homes go by, as long as the job has it open (homes.h): the key of its newest
  // generation, or its donor's, so that files which share have the same homes; its identity, if
  // there is none or that is small.
  Id128 home_seed;
  // What stands at the real path. kNone: the nodes share no file system there, and the stores find
  // the file by its path. kPlain: the file's committed content, until the first commit; or, if
  // there is a base, what that is cached as (store/cached.h).
  enum class RealPath : std::uint8_t { kNone, kPlaceholder, kPlain };
  friend constexpr RealPath last_of(RealPath) { return RealPath::kPlain; }
  RealPath real_path = RealPath::kNone;
  store::Stamp plain;                       // kPlain: of that file when it was opened
  WriteBack write_back = WriteBack::kNone;  // the most that a handle which may write wants
  bool deleted = false;                     // MPI_File_delete was called since
  bool has_writer = false;                  // a handle that may write has been opened since
  // CommitRecord of another file's generation, of which this one, when it is new, has everything
  // too: what is in it already is neither stored nor sent. Until the first commit.
  Bytes donor;
  // Which state this is, counted by the file home: any of the above but the size has changed if it
  // is larger. 0: not from the home.
  std::uint64_t version = 0;

  bool possible() const { return stores.size() <= kNoNode; }
};

}  // namespace dedup::service
