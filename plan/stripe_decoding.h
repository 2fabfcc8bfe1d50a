// Making what is lost of a stripe out of what its other nodes have, step by step: it says what they
// are to be asked for, and takes what came. Whom to reach how, and what at the same time, is the
// business of who asks: a client of the services (service/stripe_decoder.h), or who reads stores
// without any (tools/dedupctl/decode.h).
//
// Pure. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/hasher.h"
#include "base/piece.h"
#include "base/types.h"
#include "plan/placement.h"
#include "plan/stripe_content.h"

namespace dedup::plan {

class StripeDecoding {
 public:
  // To the node of a slot: it has all of these, or what it has is of no use.
  struct Question {
    unsigned slot = 0;
    std::vector<NamedChunk> chunks;  // of length 0: a table, whose length its node alone knows
  };

  // `lost`: chunks of the unit `stripe.unit`, or the name of one parity, of any length; nothing: it
  // is only the units that are asked for. `can_ask`: of each slot, whether its node is there.
  // `units`: what the stripe's units are, if it is known.
  StripeDecoding(StripeUnit stripe, std::vector<bool> can_ask, std::vector<NamedChunk> lost,
                 std::optional<std::vector<UnitChunks>> units = std::nullopt);
  StripeDecoding(StripeDecoding&&) = default;
  StripeDecoding& operator=(StripeDecoding&&) = default;

  const StripeUnit& stripe() const { return stripe_; }
  // All at the same time; empty when it has ended.
  const std::vector<Question>& questions() const { return questions_; }
  // The answer to one of them, of its chunks each: as they were stored, by their checksums. Not
  // called where there is none.
  void take(std::size_t question, std::span<const std::span<const std::byte>> chunks);
  // After the answers to all questions: others.
  void go_on();

  // Where it has ended. None: no node tells.
  const std::optional<std::vector<UnitChunks>>& units() const { return units_; }
  // Of each that was lost; a chunk is proven by its name, as far as that says anything.
  const std::vector<std::optional<Bytes>>& made() const { return made_; }

 private:
  // Those of lost_ that are made together, by their numbers.
  using Group = std::vector<std::size_t>;

  bool has_units() const { return units_.has_value(); }
  void ask_for_table();
  void take_table(unsigned slot, std::span<const std::byte> bytes);
  void begin_making();
  void begin_next_group();
  bool begin_sum(StripeRebuild::Stretch stretch);
  bool sum_group();
  void next_group();
  void find_lost();
  std::vector<NamedChunk> needed_of(unsigned slot) const;
  bool can_give(unsigned slot) const;
  void gather();
  void end_group();
  bool make_group(const std::optional<Bytes>& bytes);

  StripeUnit stripe_;
  std::vector<bool> can_ask_;
  std::vector<NamedChunk> lost_;
  unsigned slot_;  // of what is lost
  std::optional<std::vector<UnitChunks>> units_;
  std::vector<StripeRebuild::Stretch> stretches_;  // of lost_; empty: the units do not have it
  std::vector<std::optional<Bytes>> made_;
  std::vector<Question> questions_;
  unsigned next_;                                  // slot to be asked
  std::vector<std::optional<UnitChunks>> tables_;  // of units, where no parity's node tells
  std::uint32_t longest_ = 0;                      // unit
  std::deque<Group> groups_;                       // the first is being made
  std::size_t wanted_ = 0;                         // of how many slots
  // Tried first: it takes no more memory than what is made.
  std::optional<StripeSum> sum_;
  std::optional<StripeRebuild> rebuild_;
  FingerprintCheck check_;
};

}  // namespace dedup::plan
