// All chunks of the generation that an attempt makes, as this node's store has them.
//
// Read in order of fingerprints, as often as needed, without a list of them all: 4 bytes for each
// that came since the last commit, and 4 MiB. Good until a chunk comes or goes. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "service/file_chunks.h"
#include "service/fingerprint_numbers.h"
#include "store/index.h"

namespace dedup::service {

class LiveChunks {
 public:
  // Those that are marked in `chunks`, and `carried`, ascending, with numbers of placements there:
  // chunks of the committed generation. Both must outlive it.
  LiveChunks(FileChunks& chunks, std::span<const FingerprintNumbers::Item> carried);

  // Entries have numbers of placements in the chunk index. Ends with the first error of `visit`.
  // kIo if a chunk is not here any more.
  Status for_each(const std::function<Status(const store::IndexEntry&)>& visit);

 private:
  FileChunks& chunks_;
  std::span<const FingerprintNumbers::Item> carried_;
  std::vector<std::uint32_t> marked_;  // numbers in the chunk index
};

}  // namespace dedup::service
