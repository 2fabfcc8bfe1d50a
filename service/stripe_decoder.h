// Getting what is lost of a stripe out of what other nodes have of it (plan/stripe_decoding.h).
//
// In any process that has a way to the services: a reader, or a node that is to have it again. One
// thread at a time, beside which it has one of its own, for what takes long.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "base/worker.h"
#include "plan/placement.h"
#include "plan/stripe_decoding.h"
#include "service/client.h"
#include "service/neighbours.h"

namespace dedup::service {

class StripeDecoder {
 public:
  // `neighbours`: through whom what is on this host is read; null: all is asked for. Both must
  // outlive it.
  StripeDecoder(Client& services, const Id128& identity, Neighbours* neighbours = nullptr);
  ~StripeDecoder();

  // A chunk of a unit that is lost, and where it goes.
  struct Target {
    NamedChunk chunk;
    std::byte* out = nullptr;  // chunk.length bytes
  };
  struct LostUnit {
    plan::StripeUnit stripe;  // and which of its units
    std::vector<Target> targets;
  };
  // Makes chunks of units, each of which is proven by its name, as far as that says anything. By
  // unit, positions of those that could not be made, ascending. For kUnitsAtOnce units it takes a
  // request or two to each node for where things are there, all at the same time; and of what this
  // process does not read itself, k requests a unit for about as many bytes each as the chunks have
  // from the first to the last of them in the unit, or a parity. Memory: two units for each of
  // these, and kAskedAtOnce answers.
  std::vector<std::vector<std::size_t>> make_chunks(std::span<const LostUnit> units);
  // Of one.
  std::vector<std::size_t> make_chunks(const plan::StripeUnit& stripe,
                                       std::span<const Target> targets);
  // The chunks of a unit, or all units'; none if no node tells.
  std::optional<std::vector<plan::UnitChunks>> units_of(const plan::StripeUnit& stripe);
  // A parity, or a table, by its name; none if too little of the stripe is left.
  std::optional<Bytes> make_part(const plan::StripeUnit& stripe, const Fingerprint& name);

  static constexpr std::size_t kUnitsAtOnce = 8;
  static constexpr std::size_t kAskedAtOnce = 16;

 private:
  using OfNode = std::unordered_map<Fingerprint, store::ChunkLocation>;
  // A question of one of the decodings.
  struct Question {
    plan::StripeDecoding* decoding = nullptr;
    std::size_t number = 0;
    NodeIndex node = kNoNode;
    bool is_near = false;
    std::vector<NamedChunk> chunks;
  };

  // Of a unit or a parity, as it was read.
  class Part;
  class Asking;

  plan::StripeDecoding begin(const plan::StripeUnit& stripe, std::vector<NamedChunk> lost);
  plan::StripeDecoding decode(const plan::StripeUnit& stripe, std::vector<NamedChunk> lost);
  void go_through(std::span<plan::StripeDecoding> decodings);
  void answer(std::vector<Question> questions);
  std::map<NodeIndex, OfNode> locate(std::span<const Question> questions);
  // What could not be answered by reading the nodes' stores is left.
  std::vector<Question> answer_near(std::vector<Question> questions,
                                    const std::map<NodeIndex, OfNode>& places);
  bool read_near(const Question& question, const OfNode& places, Part& part);

  Client& services_;
  Id128 identity_;
  Neighbours* neighbours_;
  std::unique_ptr<std::array<Part, 2>> parts_;  // one is read while the other is taken
  Id128 known_;                                 // the stripe that units_ is of
  std::vector<plan::UnitChunks> units_;
  Worker worker_;  // takes parts
};

}  // namespace dedup::service
