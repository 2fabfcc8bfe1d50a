// Where a node's store is: one directory, or several tiers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dedup {

struct StoreTier {
  std::string directory;
  std::optional<std::uint64_t> limit;  // bytes that it may take; none: what its file system has
  bool operator==(const StoreTier&) const = default;
};

// Tiers, fastest first. The last one is the store itself, which has everything but the segments in
// those before it.
class StorePlace {
 public:
  // One directory. Not explicit: where nothing is said of tiers, a directory is a store's place.
  StorePlace(std::string directory)  // NOLINT(google-explicit-constructor)
      : tiers_{{std::move(directory), std::nullopt}} {}
  StorePlace(const char* directory)  // NOLINT(google-explicit-constructor)
      : StorePlace(std::string(directory)) {}
  // At least one.
  explicit StorePlace(std::vector<StoreTier> tiers) : tiers_(std::move(tiers)) {}

  const std::vector<StoreTier>& tiers() const { return tiers_; }
  std::vector<StoreTier>& tiers() { return tiers_; }
  // Of the store itself.
  const std::string& directory() const { return tiers_.back().directory; }
  // As the hint dedup_store has it, of exactly this place.
  std::string text() const;

  // The one directory that the hint would be the name of if colons and equals signs had no meaning
  // in it; empty if there are none.
  const std::string& as_one_directory() const { return as_one_directory_; }
  void set_as_one_directory(std::string path) { as_one_directory_ = std::move(path); }

  bool operator==(const StorePlace& other) const { return tiers_ == other.tiers_; }

 private:
  std::vector<StoreTier> tiers_;
  std::string as_one_directory_;
};

}  // namespace dedup
