// Where everything is below a store's directory. doc/format.md describes it. In short:
//
//   STORE                                   magic, version, the store's UUID
//   paths/<sha256 of the absolute path>     which identities that path had on this store
//   marks/<identity>                        a deleted file, until every store has dropped it
//   files/<identity>/lock                   flock: exclusive while a job has the file for writing
//   files/<identity>/path-<sha256>          empty: the path entries that name this file
//   files/<identity>/segments/<number>.seg  chunks; immutable once committed
//   files/<identity>/logs/<number>.log      independent writes that are not chunks yet
//   files/<identity>/generations/<attempt>/ record (renamed from record.tmp: the commit),
//                                           index, shard-<n>, shard-<n>-<attempt> (a link to that
//                                           attempt's shard, of which blocks stay); flock on the
//                                           directory's file `lock`, shared while some job reads
//                                           this generation; written-<n>: what writer n has written
//                                           back of it
//   files/drop-<identity>                   a file being removed
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace dedup::store {

inline constexpr std::string_view kDroppedPrefix = "drop-";
inline constexpr std::string_view kPathMarkPrefix = "path-";
inline constexpr std::string_view kSegmentSuffix = ".seg";
inline constexpr std::string_view kLogSuffix = ".log";
inline constexpr std::string_view kShardPrefix = "shard-";
inline constexpr std::string_view kWrittenPrefix = "written-";

// 16 hexadecimal digits and a suffix, and back; nothing if `name` is not of that form.
std::string number_name(std::uint64_t number, std::string_view suffix);
std::optional<std::uint64_t> parse_number_name(std::string_view name, std::string_view suffix);
// An id's name with a prefix, and back.
std::optional<Id128> parse_id_name(std::string_view name, std::string_view prefix = {});

// Beside a shard's file, the second name of a donor's: that attempt's shard of the same number.
std::string donor_path(const std::string& shard, const Id128& donor);

struct Layout {
  std::string root;

  std::string store_file() const { return root + "/STORE"; }
  std::string paths() const { return root + "/paths"; }
  std::string path_entry(const std::string& key) const { return paths() + "/" + key; }
  std::string marks() const { return root + "/marks"; }
  std::string files() const { return root + "/files"; }
  std::string mark(const Id128& identity) const { return marks() + "/" + identity.hex(); }

  std::string file(const Id128& identity) const { return files() + "/" + identity.hex(); }
  std::string dropped(const Id128& identity) const {
    return files() + "/" + std::string(kDroppedPrefix) + identity.hex();
  }
  // `key`: of a path (store/files/path_entries.h).
  std::string path_mark(const Id128& identity, const std::string& key) const {
    return file(identity) + "/" + std::string(kPathMarkPrefix) + key;
  }
  std::string file_lock(const Id128& identity) const { return file(identity) + "/lock"; }
  std::string segments(const Id128& identity) const { return file(identity) + "/segments"; }
  std::string logs(const Id128& identity) const { return file(identity) + "/logs"; }
  std::string segment(const Id128& identity, std::uint64_t number) const {
    return segments(identity) + "/" + number_name(number, kSegmentSuffix);
  }
  std::string log(const Id128& identity, std::uint64_t number) const {
    return logs(identity) + "/" + number_name(number, kLogSuffix);
  }
  std::string generations(const Id128& identity) const { return file(identity) + "/generations"; }

  std::string generation(const Id128& identity, const Id128& attempt) const {
    return generations(identity) + "/" + attempt.hex();
  }
  std::string index(const Id128& identity, const Id128& attempt) const {
    return generation(identity, attempt) + "/index";
  }
  // An older run of it.
  std::string index_run(const Id128& identity, const Id128& attempt, const Id128& run) const {
    return index(identity, attempt) + "-" + run.hex();
  }
  std::string shard(const Id128& identity, const Id128& attempt, std::uint32_t number) const {
    return generation(identity, attempt) + "/" + std::string(kShardPrefix) + std::to_string(number);
  }
  std::string record(const Id128& identity, const Id128& attempt) const {
    return generation(identity, attempt) + "/record";
  }
  std::string temporary_record(const Id128& identity, const Id128& attempt) const {
    return record(identity, attempt) + ".tmp";
  }
  std::string written(const Id128& identity, const Id128& attempt, std::uint32_t writer) const {
    return generation(identity, attempt) + "/" + std::string(kWrittenPrefix) +
           std::to_string(writer);
  }
  std::string cached(const Id128& identity, const Id128& attempt) const {
    return generation(identity, attempt) + "/cached";
  }
  std::string generation_lock(const Id128& identity, const Id128& attempt) const {
    return generation(identity, attempt) + "/lock";
  }
};

}  // namespace dedup::store
