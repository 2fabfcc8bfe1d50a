// Getting what is lost of a stripe out of what other nodes have of it (plan/stripe_decoding.h).
//
// In any process that has a way to the services: a reader, or a node that is to have it again. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "plan/placement.h"
#include "plan/stripe_decoding.h"
#include "service/client.h"
#include "service/neighbours.h"

namespace dedup::service {

class StripeDecoder {
 public:
  // `neighbours`: through whom what is on this host is read; null: all is asked for. Both must
  // outlive it.
  StripeDecoder(Client& services, const Id128& identity, Neighbours* neighbours = nullptr)
      : services_(services), identity_(identity), neighbours_(neighbours) {}

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
  // Whether a question could be answered by reading the node's store.
  bool read_near(plan::StripeDecoding& decoding, std::size_t question, NodeIndex node,
                 std::span<const NamedChunk> chunks);

  Client& services_;
  Id128 identity_;
  Neighbours* neighbours_;
  std::unique_ptr<std::byte[]> part_;  // of a stripe, as it was read
  std::size_t part_bytes_ = 0;
  Id128 known_;  // the stripe that units_ is of
  std::vector<plan::UnitChunks> units_;
};

}  // namespace dedup::service
