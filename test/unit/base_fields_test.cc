#include "base/fields.h"

#include <gtest/gtest.h>

#include <limits>

#include "test/unit/store_helpers.h"

namespace dedup {
namespace {

enum class Colour : std::uint8_t { kRed, kBlue };
constexpr Colour last_of(Colour) {
  return Colour::kBlue;
}

struct Inner {
  std::uint16_t number = 0;
  std::string text;
  auto operator<=>(const Inner&) const = default;
};

struct Own {
  std::uint8_t value = 0;
  bool operator==(const Own&) const = default;
  void encode(Encoder& e) const { e.put(static_cast<std::uint8_t>(value ^ 0xff)); }
  static Own decode(Decoder& d) {
    return {static_cast<std::uint8_t>(d.get<std::uint8_t>() ^ 0xff)};
  }
};

struct All {
  bool flag = false;
  Colour colour = Colour::kRed;
  std::uint64_t number = 0;
  Id128 id;
  Fingerprint fingerprint;
  std::array<std::uint8_t, 3> raw{};
  Bytes bytes;
  NodeSet nodes;
  std::vector<std::uint8_t> flags;
  std::vector<Inner> inners;
  std::vector<Fingerprint> fingerprints;
  std::optional<Inner> maybe;
  std::optional<std::uint32_t> none;
  std::set<std::string> set;
  std::pair<bool, std::string> pair;
  Own own;
  bool operator==(const All&) const = default;
};

All some() {
  test::Random random(1);
  All all;
  all.flag = true;
  all.colour = Colour::kBlue;
  all.number = 0x123456789abcdef0;
  all.id = test::random_id(random);
  all.fingerprint = test::random_fingerprint(random);
  all.raw = {1, 2, 3};
  all.bytes = test::random_bytes(random, 5);
  all.nodes = {1, 4};
  all.flags = {0, 1, 1};
  all.inners = {{1, "a"}, {2, ""}};
  all.fingerprints = {test::random_fingerprint(random), test::random_fingerprint(random)};
  all.maybe = Inner{7, "seven"};
  all.set = {"a", "b"};
  all.pair = {true, "c"};
  all.own = {9};
  return all;
}

TEST(Fields, ComeBackAsTheyWere) {
  const All all = some();
  const auto back = decoded<All>(encoded(all));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, all);
  EXPECT_EQ(*decoded<All>(encoded(All{})), All{});
}

TEST(Fields, StandInTheOrderOfDeclaration) {
  struct Pair {
    std::uint16_t first = 0x0102;
    std::string second = "x";
  };
  const Bytes expected{std::byte{2}, std::byte{1}, std::byte{1},  std::byte{0},
                       std::byte{0}, std::byte{0}, std::byte{'x'}};
  EXPECT_EQ(encoded(Pair{}), expected);
}

TEST(Fields, AreCountedToEighteenAndNoneIsLeftOut) {
  struct Many {
    std::uint8_t a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r;
  };
  struct Nested {
    Many many;
    Id128 id;
  };
  struct None {};
  const auto count = [](const auto& m) { return std::tuple_size_v<decltype(fields_of(m))>; };
  EXPECT_EQ(count(Many{}), 18u);
  EXPECT_EQ(count(Nested{}), 2u);
  EXPECT_EQ(count(All{}), 16u);
  EXPECT_EQ(count(None{}), 0u);
  EXPECT_EQ(encoded(Nested{}).size(), 34u);
}

TEST(Fields, AreRefusedWhereverTheyAreCutOffAndIfMoreFollows) {
  Bytes bytes = encoded(some());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decoded<All>(std::span(bytes).first(size))) << size;
  }
  bytes.push_back({});
  EXPECT_FALSE(decoded<All>(bytes));
}

template <typename T>
bool accepts(std::initializer_list<int> bytes) {
  Bytes input;
  for (const int byte : bytes) input.push_back(static_cast<std::byte>(byte));
  return decoded<T>(input).has_value();
}

