#include "bench/programs/beyond/meter.h"

#include <malloc.h>

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/types.h"

namespace {

std::size_t in_use = 0;
std::size_t most_in_use = 0;

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  in_use += malloc_usable_size(memory);
  most_in_use = std::max(most_in_use, in_use);
  return memory;
}
void operator delete(void* memory) noexcept {
  in_use -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace beyond {

namespace {

// Of this process: it has one thread, and others share the processor.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Meter::Meter() : before_(in_use), begin_(processor_seconds()) {
  most_in_use = in_use;
}

std::size_t Meter::bytes() const {
  return most_in_use - before_;
}

std::ptrdiff_t Meter::growth() const {
  return static_cast<std::ptrdiff_t>(in_use) - static_cast<std::ptrdiff_t>(before_);
}

double Meter::seconds() const {
  return processor_seconds() - begin_;
}

void touch_memory(std::size_t bytes) {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) std::abort();
  std::memset(memory, 1, bytes);
  // Else the compiler sees that nobody reads it, and leaves that out.
  asm volatile("" : : "r"(memory) : "memory");
  std::free(memory);
}

void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

std::uint32_t parse_number(const char* text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value > 0xffffffff)
    fail("not a number: " + std::string(text));
  return static_cast<std::uint32_t>(value);
}

std::uint32_t parse_nodes(const char* text) {
  const std::uint32_t nodes = parse_number(text);
  constexpr auto kMost = static_cast<dedup::NodeIndex>(-1);
  if (nodes == 0 || (nodes & (nodes - 1)) != 0 || nodes >= kMost) {
    fail("nodes: a power of two below " + std::to_string(kMost));
  }
  return nodes;
}

}  // namespace beyond
