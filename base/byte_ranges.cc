#include "base/byte_ranges.h"

#include <algorithm>
#include <utility>

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

std::vector<ByteRange> common(std::vector<ByteRange> a, std::vector<ByteRange> b) {
  a = joined(std::move(a));
  b = joined(std::move(b));
  if (a.empty() || b.empty()) return {};
  const std::uint64_t size = std::min(a.back().end(), b.back().end());
  std::vector<ByteRange> outside = missing(std::move(a), size);
  for (const ByteRange& range : missing(std::move(b), size)) outside.push_back(range);
  return missing(std::move(outside), size);
}

std::uint64_t bytes_of(std::span<const ByteRange> ranges) {
  std::uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.length;
  return bytes;
}

}  // namespace dedup
