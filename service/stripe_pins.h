// What stripes need of a node's store beyond what the file refers to.
//
// As long as anything of a stripe is referred to, all chunks of its units stay, since it takes them
// to make what is lost of it: also those that the file does not need any more. They are in the
// index like others, but nothing says how they are kept. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "service/file_chunks.h"
#include "service/fingerprint_numbers.h"
#include "service/messages/store_node.h"
#include "service/stripe_units.h"

namespace dedup::service {

class StripePins {
 public:
  // `carried`: chunks of the committed generation that are referred to. All must outlive it.
  StripePins(FileChunks& chunks, const StripeUnits& units,
             std::span<const FingerprintNumbers::Item> carried);

  // Marks those chunks that came since the last commit. kCorrupt if the table of a unit cannot be
  // read.
  Status pin();
  // The others, ascending, each once; and the number of their placement.
  const std::vector<Fingerprint>& carried() const { return fresh_; }
  std::uint32_t unplaced() const { return unplaced_; }
  // Of units that are not needed whole.
  std::vector<UnitShare> take_shares() { return std::move(shares_); }

 private:
  Status pin_unit(const store::IndexEntry& part);
  bool is_carried(const Fingerprint& name) const;

  FileChunks& chunks_;
  const StripeUnits& units_;
  std::span<const FingerprintNumbers::Item> carried_;
  std::uint32_t unplaced_;
  std::vector<Fingerprint> fresh_;
  std::vector<UnitShare> shares_;
};

}  // namespace dedup::service
