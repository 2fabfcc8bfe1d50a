// Two-phase exchange: windows of the file, dealt to ranks as domains, and the pieces that travel.
//
// After R. Thakur, W. Gropp, E. Lusk, "Data Sieving and Collective I/O in ROMIO" (Frontiers 1999),
// with two differences: every rank has a domain, and holes are never read or written.
//
// A message holds the pieces that one rank has for one domain, ascending: for each the gap since
// the end of the piece before (or the domain's begin) and its length as base-128 numbers, then its
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "plan/access.h"
#include "plan/stretches.h"

namespace dedup::plan {

// Greater than any offset in a file, and not negative as a signed number.
inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0} >> 1;

// How far a rank can go with its data from where it is.
struct Reach {
  std::uint64_t next = kNoOffset;   // its first byte; kNoOffset: it has no data left
  std::uint64_t limit = kNoOffset;  // the first byte that is too much for its buffer
  std::uint64_t end = 0;            // the end of the data that it looked at
};

// What a message needs at most beyond what look_ahead() counts.
inline constexpr std::uint64_t kMessageSlack = 20;

// Looks at pieces from `cursor` on as long as they ascend, over at most `span` bytes of the file,
// until their messages would take more than `budget` bytes, at least 64, kMessageSlack for each
// domain excepted.
Reach look_ahead(FragmentCursor cursor, std::uint64_t budget, std::uint64_t span);

// A window of the file, dealt to ranks in order of ranks.
class Domains {
 public:
  Domains() = default;
  // `all`: the minimum of all ranks' next and limit, the maximum of their end; somebody has data.
  // Boundaries are multiples of the chunk size in the file, except the window's own begin and end.
  // No domain is larger than `largest`, a multiple of the chunk size; look_ahead() must have had at
  // least `ranks` times that as its span.
  static Domains agree(const Reach& all, unsigned ranks, std::uint32_t chunk_size,
                       std::uint64_t largest);

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }
  // May be empty.
  ByteRange domain(unsigned rank) const;
  unsigned owner(std::uint64_t offset) const;

 private:
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t origin_ = 0;  // begin_, rounded down to a chunk
  std::uint64_t size_ = 1;    // of a domain
};

// Packs the pieces within the window, moves `cursor` behind them. sizes[r]: bytes for rank r's
// domain; messages follow each other in `out` without gaps.
void pack(FragmentCursor& cursor, const Domains& domains, std::span<std::byte> out,
          std::vector<std::uint32_t>& sizes);

// A domain's bytes, and which of them were written. Memory: 9/8 of the largest domain.
class DomainBuffer {
 public:
  explicit DomainBuffer(std::uint64_t largest);
  bool ok() const { return data_ != nullptr && written_ != nullptr; }

  // Forgets everything; at most `largest` bytes.
  void reset(const ByteRange& domain);
  // Takes in a message; what comes later overwrites. False if it is none for this domain.
  bool merge(std::span<const std::byte> message);
  // The next bytes, ascending, that were written and follow each other; length 0 at the end. Not
  // to be mixed with merge().
  MemoryRun next_run();

 private:
  void mark(std::uint64_t begin, std::uint64_t end);
  // The first bit from `from` on that is `value`; the domain's length if there is none.
  std::uint64_t find(std::uint64_t from, bool value) const;

  std::unique_ptr<std::byte[]> data_;
  std::unique_ptr<std::uint64_t[]> written_;  // a bit for each byte
  ByteRange domain_;
  std::uint64_t at_ = 0;  // where next_run goes on
};

}  // namespace dedup::plan
