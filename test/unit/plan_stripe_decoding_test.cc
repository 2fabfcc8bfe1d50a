#include "plan/stripe_decoding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "test/unit/random_stripe.h"

namespace dedup::plan {
namespace {

// The nodes of a stripe: slot n is node n.
class Nodes {
 public:
  Nodes(unsigned k, unsigned m, std::uint64_t seed) : content(k, m, seed) {
    stripe.data = static_cast<std::uint8_t>(k);
    for (unsigned slot = 0; slot < k + m; ++slot) {
      stripe.nodes.push_back(static_cast<NodeIndex>(slot));
    }
  }

  StripeDecoding decode(unsigned unit, std::vector<NamedChunk> lost) {
    StripeUnit of = stripe;
    of.unit = static_cast<std::uint8_t>(unit);
    std::vector<bool> can_ask;
    for (const NodeIndex node : stripe.nodes) can_ask.push_back(!gone.contains(node));
    StripeDecoding decoding(of, can_ask, std::move(lost));
    questions = 0;
    while (!decoding.questions().empty()) {
      for (std::size_t q = 0; q < decoding.questions().size(); ++q) answer(decoding, q);
      decoding.go_on();
    }
    return decoding;
  }
  // All chunks of a unit.
  StripeDecoding decode(unsigned unit) { return decode(unit, content.units[unit]); }

  // How many of a unit's chunks were made; all that were are right.
  std::size_t made(unsigned unit) {
    const StripeDecoding decoding = decode(unit);
    std::size_t count = 0;
    for (std::size_t i = 0; i < content.units[unit].size(); ++i) {
      if (!decoding.made()[i]) continue;
      const auto right = content_before.chunk(unit, i);
      EXPECT_TRUE(std::equal(right.begin(), right.end(), decoding.made()[i]->begin(),
                             decoding.made()[i]->end()));
      ++count;
    }
    return count;
  }

  RandomStripe content;
  RandomStripe content_before = content;  // what is not to be damaged
  StripeUnit stripe{Id128::random(), 0, 0, {}};
  std::set<NodeIndex> gone;
  std::set<Fingerprint> bad;  // chunks, tables and parities that cannot be read
  std::size_t questions = 0;

 private:
  void answer(StripeDecoding& decoding, std::size_t number) {
    ++questions;
    const StripeDecoding::Question& question = decoding.questions()[number];
    EXPECT_FALSE(gone.contains(static_cast<NodeIndex>(question.slot)));
    std::vector<Bytes> bytes;
    for (const NamedChunk& chunk : question.chunks) {
      if (bad.contains(chunk.fingerprint)) return;
      bytes.push_back(read(question.slot, chunk));
    }
    const std::vector<std::span<const std::byte>> spans(bytes.begin(), bytes.end());
    decoding.take(number, spans);
  }

  Bytes read(unsigned slot, const NamedChunk& chunk) const {
    const std::span<const UnitChunks> units = content.units;
    if (chunk.fingerprint == part_names(stripe, slot).front()) {
      return encode_stripe_table(stripe.is_parity(slot) ? units : units.subspan(slot, 1));
    }
    if (chunk.fingerprint == part_name(stripe.stripe, Part::kParity, slot))
      return content.bytes[slot];
    const auto at = std::find(units[slot].begin(), units[slot].end(), chunk);
    const auto bytes = content.chunk(slot, static_cast<std::size_t>(at - units[slot].begin()));
    return {bytes.begin(), bytes.end()};
  }
};

TEST(StripeDecoding, AnyNodesAreLostThatMayBe) {
  for (const auto& [k, m] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 2u}, {4u, 3u}}) {
    Nodes nodes(k, m, 20 * k + m);
    for (unsigned mask = 0; mask < 1u << (k + m); ++mask) {
      nodes.gone.clear();
      for (unsigned slot = 0; slot < k + m; ++slot) {
        if ((mask >> slot & 1) != 0) nodes.gone.insert(static_cast<NodeIndex>(slot));
      }
      const bool may_be = nodes.gone.size() <= m;
      for (unsigned unit = 0; unit < k; ++unit) {
        if ((mask >> unit & 1) == 0) continue;
        const std::size_t made = nodes.made(unit);
        EXPECT_TRUE(made == nodes.content.units[unit].size() || !may_be)
            << k << '+' << m << ' ' << mask;
      }
      for (unsigned slot = k; slot < k + m; ++slot) {
        if ((mask >> slot & 1) == 0 || !may_be) continue;
        const auto decoding =
            nodes.decode(0, {{part_name(nodes.stripe.stripe, Part::kParity, slot), 0}});
        EXPECT_EQ(decoding.made().front(), nodes.content.bytes[slot]);
      }
      const auto units = nodes.decode(0, {}).units();
      EXPECT_TRUE(units == nodes.content.units || !may_be);
    }
  }
}

