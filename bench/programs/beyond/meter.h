// Time and memory of a piece of work, and how these programs print and fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace beyond {

// From its creation on: seconds of the processor, and the most bytes that were allocated beyond
// those before.
class Meter {
 public:
  Meter();
  std::size_t bytes() const;
  double seconds() const;

 private:
  std::size_t before_;
  double begin_;
};

[[noreturn]] void fail(const std::string& what);

// A number of nodes: a power of two that a NodeIndex can count.
std::uint32_t parse_nodes(const char* text);
std::uint32_t parse_number(const char* text);

}  // namespace beyond
