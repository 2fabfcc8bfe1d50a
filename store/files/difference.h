// Bytes as what they have that others have not: of a recipe's block whose chunks are new here and
// there, its new names and little else. A frame of zstd (RFC 8878) that has the others as prefix.
#pragma once

#include <zstd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/codec.h"
#include "base/status.h"

namespace dedup::store {

// Longer ones have no difference: a bound of the memory that this takes, and of what somebody who
// reads a damaged length can be made to take.
inline constexpr std::size_t kMostDifferent = std::size_t{1} << 19;

// Makes differences. Memory: up to 1 MiB, once it has made one. One thread at a time.
class DifferenceWriter {
 public:
  // None if it would be of more than `most` bytes, or cannot be made.
  std::optional<Bytes> between(std::span<const std::byte> base, std::span<const std::byte> bytes,
                               std::size_t most);

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  std::unique_ptr<ZSTD_CCtx, Free> context_;
};

// The `size` bytes of which `difference` to `base` was made. kCorrupt if it was not; kNoMemory.
Result<Bytes> apply_difference(std::span<const std::byte> base,
                               std::span<const std::byte> difference, std::size_t size);

}  // namespace dedup::store
