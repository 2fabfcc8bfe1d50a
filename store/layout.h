// Where everything is below a store's directory. doc/format.md describes it.
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

struct Layout {
  std::string root;

  std::string store_file() const { return root + "/STORE"; }
  std::string paths() const { return root + "/paths"; }
  std::string marks() const { return root + "/marks"; }
  std::string files() const { return root + "/files"; }
  std::string mark(const Id128& identity) const { return marks() + "/" + identity.hex(); }

  std::string file(const Id128& identity) const { return files() + "/" + identity.hex(); }
  std::string dropped(const Id128& identity) const {
    return files() + "/" + std::string(kDroppedPrefix) + identity.hex();
  }
  // `key`: of a path (store/path_entries.h).
  std::string path_mark(const Id128& identity, const std::string& key) const {
    return file(identity) + "/" + std::string(kPathMarkPrefix) + key;
  }
  std::string file_lock(const Id128& identity) const { return file(identity) + "/lock"; }
  std::string segments(const Id128& identity) const { return file(identity) + "/segments"; }
  std::string logs(const Id128& identity) const { return file(identity) + "/logs"; }
  std::string generations(const Id128& identity) const { return file(identity) + "/generations"; }

  std::string generation(const Id128& identity, const Id128& attempt) const {
    return generations(identity) + "/" + attempt.hex();
  }
  std::string record(const Id128& identity, const Id128& attempt) const {
    return generation(identity, attempt) + "/record";
  }
  std::string temporary_record(const Id128& identity, const Id128& attempt) const {
    return record(identity, attempt) + ".tmp";
  }
  std::string generation_lock(const Id128& identity, const Id128& attempt) const {
    return generation(identity, attempt) + "/lock";
  }
};

// 16 hexadecimal digits and a suffix, and back; nothing if `name` is not of that form.
std::string number_name(std::uint64_t number, std::string_view suffix);
std::optional<std::uint64_t> parse_number_name(std::string_view name, std::string_view suffix);
// An id's name with a prefix, and back.
std::optional<Id128> parse_id_name(std::string_view name, std::string_view prefix = {});

}  // namespace dedup::store
