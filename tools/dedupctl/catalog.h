// What the stores of all nodes have, put together on rank 0: which files, which generation of each
// counts, and what is missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/ranks.h"
#include "base/status.h"
#include "plan/placement.h"
#include "store/choose.h"
#include "store/real_path.h"
#include "store/survey.h"
#include "tools/dedupctl/stores.h"

namespace dedup::ctl {

// A store of some rank.
struct StoreRow {
  int rank = 0;
  std::size_t local = 0;  // its place in that rank's LocalStores
  std::string node;
  store::StoreSurvey survey;
};

// A file on one store.
struct FileOnStore {
  std::size_t store = 0;  // its place in Catalog::stores
  store::FileSurvey survey;
};

// What stands at a file's real path.
enum class AtPath {
  kPlaceholder,  // the file's
  kCached,       // the plain file that its newest generation is cached as (store/cached.h)
  kMoved,        // something else or nothing: its placeholder stands elsewhere
  kNothing,      // it was removed, or moved to where it was not looked for
  kOther,        // a plain file, or another file's placeholder: it was replaced
  kNoDirectory,  // perhaps not mounted
  kNotShared,    // the nodes share no file system there: the stores find the file by its path
  kUnreadable
};
std::string_view name_of(AtPath at);

struct FileRow {
  Id128 identity;
  std::string path;             // as it was when it was committed last
  std::vector<FileOnStore> on;  // stores that have something of it
  Status chosen_status;         // kConflict: there are two generations; kNotFound: none
  store::Choice choice;         // if it is ok
  bool deleted = false;         // it is marked so: what is left goes
  AtPath at_path = AtPath::kNotShared;
  std::string at_path_text;  // why it is unreadable
  std::string stands_at;     // of its placeholder, if that was found, or what it is cached as

  bool exists() const { return chosen_status.is_ok() && choice.exists; }
  // Its number; of a kept one, which is a new generation of itself when it is healed, the number
  // that it had.
  std::uint64_t generation() const { return is_kept() ? record().kept_of.number : record().number; }
  // Whether it is a kept generation of another one (store/kept.h).
  bool is_kept() const { return exists() && !record().kept_of.file.is_zero(); }
  const store::CommitRecord& record() const { return choice.record; }
};

// The path that it was committed at; of one that was not, where it was opened; or its identity.
std::string name_of(const FileRow& file);

// How a store of a file's record stands to it.
enum class Standing { kHere, kBehind, kMissing };
std::string_view name_of(Standing standing);

struct Catalog {
  std::vector<StoreRow> stores;
  std::vector<Trouble> troubles;
  std::vector<FileRow> files;       // by path, then identity
  std::vector<std::string> search;  // directories below which moved placeholders are looked for
  bool settles = false;  // what killed jobs had claimed is put first (store/replacement.h)

  const StoreRow* store_of(const Id128& uuid) const;
  // Of each store of the file's record.
  std::vector<Standing> standings(const FileRow& file) const;
  // How well every chunk is kept for certain, going by which stores are there.
  static plan::Redundancy certain(const FileRow& file, const std::vector<Standing>& standings);

  // The file that a user names by its real path, with or without the prefix, or by its identity;
  // with "@7" behind it, or with a `generation`, an older generation. kNoSuchFile, kConflict.
  Result<const FileRow*> find(const std::string& name, std::uint64_t generation = 0) const;
  // Null if no store here has it.
  const FileRow* row_of(const Id128& identity) const;
  // Where the file is: where its placeholder was found, or where it was committed. Of a kept
  // generation: the name that it has there.
  std::string place_of(const FileRow& file) const;
  // Its older generations that its newest record says are kept and that are here, newest first.
  std::vector<const FileRow*> kept_of(const FileRow& file) const;
};

// How far a file is written back (dedup_flush).
struct WrittenBack {
  bool is_begun = false;
  std::uint64_t bytes = 0;  // at its path's file system
  std::string trouble;      // that some writer had
};
WrittenBack written_back(const Catalog& catalog, const FileRow& file);

// Whether what is committed is on as many stores as it should be, as far as can be told at a
// glance; or at its path.
bool is_as_wanted(const FileRow& file, const std::vector<Standing>& standings);

// Collective. Complete on rank 0, empty elsewhere. Of several ranks that have one store, the lowest
// acts for it: the others' `local` loses it. Placeholders that were moved are looked for below the
// directories in `search`, too. `settles`: for who would change something.
Catalog make_catalog(const Ranks& ranks, LocalStores& local, const std::vector<std::string>& search,
                     bool settles = false);

// Collective. What the stores have of one file by now, for who has locked it there; complete on
// rank 0. The catalog's marks of it are brought up to date, but not its files. `perhaps_at`: a path
// at which its placeholder is looked for before it is searched for.
Result<FileRow> look_again(const Ranks& ranks, const LocalStores& local, Catalog& catalog,
                           const Id128& identity, const std::string& perhaps_at = {});

// A file's name without the driver's prefix.
std::string without_prefix(const std::string& name);

// A name as the driver takes it: absolute, links resolved where they lead somewhere.
std::string absolute_path(std::string_view name);

}  // namespace dedup::ctl
