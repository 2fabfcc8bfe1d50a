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
  // By how many more are allocated now, or fewer.
  std::ptrdiff_t growth() const;
  double seconds() const;

 private:
  std::size_t before_;
  double begin_;
};

// Has the memory that work will take at hand: getting it page by page may take longer than the
// work, above all where a virtual machine gets it from its host. Freed memory stays.
void touch_memory(std::size_t bytes);

[[noreturn]] void fail(const std::string& what);

// A number of nodes: a power of two that a NodeIndex can count.
std::uint32_t parse_nodes(const char* text);
std::uint32_t parse_number(const char* text);

}  // namespace beyond
