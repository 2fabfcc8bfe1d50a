// What all subcommands share: who works together, what was asked for, and the stores.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/dedupctl/upkeep.h"

namespace dedup::ctl {

// Exit codes; documented in dedupctl(1).
enum ExitCode : int {
  kFine = 0,
  kProblems = 1,  // done, and something is damaged, missing, or held less often than it should be
  kUsage = 2,
  kNoStore = 3,  // a store that should be there cannot be read
  kNoFile = 4,
  kInUse = 5,
  kFailed = 6
};

struct Options {
  std::vector<std::string> stores;  // --store
  bool json = false;
  bool quiet = false;
  bool progress = false;  // bars also where standard error is no terminal
  std::vector<std::string> files;
  std::string first;  // export, import: the arguments as given
  std::string second;
  // Of these: the one on a real file system; the other is in `files`. mount, umount: the directory.
  std::string path;
  std::uint64_t generation = 0;       // export, cat, rm: of the file that is named; 0: not given
  bool generations = false;           // ls: those that are kept, too
  bool prometheus = false;            // stat
  bool all = false;                   // export, rm
  std::vector<std::string> search;    // where moved placeholders may be
  bool force = false;                 // export
  bool incomplete = false;            // export, cat
  bool repair = false;                // check
  bool verify = false;                // heal
  bool accept_loss = false;           // heal, check --repair
  unsigned replication = 0;           // heal, import
  std::string redundancy;             // import
  bool cache = false;                 // import
  std::vector<std::string> nodes;     // rm
  std::optional<std::uint64_t> keep;  // rm: older generations of a file
  std::string older_than;             // rm: as parse_age() takes it; empty: not given
  bool dry_run = false;               // rm
  bool unnamed = false;               // gc
  bool yes = false;                   // gc --unnamed
  bool foreground = false;            // mount
  std::string log;                    // mount: a file; empty: not given
  bool allow_other = false;           // mount
  std::string job;                    // mount: for the processes of this job; empty: not given
  unsigned node_count = 0;            // advise: that write the file; 0: not given
  std::string mtbf;                   // advise: as parse_duration() takes it, like the next two
  std::string write;
  std::string restart;
  std::string interval = "2s";  // top
  std::uint64_t count = 0;      // top: how many looks; 0: until it is ended
  std::string html;             // report: where the page goes; empty: not given
  std::string report;           // advise, report, top: a file with the driver's lines about commits
};

struct Session : Upkeep {
  const Options& options;
  // Collective. Opens the stores, and has what they have now.
  std::function<void()> look_again;

  // What the exit code is if nothing else is wrong.
  ExitCode code_of_stores() const { return catalog.troubles.empty() ? kFine : kNoStore; }
};

// Prints an error (on rank 0) and says which exit code it is.
ExitCode fail(const Session& session, const Status& status);

// The subcommands. Collective; what they return counts on rank 0.
ExitCode ls(Session& session);
ExitCode df(Session& session);
ExitCode stat(Session& session);
ExitCode explain(Session& session);
ExitCode advise(Session& session);
ExitCode top(Session& session);
ExitCode report(Session& session);
ExitCode check(Session& session);
ExitCode export_files(Session& session);
ExitCode cat(Session& session);
ExitCode rm(Session& session);
ExitCode gc(Session& session);
ExitCode heal(Session& session);
ExitCode evict(Session& session);
ExitCode flush(Session& session);
ExitCode import_file(Session& session);

// The subcommands of a process by itself, also in a job.
ExitCode mount(const Options& options);
ExitCode umount(const Options& options);

}  // namespace dedup::ctl
