// What the ranks write, and whether what was read is that: generated data, or files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/data/data.h"

namespace dedup::bench {

class Source {
 public:
  virtual ~Source() = default;

  virtual std::uint64_t bytes_a_rank() const = 0;
  // Bytes [offset, offset + out.size()) of a writer's data.
  virtual Status fill(unsigned writer, std::uint64_t offset, std::span<std::byte> out) const = 0;
};

std::unique_ptr<Source> generated(Data data, unsigned step);

// The files one after the other, divided evenly among the writers at multiples of 4 KiB; the last
// one's rest is filled up with zeros.
Result<std::unique_ptr<Source>> from_files(std::vector<std::string> paths, unsigned writers);

// Where writers' data stands in the file that they write: whole, one after the other, or in turns
// of `piece` bytes (a divisor of bytes_a_rank).
struct Layout {
  unsigned writers = 1;
  std::uint64_t bytes_a_rank = 0;
  std::uint64_t piece = 0;  // 0: whole

  std::uint64_t file_bytes() const { return bytes_a_rank * writers; }
};

// What stands in the file from `offset` on.
Status fill_file(const Source& source, const Layout& layout, std::uint64_t offset,
                 std::span<std::byte> out);

// Bytes of `read` that are not what the file has at `offset`.
Result<std::uint64_t> wrong_bytes(const Source& source, const Layout& layout, std::uint64_t offset,
                                  std::span<const std::byte> read);

}  // namespace dedup::bench
