// Makes stripes of units that are on several nodes: moves each unit to where the parities of its
// stripe are made, makes them, and moves these to where they are kept.
//
// As with copies, the bytes go from rank to rank, and not through the services: those of a node go
// to its store by the rank that speaks for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/erasure.h"
#include "base/ranks.h"
#include "base/spare_bytes.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/new_stripes.h"
#include "engine/protocol/unit_source.h"
#include "plan/stripe_content.h"
#include "plan/stripes.h"
#include "service/client.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// Of one group. One thread.
class StripeMaker {
 public:
  struct Options {
    Id128 identity;
    // How many bytes of units and parities a node sends, or receives, if that is more; 0: as many
    // as it can.
    std::uint64_t bytes_per_second = 0;
    // Called in each round, while its bytes are on their way: how many rounds are left, with this
    // one.
    std::function<void(std::size_t left)> meanwhile;
  };
  struct Figures {
    std::uint64_t stored_bytes = 0;  // parities and tables, on this rank's nodes
    std::uint64_t sent_bytes = 0;    // units, parities and tables, to other nodes, from this rank's
  };

  // All must outlive it.
  StripeMaker(service::Client& client, UnitSource& source, const StripeGroup& group,
              Options options)
      : client_(client), source_(source), group_(group), options_(std::move(options)) {}

  // Collective over the group's partners: the same stripes on all. `longest`: bytes of their
  // longest unit. Which of them were made, the same on all; one is not if a node does not give its
  // unit whole, by the seal of each chunk, or does not take its parity. Memory: to send,
  // to receive and of parities that are being stored kBytesAtOnce each, or as much as one stripe
  // takes; some 150 bytes for each of the group's stripes.
  std::vector<bool> make(std::span<const NewStripe> stripes, std::uint32_t longest);
  const Figures& figures() const { return figures_; }

  static constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20;

 private:
  // What is made of a stripe, on its encoder, until it was sent.
  struct Made {
    std::uint32_t stripe = 0;
    std::vector<service::PutChunk> tables;    // by parity; of the first, and the
    std::vector<service::PutChunk> parities;  // first, nothing is left: the encoder keeps them
    std::vector<Bytes> bytes;                 // of the parities
  };
  // A unit that came.
  struct Arrived {
    plan::UnitChunks chunks;
    std::span<const std::byte> bytes;
  };
  struct SentUnit;
  struct SentParity;
  struct Said;
  struct Moving;

  // Of one node, until it has answered.
  struct Putting {
    NodeIndex node = kNoNode;
    service::PutChunks request;
    std::vector<std::uint32_t> stripes;  // one for each parity
    std::size_t bytes = 0;
    std::optional<service::Client::Pending<service::PutChunks>> pending;  // once it was begun
  };
  using Stored = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  std::vector<std::vector<std::uint32_t>> rounds_of(std::span<const NewStripe> stripes) const;
  std::chrono::steady_clock::duration time_of_round() const;
  void send(std::span<const NewStripe> stripes, std::span<const std::uint32_t> round);
  std::size_t partner_of_parity(std::span<const NewStripe> stripes, const Made& made,
                                std::size_t parity) const;
  void receive(std::span<const NewStripe> stripes, std::span<const std::uint32_t> round);
  bool is_possible(const plan::UnitChunks& unit) const;
  bool is_kept_here(std::span<const NewStripe> stripes, const SentParity& parity) const;
  bool holds(const SentUnit& unit, std::span<const std::byte> bytes) const;
  Made encode(const NewStripe& stripe, std::uint32_t number, std::span<const Arrived> units);
  void put(const NewStripe& stripe, std::uint32_t number, unsigned slot, service::PutChunk table,
           service::PutChunk parity);
  void begin_puts();
  void end_puts();
  std::vector<bool> all_stored(std::span<const NewStripe> stripes);

  service::Client& client_;
  UnitSource& source_;
  const StripeGroup& group_;
  const Options options_;
  std::uint32_t longest_ = 0;  // bytes of the longest unit
  Figures figures_;
  std::map<std::uint32_t, std::uint32_t> stored_;  // parities, by stripe, by this rank's nodes
  std::vector<Made> made_;
  SpareBytes memory_;  // of parities and of what was sent
  std::deque<Putting> puts_;
  std::vector<Letter> out_;
  std::vector<Letter> in_;
};

}  // namespace dedup::engine