TEST(Fields, ThatCannotBeAreRefused) {
  EXPECT_TRUE(accepts<bool>({1}));
  EXPECT_FALSE(accepts<bool>({2}));
  EXPECT_TRUE(accepts<Colour>({1}));
  EXPECT_FALSE(accepts<Colour>({2}));
  EXPECT_TRUE(accepts<std::vector<std::uint8_t>>({1, 0, 0, 0, 1}));
  EXPECT_FALSE(accepts<std::vector<std::uint8_t>>({1, 0, 0, 0, 2}));
  EXPECT_TRUE(accepts<NodeSet>({2, 0, 1, 0, 2, 0}));
  EXPECT_TRUE(accepts<NodeSet>({2, 0, 2, 0, 1, 0}));
  EXPECT_FALSE(accepts<NodeSet>({2, 0, 1, 0, 2}));
  EXPECT_TRUE(accepts<std::set<Colour>>({2, 0, 0, 0, 0, 1}));
  EXPECT_FALSE(accepts<std::set<Colour>>({2, 0, 0, 0, 1, 1}));
  EXPECT_FALSE(accepts<std::set<Colour>>({2, 0, 0, 0, 1, 0}));
  EXPECT_TRUE(accepts<std::optional<bool>>({1, 1}));
  EXPECT_FALSE(accepts<std::optional<bool>>({1, 2}));
  EXPECT_FALSE(accepts<std::optional<bool>>({2}));
  struct Even {
    std::uint8_t number = 0;
    bool possible() const { return number % 2 == 0; }
  };
  EXPECT_TRUE(accepts<Even>({2}));
  EXPECT_FALSE(accepts<Even>({1}));
  EXPECT_FALSE(accepts<std::vector<Even>>({2, 0, 0, 0, 2, 1}));
}

// ---- Counts -----------------------------------------------------------------------------------

TEST(Fields, HaveALeastSize) {
  EXPECT_EQ(least_encoded_size<Inner>(), 6u);
  EXPECT_EQ(least_encoded_size<NodeSet>(), 2u);
  EXPECT_EQ(least_encoded_size<std::optional<Inner>>(), 1u);
  EXPECT_EQ(least_encoded_size<Own>(), 1u);
  EXPECT_EQ(least_encoded_size<std::vector<Fingerprint>>(), 4u);
}

TEST(Fields, ACountThatDoesNotFitAllocatesNothing) {
  Encoder e;
  e.put(std::uint32_t{3});
  e.put_raw(Bytes(17).data(), 17);  // two of these and nearly a third
  Decoder d(e.bytes());
  std::vector<Inner> inners;
  get_fields(d, inners);
  EXPECT_FALSE(d.ok());
  EXPECT_EQ(inners.capacity(), 0u);
  std::vector<Fingerprint> fingerprints;
  Encoder huge;
  huge.put(std::numeric_limits<std::uint32_t>::max());
  Decoder lie(huge.bytes());
  get_fields(lie, fingerprints);
  EXPECT_FALSE(lie.ok());
  EXPECT_EQ(fingerprints.capacity(), 0u);
}

// The least size of an item may be much less than what it takes in memory.
TEST(Fields, ACountAloneAllocatesNoMoreThanTwiceWhatWasReceived) {
  constexpr std::size_t kBytes = 60000;
  Encoder e;
  e.put(std::uint32_t{kBytes});
  e.put_raw(Bytes(kBytes, std::byte{2}).data(), kBytes);  // no optional begins so
  Decoder d(e.bytes());
  std::vector<std::optional<All>> items;
  get_fields(d, items);
  EXPECT_FALSE(d.ok());
  EXPECT_LE(items.capacity() * sizeof(items[0]), 2 * kBytes);
  // What is there is decoded all the same, however little of it there is for its size.
  const std::vector<std::optional<All>> few(1000);
  EXPECT_EQ(decoded<std::vector<std::optional<All>>>(encoded(few)), few);
}

}  // namespace
}  // namespace dedup