TEST(StripeDecoding, WhoCannotAnswerIsReplaced) {
  Nodes nodes(4, 2, 1);
  nodes.gone = {1};
  nodes.bad = {part_name(nodes.stripe.stripe, Part::kWholeTable, 4),
               part_name(nodes.stripe.stripe, Part::kParity, 4)};
  EXPECT_EQ(nodes.made(1), nodes.content.units[1].size());
  // Both tables of parities: the units' nodes tell, if all are there.
  nodes.bad = {part_name(nodes.stripe.stripe, Part::kWholeTable, 4),
               part_name(nodes.stripe.stripe, Part::kWholeTable, 5)};
  EXPECT_EQ(nodes.made(1), 0u);
  nodes.gone.clear();
  EXPECT_EQ(nodes.made(1), nodes.content.units[1].size());
}

// What is damaged before it has a checksum is found out by the names of what is made.
TEST(StripeDecoding, OneThatIsWrongIsLeftOut) {
  for (unsigned slot = 1; slot < 6; ++slot) {
    Nodes nodes(4, 2, slot);
    nodes.gone = {0};
    for (std::byte& byte : nodes.content.bytes[slot]) byte ^= std::byte{1};
    EXPECT_EQ(nodes.made(0), nodes.content.units[0].size()) << slot;
  }
}

// One damaged chunk takes with it no more than what it overlaps with.
TEST(StripeDecoding, WhatIsLeftOfAUnitIsMade) {
  Nodes nodes(2, 1, 1);
  nodes.gone = {0};
  nodes.bad = {nodes.content.units[1].front().fingerprint};
  const std::uint32_t damaged = nodes.content.units[1].front().length;
  std::size_t left = 0;
  std::uint32_t begin = 0;
  for (const NamedChunk& chunk : nodes.content.units[0]) {
    if (begin >= damaged) ++left;
    begin += chunk.length;
  }
  ASSERT_GT(left, 0u);
  ASSERT_LT(left, nodes.content.units[0].size());
  EXPECT_EQ(nodes.made(0), left);
}

TEST(StripeDecoding, NobodyIsAskedInVain) {
  Nodes nodes(6, 2, 3);
  nodes.gone = {0};
  EXPECT_EQ(nodes.made(0), nodes.content.units[0].size());
  EXPECT_LE(nodes.questions, 1u + 6u);
  // Of units that are as long as the longest nothing is known beyond their ends.
  Nodes few(2, 2, 5);
  few.gone = {0, 1, 2};
  const std::size_t made = few.made(0);
  EXPECT_TRUE(made == 0 || few.content.bytes[1].size() < few.content.bytes[0].size());
  // A chunk that the stripe does not have.
  few.gone = {0};
  const StripeDecoding decoding = few.decode(0, {few.content.units[1].front()});
  EXPECT_FALSE(decoding.made().front());
  EXPECT_EQ(few.questions, 1u);
}

}  // namespace
}  // namespace dedup::plan
