#include "base/hooks.h"

namespace dedup {

[[gnu::weak]] std::uint64_t twin_mask() {
  return ~std::uint64_t{0};
}

[[gnu::weak]] bool has_private_paths() {
  return false;
}

[[gnu::weak]] void note_local_request(std::uint8_t) {}

[[gnu::weak]] std::uint64_t entries_worth_keeping() {
  return 1024;
}

[[gnu::weak]] std::uint64_t log_bytes_worth_viewing() {
  return std::uint64_t{1} << 20;
}

[[gnu::weak]] bool is_test_variable(std::string_view) {
  return false;
}

}  // namespace dedup
