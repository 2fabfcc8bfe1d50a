// Getting what is lost of a stripe out of what other nodes have of it (plan/stripe_decoding.h).
//
// In any process that has a way to the services: a reader, or a node that is to have it again. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "plan/placement.h"
#include "plan/stripe_decoding.h"
#include "service/client.h"

namespace dedup::service {

class StripeDecoder {
 public:
  // `services` must outlive it.
  StripeDecoder(Client& services, const Id128& identity)
      : services_(services), identity_(identity) {}

  // A chunk of a unit that is lost, and where it goes.
  struct Target {
    NamedChunk chunk;
    std::byte* out = nullptr;  // chunk.length bytes
  };
  // Makes chunks of the unit `stripe.unit`, each of which is proven by its name, as far as that
  // says anything. Positions of those that could not be made, ascending. It takes k requests for
  // about as many bytes each as the chunks have from the first to the last of them in the unit, or
  // a parity, and two more for each stripe.
  std::vector<std::size_t> make_chunks(const plan::StripeUnit& stripe,
                                       std::span<const Target> targets);
  // The chunks of a unit, or all units'; none if no node tells.
  std::optional<std::vector<plan::UnitChunks>> units_of(const plan::StripeUnit& stripe);
  // A parity, or a table, by its name; none if too little of the stripe is left.
  std::optional<Bytes> make_part(const plan::StripeUnit& stripe, const Fingerprint& name);

 private:
  std::optional<std::uint32_t> length_of(NodeIndex node, const Fingerprint& name);
  plan::StripeDecoding decode(const plan::StripeUnit& stripe, std::vector<NamedChunk> lost);
  void answer(plan::StripeDecoding& decoding);

  Client& services_;
  Id128 identity_;
  Id128 known_;  // the stripe that units_ is of
  std::vector<plan::UnitChunks> units_;
};

}  // namespace dedup::service
