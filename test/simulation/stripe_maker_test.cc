// Which stripes count as made when nodes do not give, or do not take, what belongs to them.
#include "engine/protocol/stripe_maker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/erasure.h"
#include "engine/protocol/chunk_source.h"
#include "engine/protocol/stored_units.h"
#include "test/hooks/names.h"
#include "test/simulation/handles.h"

namespace dedup::simulation {
namespace {

using service::Opcode;

class StripeMakerTest : public testing::Test {
 protected:
  static constexpr unsigned kData = 3;
  static constexpr unsigned kParities = 2;

  StripeMakerTest() : job(cluster, 1, {0, 1, 2, 3, 4, 5}, 1) {
    seed_product(1);
    file = open_file(job);
    attempt = Id128::random();
    for (NodeIndex node = 0; node < kNodes; ++node) units.push_back(fill(node));
  }

  // Units of several chunks, which the node has alone.
  std::uint32_t fill(NodeIndex node) {
    service::PutChunks put{file->identity(), {plan::Placement::copies_on({node})}, {}};
    for (std::size_t i = 0; i < 40; ++i) {
      Bytes data(3000 + 17 * i + node);
      for (std::byte& byte : data) byte = static_cast<std::byte>(job.random()());
      put.chunks.push_back(service::PutChunk::sealed(test::content_name(data), 0, data));
    }
    EXPECT_TRUE(job.client().call(node, put).is_ok());
    const service::MakeUnits request{
        file->identity(), attempt, kParities + 1, kData, false, {}, {}};
    const auto reply = job.client().call(node, request);
    EXPECT_TRUE(reply.is_ok() && reply->units > 2);
    longest = std::max(longest, reply->longest);
    return reply->units;
  }

  // Of unit `unit` of three nodes, from `first` on; the next two keep the parities.
  engine::NewStripe stripe(std::uint32_t unit, NodeIndex first = 0) const {
    engine::NewStripe made{Id128::random(), {}, {}};
    for (unsigned i = 0; i < kData + kParities; ++i) {
      made.nodes.push_back(static_cast<NodeIndex>((first + i) % kNodes));
      if (i < kData) made.units.push_back(unit);
    }
    return made;
  }

  std::vector<bool> make(const std::vector<engine::NewStripe>& stripes) {
    std::vector<NodeIndex> nodes{0, 1, 2, 3, 4, 5};
    const engine::StripeGroup group(nodes, job.ranks());
    const engine::ChunkSource source(job.client(), *file->local, file->identity());
    engine::StoredUnits of_nodes(job.client(), source, file->identity(), attempt);
    engine::StripeMaker maker(job.client(), of_nodes, group, {file->identity(), 0, {}});
    const std::vector<bool> made = maker.make(stripes, longest);
    figures = maker.figures();
    return made;
  }

  // All of a unit's bytes, and a part of a stripe.
  Bytes bytes_of(NodeIndex node, std::uint32_t unit) {
    const auto list =
        job.client().call(node, service::ListUnits{file->identity(), attempt, {unit}});
    const auto reply =
        job.client().call(node, service::GetChunks{file->identity(), list->units.at(0)});
    Bytes all;
    for (const auto& chunk : reply->chunks(list->units[0])) {
      all.insert(all.end(), chunk.begin(), chunk.end());
    }
    return all;
  }
  Bytes part_of(NodeIndex node, const Fingerprint& name) {
    const auto at = job.client().call(node, service::Locate{file->identity(), {name}});
    const std::vector<NamedChunk> asked{{name, at->locations.at(0).length}};
    if (asked[0].length == 0) return {};
    const auto reply = job.client().call(node, service::GetChunks{file->identity(), asked});
    const auto bytes = reply->chunks(asked);
    return {bytes.at(0).begin(), bytes.at(0).end()};
  }
  void expect_parities(const engine::NewStripe& stripe) {
    std::vector<Bytes> bytes;
    std::size_t length = 0;
    for (unsigned slot = 0; slot < kData; ++slot) {
      bytes.push_back(bytes_of(stripe.nodes[slot], stripe.units[slot]));
      length = std::max(length, bytes.back().size());
    }
    std::vector<Bytes> parities(kParities, Bytes(length));
    const std::vector<std::span<std::byte>> spans(parities.begin(), parities.end());
    for (unsigned slot = 0; slot < kData; ++slot) {
      ErasureCode(kData, kParities).add(slot, bytes[slot], spans);
    }
    for (unsigned p = 0; p < kParities; ++p) {
      const unsigned slot = kData + p;
      EXPECT_EQ(part_of(stripe.nodes[slot], plan::part_name(stripe.id, plan::Part::kParity, slot)),
                parities[p]);
      const Bytes table =
          part_of(stripe.nodes[slot], plan::part_name(stripe.id, plan::Part::kWholeTable, slot));
      EXPECT_TRUE(plan::decode_stripe_table(table, kData));
    }
  }

