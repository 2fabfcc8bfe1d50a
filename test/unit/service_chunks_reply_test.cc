#include "service/chunks_reply.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "test/unit/store_helpers.h"

namespace dedup::service {
namespace {

std::vector<NamedChunk> some_chunks(test::Random& random, std::size_t count) {
  std::vector<NamedChunk> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({test::random_fingerprint(random),
                   static_cast<std::uint32_t>(1 + test::below(random, 100))});
  }
  return out;
}

TEST(ChunksReply, HasTheChunksThatAreThere) {
  test::Random random(1);
  for (std::size_t count = 0; count < 20; ++count) {
    const auto asked = some_chunks(random, count);
    ChunksReply reply(asked);
    std::vector<Bytes> wanted;
    std::vector<std::size_t> missing;
    std::vector<store::ChunkSeal> seals;
    for (const NamedChunk& chunk : asked) {
      seals.push_back({random(), random()});
      if (!store::has_header(chunk.fingerprint)) seals.back() = {};
    }
    reply.set_seals(asked, seals);
    for (const auto room : reply.room(asked)) {
      wanted.push_back(test::random_bytes(random, room.size()));
      std::copy(wanted.back().begin(), wanted.back().end(), room.begin());
      if (test::below(random, 3) != 0) continue;
      missing.push_back(wanted.size() - 1);
      wanted.back().clear();
    }
    reply.leave_out(asked, missing);

    Encoder encoder;
    reply.encode(encoder);
    Decoder decoder(encoder.bytes());
    const ChunksReply decoded = ChunksReply::decode(decoder);
    EXPECT_TRUE(decoder.ok() && decoder.at_end());
    ChunksReply received;
    ASSERT_TRUE(ChunksReply::from_body(std::move(reply).take_body(), received));
    for (const ChunksReply& each : {std::cref(decoded), std::cref(received)}) {
      const auto chunks = each.chunks(asked);
      ASSERT_EQ(chunks.size(), asked.size());
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(std::ranges::equal(chunks[i], wanted[i])) << i;
      }
      EXPECT_EQ(each.seals(asked), seals);
    }
  }
}

TEST(ChunksReply, IsNoReplyToAnotherRequest) {
  test::Random random(2);
  const auto asked = some_chunks(random, 5);
  const ChunksReply reply(asked);
  auto other = asked;
  other.pop_back();
  EXPECT_TRUE(reply.chunks(other).empty());
  other = asked;
  other[2].length += 1;
  EXPECT_TRUE(reply.chunks(other).empty());
  EXPECT_TRUE(ChunksReply().chunks(asked).empty());
  EXPECT_TRUE(reply.chunks({}).empty());
}

TEST(ChunksReply, RefusesWhatIsNoReply) {
  test::Random random(3);
  Bytes body = ChunksReply(some_chunks(random, 5)).take_body();
  ChunksReply out;
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(
        ChunksReply::from_body(Bytes(body.begin(), body.begin() + static_cast<long>(size)), out));
  }
  Bytes longer = body;
  longer.emplace_back();
  EXPECT_FALSE(ChunksReply::from_body(longer, out));
  body[5] = std::byte{2};  // neither here nor not
  EXPECT_FALSE(ChunksReply::from_body(body, out));
}

}  // namespace
}  // namespace dedup::service
