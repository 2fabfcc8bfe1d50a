// What a store has, at a glance: records and sizes, no chunk and no recipe is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/commit_record.h"
#include "store/shared_record.h"
#include "store/store.h"

namespace dedup::store {

// What a store has noted of a generation and the plain file at its path.
struct WriteBackNotes {
  std::vector<WrittenPart> written;
  std::optional<CachedNote> cached;
};

// A file as one store has it.
struct FileSurvey {
  Id128 identity;
  std::vector<SharedRecord> newest;  // two if they exclude each other; none if nothing is committed
  std::vector<SharedRecord> prepared;
  std::vector<std::string> paths;    // that it was opened at, if nothing is committed
  std::vector<std::string> damaged;  // records that do not hold
  std::vector<Id128> committed;      // all generations
  std::uint64_t unfinished = 0;      // attempts that are not committed here
  std::uint64_t segment_bytes = 0;   // of all segments
  std::uint64_t shared_bytes = 0;    // of those that other files have, too
  std::uint64_t disk_bytes = 0;      // that all of it takes on disk, metadata included
  std::uint64_t live_bytes = 0;      // that the newest generation's index names
  std::uint64_t chunks = 0;          // likewise
  std::string index_damage;          // why the newest generation's index cannot be read, if so
  bool has_index = false;
  std::uint64_t logs = 0;
  std::uint64_t log_bytes = 0;
  bool writing = false;  // some process has it locked, as far as /proc/locks tells
  bool reading = false;
  WriteBackNotes write_back;  // of the newest generation
};

struct Mark {
  Id128 identity;
  std::vector<Id128> stores_left;
};

struct StoreSurvey {
  Id128 uuid;
  std::string directory;
  std::uint64_t free_bytes = 0;
  std::uint64_t file_system_bytes = 0;  // its size
  std::uint64_t disk_bytes = 0;         // that all of the store takes
  std::uint64_t segment_bytes = 0;      // of all segments, each once, however many files have it
  // Of these, what no file's newest generation needs, as far as indexes tell: of a segment that
  // several files have, what the one that needs most of it does not.
  std::uint64_t dead_bytes = 0;
  std::vector<Mark> marks;
  std::vector<FileSurvey> files;
  std::vector<std::string> directories;  // in which files of it were opened
};

// One file, without whether it is locked. What is not here has nothing.
Result<FileSurvey> survey_file(const Store& store, const Id128& identity);

// Takes no lock: what a job changes meanwhile may be seen half-way.
Result<StoreSurvey> survey(const Store& store);

}  // namespace dedup::store
