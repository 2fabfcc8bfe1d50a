// All chunks of the generation that an attempt makes, as this node's store has them.
//
// Read in order of fingerprints, as often as needed, without a list of them all: 4 bytes for each
// that came since the last commit, and 4 MiB. Good until a chunk comes or goes. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  using Visit = std::function<Status(const store::IndexEntry&)>;
  Status for_each(const Visit& visit);
  // Those that came since the last commit.
  Status for_each_new(const Visit& visit);
  std::uint64_t count_new() const { return marked_.size(); }
  // The number of the placement of one that the committed generation has; null if it is not among
  // them, or has come again since.
  const std::uint32_t* carried(const Fingerprint& fingerprint) const;

  // What they take, with what stands before each chunk (stored_size()).
  struct Space {
    std::map<std::uint64_t, std::uint64_t> by_segment;
    std::uint64_t carried = 0;  // of those that came before the last commit
    std::uint64_t chunks = 0;   // their number
  };
  // Fails as for_each() does.
  Result<Space> measure();

 private:
  // visit(entry, whether it came since the last commit).
  template <typename Visitor>
  Status walk(const Visitor& visit);

  FileChunks& chunks_;
  std::span<const FingerprintNumbers::Item> carried_;
  std::vector<std::uint32_t> marked_;  // numbers in the chunk index
};

}  // namespace dedup::service
