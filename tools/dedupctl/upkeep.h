// How dedupctl changes what the stores have of a file, with jobs running: the file is locked on all
// stores that are here, or on none; what they have is looked at again; and only if that still is
// what was decided upon, something goes, before any lock does. A job that begins, commits, closes
// or dies at any point of that loses nothing. A store that is not here is never taken for one that
// has nothing.
//
// No MPI but behind Ranks, and nothing is printed: test/simulation runs the same code.
#pragma once

#include <functional>
#include <memory>

#include "base/ranks.h"
#include "base/status.h"
#include "store/store.h"
#include "tools/dedupctl/catalog.h"
#include "tools/dedupctl/stores.h"

namespace dedup::ctl {

// Who works together, and on what.
struct Upkeep {
  const Ranks& ranks;
  LocalStores local;
  Catalog catalog;  // on rank 0

  bool is_root() const { return ranks.is_root(); }
};

struct Change {
  // What must not go on meanwhile: writing, or also reading a generation.
  enum class Hold { kWriting, kWhole };

  Id128 identity;
  Hold hold = Hold::kWhole;
  // On rank 0, with what the stores have now: an error leaves everything as it is.
  std::function<Status(const FileRow& now)> decide;
  // On each store here that has something of the file; with its lock.
  std::function<Status(LocalStore& local, std::unique_ptr<store::Store::Lock> lock)> apply;
};

// Collective. kFileInUse, naming the node, if a job has the file open.
Status carry_out(Upkeep& upkeep, const Change& change);

// For decide(): what was found is not what is there any more.
Status changed_meanwhile();

}  // namespace dedup::ctl
