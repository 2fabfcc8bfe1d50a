#include "plan/write_back.h"

#include <algorithm>

#include "base/piece.h"

namespace dedup::plan {

std::vector<std::vector<ByteRange>> deal_to_writers(std::span<const ByteRange> missing,
                                                    std::size_t writers, std::uint64_t unit) {
  std::uint64_t units = 0;
  const auto units_of = [&](const ByteRange& range) {
    return (range.end() + unit - 1) / unit - range.offset / unit;
  };
  for (const ByteRange& range : missing) units += units_of(range);
  const std::uint64_t each = (units + writers - 1) / writers;
  std::vector<std::vector<ByteRange>> out(writers);
  std::size_t writer = 0;
  std::uint64_t has = 0;         // units, of that writer
  std::uint64_t last_unit = ~0;  // the last that it has a part of
  for (ByteRange range : missing) {
    while (range.length > 0) {
      // Two ranges in one unit are one writer's.
      if (has >= each && range.offset / unit != last_unit) {
        ++writer;
        has = 0;
      }
      const std::uint64_t take = std::max<std::uint64_t>(each - std::min(has, each), 1);
      const std::uint64_t end = std::min(range.end(), (range.offset / unit + take) * unit);
      const ByteRange part{range.offset, end - range.offset};
      out[writer].push_back(part);
      has += units_of(part);
      last_unit = (end - 1) / unit;
      range = {end, range.end() - end};
    }
  }
  return out;
}

std::uint64_t writing_unit(std::uint64_t block) {
  if (block <= 1) return kBlockSpan;
  return (kBlockSpan + block - 1) / block * block;
}

}  // namespace dedup::plan
