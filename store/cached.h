// A generation is cached if the plain file at its path is it, byte for byte: it was written back,
// or read in from there. Each store may note what that file's stamp is; as long as what stands at
// the path has this very stamp, whoever opens it may read the generation in its place. The plain
// file is the file: a cached generation may go at any time. doc/format.md, "Cached note".
#pragma once

#include <span>
#include <string>

#include "base/codec.h"
#include "base/status.h"
#include "base/types.h"
#include "store/real_path.h"

namespace dedup::store {

struct CachedNote {
  Id128 attempt;  // of the generation
  Stamp plain;    // its device is not remembered: it has another number on every node
  bool operator==(const CachedNote&) const = default;

  Bytes encode() const;
  // kCorrupt if it is damaged or another attempt's; `what` starts the message.
  static Result<CachedNote> decode(std::span<const std::byte> bytes, const Id128& attempt,
                                   const std::string& what);
};

}  // namespace dedup::store
