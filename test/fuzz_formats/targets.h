// What reads bytes that somebody else wrote, each as a target for libFuzzer: the formats on disk,
// and the messages between ranks and services.
//
// A checksum would stop nearly every changed input at the first check. So each target also tries
// the input with its checksums put right, and the code behind them is reached.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "base/status.h"
#include "base/types.h"

namespace dedup::fuzz {

using Input = std::span<const std::byte>;

struct Target {
  std::string_view name;
  void (*run)(Input input);
  std::vector<Bytes> (*seeds)();  // inputs that are right, to start from
};

std::span<const Target> format_targets();   // one file's bytes
std::span<const Target> store_targets();    // a whole store
std::span<const Target> message_targets();  // requests, replies, a node's handler
std::span<const Target> wire_targets();     // frames on a connection

// A directory for files that have to be files, on a file system in memory.
inline const std::string kDirectory = "/fuzz";
// Makes the directory empty.
void clear_directory();
// Replaces the file `path` by one with these bytes.
void put_file(const std::string& path, Input bytes);

// Ends the process with `what` if it does not hold: libFuzzer keeps the input.
void require(bool holds, const char* what);

Id128 some_id(std::uint8_t number);
Fingerprint some_fingerprint(std::uint8_t number);

// Numbers out of the input, for what a target chooses; zeros after its end.
class Choices {
 public:
  explicit Choices(Input input) : input_(input), decoder_(input) {}
  template <typename T>
  T number() {
    return decoder_.get<T>();
  }
  // Up to `size` bytes.
  Input take(std::size_t size) {
    const Input taken = rest();
    if (size >= taken.size()) size = taken.size();
    decoder_ = Decoder(input_ = taken.subspan(size));
    return taken.first(size);
  }
  Input rest() const { return input_.subspan(decoder_.position()); }
  bool at_end() const { return !decoder_.ok() || decoder_.at_end(); }

 private:
  Input input_;
  Decoder decoder_;
};

}  // namespace dedup::fuzz
