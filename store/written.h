// What was written back of a generation so far, as the store of a node that writes it remembers it
// (doc/format.md, "Written part"). Losing it costs writing that part again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/status.h"
#include "base/types.h"

namespace dedup::store {

struct WrittenPart {
  // Of a copy that was a plain file at the path before, and that nobody has written to yet.
  static constexpr std::uint32_t kNobody = 0xffffffff;

  std::uint32_t writer = 0;       // tells a store's parts of one generation apart
  Id128 copy;                     // into which it was written: Replacement::id()
  std::vector<ByteRange> ranges;  // on the target's disk
  std::string trouble;            // what keeps it from going on; empty: nothing that is known

  bool operator==(const WrittenPart&) const = default;
  // Whether files have such ranges.
  bool possible() const;

  // Of attempt `attempt`.
  Bytes encode(const Id128& attempt) const;
  // kCorrupt if it is damaged or another attempt's; `what` starts the message.
  static Result<WrittenPart> decode(std::span<const std::byte> bytes, const Id128& attempt,
                                    const std::string& what);
};

// What several stores know of one copy.
struct WrittenCopy {
  Id128 copy;
  std::vector<ByteRange> ranges;  // ascending, disjoint
  std::uint64_t bytes = 0;        // in them
  std::string trouble;            // of some writer
  bool is_untouched = false;      // nobody has written to it yet: Replacement::take_kept()
};
// By copy, those with most bytes first.
std::vector<WrittenCopy> by_copy(std::span<const WrittenPart> parts);

}  // namespace dedup::store
