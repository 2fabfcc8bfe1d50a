#include "base/byte_ranges.h"

#include <algorithm>

namespace dedup {

std::vector<ByteRange> joined(std::vector<ByteRange> ranges) {
  std::erase_if(ranges, [](const ByteRange& range) { return range.length == 0; });
  std::sort(ranges.begin(), ranges.end());
  std::vector<ByteRange> out;
  for (const ByteRange& range : ranges) {
    if (!out.empty() && range.offset <= out.back().end()) {
      out.back().length = std::max(out.back().end(), range.end()) - out.back().offset;
    } else {
      out.push_back(range);
    }
  }
  return out;
}

void append(std::vector<ByteRange>& ranges, const ByteRange& range) {
  if (!ranges.empty() && ranges.back().end() == range.offset) {
    ranges.back().length += range.length;
  } else {
    ranges.push_back(range);
  }
}

std::vector<ByteRange> missing(std::vector<ByteRange> ranges, std::uint64_t size) {
  std::vector<ByteRange> out;
  std::uint64_t at = 0;
  for (const ByteRange& range : joined(std::move(ranges))) {
    if (range.offset >= size) break;
    if (at < range.offset) out.push_back({at, range.offset - at});
    at = range.end();
  }
  if (at < size) out.push_back({at, size - at});
  return out;
}

std::uint64_t bytes_of(std::span<const ByteRange> ranges) {
  std::uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.length;
  return bytes;
}

}  // namespace dedup
