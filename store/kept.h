// Older generations of a file that are kept (hint dedup_keep).
//
// Each is a file of its own in the stores, with an identity made of the file's and the generation's
// ids, which shares with the file what both have: so it is found, read, healed and dropped as files
// are, and what it needs stays whatever becomes of the file. The newest record of the file says
// which generations are kept. Until a store has made such a file of a generation, the generation
// stays where it was.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/commit_record.h"
#include "store/store.h"

namespace dedup::store {

// The identity, on every store, of the file that a kept generation is: SHA-256 of both ids.
Id128 kept_identity(const Id128& file, const Id128& attempt);

// A kept generation's name: "/scratch/run/ckpt.h5@7"; and back. None if it is not of that form.
std::string kept_path(const std::string& path, std::uint64_t number);
struct KeptName {
  std::string path;
  std::uint64_t number = 0;
};
std::optional<KeptName> parse_kept_path(const std::string& name);

// What the next record says is kept, when `base` was the newest: it, and those that it says are
// kept, `count` at most.
std::vector<KeptGeneration> kept_after(const CommitRecord& base, std::size_t count);

// Makes a file of a generation of this store, which a newer one says is kept; harmless if it is
// one. kNotFound if it is not here, or only its record is, or it was deleted. `flush`: it is
// durable when it returns.
Status keep_generation(Store& store, const Id128& file, const Id128& attempt, bool flush);

// Frees what neither generation `newest` of the file needs, which may not be here, nor one that it
// says is kept: those become files of their own first. As Store::collect(). Returns the bytes
// freed.
struct Collection {
  std::vector<std::uint64_t> open_segments{};
  bool with_logs = false;
  Store::Prepared prepared = Store::Prepared::kDrop;
  bool flush = true;
};
Result<std::uint64_t> collect_older(Store& store, const Id128& file, const Id128& newest,
                                    const std::vector<KeptGeneration>& kept, const Collection& how);

// The identities of a file's kept generations, here or not, as records of it here name them.
Result<std::set<Id128>> kept_of(const Store& store, const Id128& file);
// Drops a file, which `whole` locks, and then, as far as that can be done, its kept generations.
// Returns the bytes that the file itself freed.
Result<std::uint64_t> drop_with_kept(Store& store, const Id128& file,
                                     std::unique_ptr<Store::Lock> whole);
// Drops what this store has of them. What somebody reads stays: dedupctl gc finds it.
Status drop_kept(Store& store, const std::set<Id128>& kept);

// Drops kept generations, of all files here, that nobody reads, the oldest first, until so many
// bytes are free that were not. Returns the names of those that it dropped.
std::vector<std::string> give_up_kept(Store& store, std::uint64_t bytes);

}  // namespace dedup::store
