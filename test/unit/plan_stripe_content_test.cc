#include "plan/stripe_content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "test/unit/random_stripe.h"

namespace dedup::plan {
namespace {

TEST(StripeContent, TablesAreReadAsTheyWereWritten) {
  const RandomStripe stripe(5, 2, 1);
  const Bytes all = encode_stripe_table(stripe.units);
  EXPECT_EQ(decode_stripe_table(all, 5), stripe.units);
  const Bytes one = encode_stripe_table({&stripe.units[3], 1});
  EXPECT_EQ(decode_stripe_table(one, 1), std::vector<UnitChunks>{stripe.units[3]});
}

TEST(StripeContent, WhatIsNoTableIsRefused) {
  const RandomStripe stripe(3, 2, 2);
  const Bytes good = encode_stripe_table(stripe.units);
  EXPECT_FALSE(decode_stripe_table(good, 2));
  EXPECT_FALSE(decode_stripe_table(good, 4));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_stripe_table(std::span(good).first(size), 3)) << size;
  }
  std::vector<UnitChunks> units = stripe.units;
  units[1][0].length = 0;
  EXPECT_FALSE(decode_stripe_table(encode_stripe_table(units), 3));
  units[1][0].length = kMaxChunkSize;  // with the others it is too long
  units[1].push_back(units[0][0]);
  EXPECT_FALSE(decode_stripe_table(encode_stripe_table(units), 3));
  units[1].clear();
  EXPECT_FALSE(decode_stripe_table(encode_stripe_table(units), 3));
}

TEST(StripeContent, NamesTellWhatTheyAreOf) {
  const Id128 id = Id128::random();
  const StripeUnit stripe{id, 0, 2, {0, 1, 2}};
  EXPECT_EQ(part_names(stripe, 1), std::vector{part_name(id, Part::kUnitTable, 1)});
  EXPECT_EQ(part_names(stripe, 2),
            (std::vector{part_name(id, Part::kWholeTable, 2), part_name(id, Part::kParity, 2)}));
  for (const Part part : {Part::kUnitTable, Part::kWholeTable, Part::kParity}) {
    for (const unsigned slot : {0u, 1u, 63u}) {
      EXPECT_EQ(part_of(part_name(id, part, slot)), part);
      EXPECT_EQ(slot_of(part_name(id, part, slot)), slot);
    }
  }
}

// Every slot, each stretch of some chunks of it, from any k of the others.
TEST(StripeContent, AnyPartIsMadeFromAnyKOthers) {
  for (const auto& [k, m] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 2u}, {4u, 3u}}) {
    const RandomStripe stripe(k, m, 10 * k + m);
    for (unsigned slot = 0; slot < k + m; ++slot) {
      for (unsigned mask = 0; mask < 1u << (k + m); ++mask) {
        if (static_cast<unsigned>(std::popcount(mask)) != k || (mask >> slot & 1) != 0) continue;
        const std::size_t count = slot < k ? stripe.units[slot].size() : 1;
        for (std::size_t first = 0; first < count; ++first) {
          StripeRebuild::Stretch stretch{0, static_cast<std::uint32_t>(stripe.bytes[slot].size())};
          if (slot < k) stretch = stretch_of(stripe.units[slot], first, count);
          StripeRebuild rebuild(stripe.units, stripe.nodes(), slot, stretch);
          std::vector<unsigned> others;
          for (unsigned other = 0; other < k + m; ++other) {
            if ((mask >> other & 1) != 0) others.push_back(other);
          }
          auto sum = StripeSum::of(stripe.units, stripe.nodes(), slot, stretch, others);
          ASSERT_TRUE(sum);
          std::reverse(others.begin(), others.end());
          for (const unsigned other : others) {
            EXPECT_FALSE(sum->is_complete());
            stripe.add(*sum, rebuild, other);
            stripe.give(rebuild, other);
          }
          const auto made = rebuild.rebuild();
          ASSERT_TRUE(made);
          EXPECT_TRUE(sum->is_complete());
          EXPECT_EQ(sum->bytes(), *made);
          const auto right = std::span(stripe.bytes[slot]).subspan(stretch.begin, stretch.size());
          ASSERT_TRUE(std::equal(right.begin(), right.end(), made->begin(), made->end()))
              << k << '+' << m << ", slot " << slot << " from " << mask;
        }
      }
    }
  }
}

TEST(StripeContent, OneThatIsDamagedCanBeLeftOut) {
  RandomStripe stripe(4, 2, 3);
  const auto whole = static_cast<std::uint32_t>(stripe.bytes[1].size());
  stripe.bytes[2][0] ^= std::byte{1};
  StripeRebuild rebuild(stripe.units, 6, 1, {0, whole});
  for (const unsigned slot : {0u, 2u, 3u, 4u, 5u}) stripe.give(rebuild, slot);
  EXPECT_NE(rebuild.rebuild(), stripe.bytes[1]);
  EXPECT_NE(rebuild.rebuild(0), stripe.bytes[1]);
  EXPECT_EQ(rebuild.rebuild(1), stripe.bytes[1]);
  EXPECT_EQ(rebuild.given(), 5u);
}

TEST(StripeContent, TooFewPartsMakeNothing) {
  const RandomStripe stripe(3, 1, 4);
  StripeRebuild rebuild(stripe.units, 4, 0, {0, 1});
  stripe.give(rebuild, 1);
  stripe.give(rebuild, 3);
  EXPECT_FALSE(rebuild.rebuild());
  EXPECT_FALSE(rebuild.give_parity(3, std::span(stripe.bytes[3]).subspan(1)));
  stripe.give(rebuild, 2);
  EXPECT_TRUE(rebuild.rebuild());
  EXPECT_FALSE(rebuild.rebuild(0));
}

}  // namespace
}  // namespace dedup::plan
