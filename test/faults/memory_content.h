// A file's content in memory: what it is, and what a loss of power may leave of it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"

namespace dedup::test {

// Picks one of `options` outcomes of a crash for something that no fsync covered: 0 is lost, 1 is
// kept, others are in between.
using Choose = std::function<std::uint32_t(std::uint32_t options)>;

class MemoryContent {
 public:
  static constexpr std::uint64_t kUnit = 512;  // what a disk writes whole or not at all

  std::uint64_t size() const { return now_.size; }
  std::uint64_t units() const { return now_.units.size(); }
  // How many more a write would take.
  std::uint64_t units_missing(std::uint64_t offset, std::uint64_t length) const;

  // Within the size.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  void write(std::uint64_t offset, std::span<const std::byte> data);
  void truncate(std::uint64_t size);

  void sync();
  // What is not durable now never will be, but for what is written again.
  void fail_sync();
  void crash(const Choose& choose);

 private:
  using Unit = std::array<std::byte, kUnit>;
  struct Image {
    std::map<std::uint64_t, std::shared_ptr<Unit>> units;  // shared until written to; holes missing
    std::uint64_t size = 0;

    void write(std::uint64_t offset, std::span<const std::byte> data);
    void truncate(std::uint64_t new_size);
  };
  struct Change {
    std::uint64_t offset = 0;  // the new size, if `data` is empty
    Bytes data;
    bool is_doomed = false;
  };
  static void apply(const Change& change, Image& image);
  static void apply_some(const Change& change, const Choose& choose, Image& image);

  Image now_;
  Image durable_;
  std::vector<Change> pending_;
};

}  // namespace dedup::test
