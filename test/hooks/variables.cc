// base/hooks.h in a test build: variables of the environment decide.
#include <dlfcn.h>

#include <cstdlib>

#include "base/hooks.h"

namespace dedup {

// DEDUP_TEST_TWIN_BITS: so few bits of names count that chunks seem to have twins.
std::uint64_t twin_mask() {
  const char* bits = std::getenv("DEDUP_TEST_TWIN_BITS");
  return bits == nullptr ? ~std::uint64_t{0} : (std::uint64_t{1} << std::atoi(bits)) - 1;
}

bool has_private_paths() {
  return std::getenv("DEDUP_TEST_PRIVATE_PATHS") != nullptr;
}

// For programs that count requests, which have a function of that name.
void note_local_request(std::uint8_t kind) {
  using Note = void (*)(unsigned);
  static const auto note = reinterpret_cast<Note>(dlsym(RTLD_DEFAULT, "dedup_test_request"));
  if (note != nullptr) note(kind);
}

// DEDUP_TEST_WORTH_KEEPING: that number of entries.
std::uint64_t entries_worth_keeping() {
  const char* entries = std::getenv("DEDUP_TEST_WORTH_KEEPING");
  return entries == nullptr ? 1024 : std::strtoull(entries, nullptr, 10);
}

// DEDUP_TEST_WORTH_VIEWING: that number of bytes.
std::uint64_t log_bytes_worth_viewing() {
  const char* bytes = std::getenv("DEDUP_TEST_WORTH_VIEWING");
  return bytes == nullptr ? std::uint64_t{1} << 20 : std::strtoull(bytes, nullptr, 10);
}

bool is_test_variable(std::string_view name) {
  return name.starts_with("DEDUP_TEST_");
}

}  // namespace dedup
