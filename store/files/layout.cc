#include "store/files/layout.h"

#include <charconv>

namespace dedup::store {

std::string number_name(std::uint64_t number, std::string_view suffix) {
  std::string name(16, '0');
  for (std::size_t i = 16; i-- > 0; number >>= 4) name[i] = "0123456789abcdef"[number & 15];
  return name.append(suffix);
}

std::optional<std::uint64_t> parse_number_name(std::string_view name, std::string_view suffix) {
  if (name.size() != 16 + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = name.data() + 16;
  if (std::from_chars(name.data(), end, number, 16).ptr != end) return std::nullopt;
  return number;
}

std::optional<Id128> parse_id_name(std::string_view name, std::string_view prefix) {
  Id128 id;
  if (!name.starts_with(prefix) || !Id128::parse(std::string(name.substr(prefix.size())), id)) {
    return std::nullopt;
  }
  return id;
}

std::string donor_path(const std::string& shard, const Id128& donor) {
  return shard + "-" + donor.hex();
}

}  // namespace dedup::store