  void fail(NodeIndex at, Opcode what) {
    job.intercept = [at, what](NodeIndex node, Opcode opcode) -> std::optional<Result<Bytes>> {
      if (node != at || opcode != what) return std::nullopt;
      return Result<Bytes>(Status(Code::kIo, "it is said to be broken"));
    };
  }

  Cluster cluster{Breakage::kNone};
  Job job;
  std::unique_ptr<engine::JobFile> file;
  Id128 attempt;
  std::vector<std::uint32_t> units;  // by node
  std::uint32_t longest = 0;
  engine::StripeMaker::Figures figures;
};

TEST_F(StripeMakerTest, MakesParitiesOfAllUnits) {
  std::vector<engine::NewStripe> stripes;
  for (std::uint32_t unit = 0; unit < 2; ++unit) {
    for (const NodeIndex first : {0, 3})
      stripes.push_back(stripe(unit, static_cast<NodeIndex>(first)));
  }
  EXPECT_EQ(make(stripes), std::vector<bool>(4, true));
  std::uint64_t data = 0;
  std::uint64_t stored = 0;
  std::uint64_t tables = 0;
  for (const engine::NewStripe& one : stripes) {
    expect_parities(one);
    for (unsigned slot = 0; slot < kData; ++slot) {
      data += bytes_of(one.nodes[slot], one.units[slot]).size();
    }
    for (unsigned slot = kData; slot < kData + kParities; ++slot) {
      stored += part_of(one.nodes[slot], plan::part_name(one.id, plan::Part::kParity, slot)).size();
      tables +=
          part_of(one.nodes[slot], plan::part_name(one.id, plan::Part::kWholeTable, slot)).size();
    }
  }
  EXPECT_EQ(figures.stored_bytes, stored + tables);
  // All units, and of each stripe one parity, with its table, from who made both.
  EXPECT_EQ(figures.sent_bytes, data + (stored + tables) / 2);
}

TEST_F(StripeMakerTest, NothingIsMadeOfNothing) {
  EXPECT_TRUE(make({}).empty());
}

TEST_F(StripeMakerTest, AStripeWithoutOneOfItsUnitsIsNotMade) {
  engine::NewStripe no_such = stripe(0);
  no_such.units[1] = units[1];
  const engine::NewStripe other = stripe(1, 3);
  EXPECT_EQ(make({no_such, other}), (std::vector<bool>{false, true}));
  expect_parities(other);
  EXPECT_TRUE(part_of(3, plan::part_name(no_such.id, plan::Part::kParity, kData)).empty());
}

TEST_F(StripeMakerTest, NorOneWhoseChunksCannotBeRead) {
  fail(2, Opcode::kGetChunks);
  const std::vector<bool> made = make({stripe(0), stripe(0, 3), stripe(1)});
  EXPECT_EQ(made, (std::vector<bool>{false, true, false}));
}

TEST_F(StripeMakerTest, NorOneOfWhichAChunkIsDamagedOnItsWay) {
  bool damaged = false;
  job.intercept = [&](NodeIndex node, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (node != 2 || opcode != Opcode::kGetChunks || damaged) return std::nullopt;
    damaged = true;
    return Result<Bytes>(Bytes(100, std::byte{1}));
  };
  EXPECT_EQ(make({stripe(0), stripe(0, 3)}), (std::vector<bool>{false, true}));
  EXPECT_TRUE(damaged);
}

TEST_F(StripeMakerTest, NorOneWhoseParitiesAreNotAllTaken) {
  for (const NodeIndex full : {3, 4}) {
    fail(static_cast<NodeIndex>(full), Opcode::kPutChunks);
    EXPECT_EQ(make({stripe(0), stripe(0, 4)}), (std::vector<bool>{false, true}));
  }
}

}  // namespace
}  // namespace dedup::simulation
