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
#include "store/shard_content.h"

namespace dedup::store {

// Makes differences. Memory: up to 2 MiB, once it has made one. One thread at a time.
class DifferenceWriter {
 public:
  // None if it would be of more than `most` bytes, or cannot be made; so if one of the two is
  // longer than kMostDifferent.
  std::optional<Bytes> between(std::span<const std::byte> basis, std::span<const std::byte> bytes,
                               std::size_t most);

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };

  std::unique_ptr<ZSTD_CCtx, Free> context_;
};

// The `size` bytes of which `difference` to `basis` was made. kCorrupt if it was not; kNoMemory.
Result<Bytes> apply_difference(std::span<const std::byte> basis,
                               std::span<const std::byte> difference, std::size_t size);

}  // namespace dedup::store
