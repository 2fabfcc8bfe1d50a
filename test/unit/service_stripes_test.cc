// Stripes of several nodes' chunks: six nodes in one program, their executors by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/fields.h"
#include "base/hasher.h"
#include "plan/stripe_content.h"
#include "service/executor.h"
#include "service/messages/store_node.h"
#include "service/server.h"
#include "service/stripe_decoder.h"
#include "test/hooks/names.h"
#include "test/unit/fake_responder.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::service {
namespace {

constexpr NodeIndex kNodes = 7;
constexpr unsigned kData = 4;
constexpr unsigned kParities = 2;

class ServiceStripes : public testing::Test {
 protected:
  struct Node {
    std::unique_ptr<Executor> executor;
    std::unique_ptr<Handler> handler;
  };
  struct Chunk {
    Fingerprint fingerprint;
    Bytes data;
    NamedChunk named() const { return {fingerprint, static_cast<std::uint32_t>(data.size())}; }
  };

  // Carried out when somebody waits for it; nodes that are lost do not answer.
  class Way final : public Transport {
   public:
    Way(ServiceStripes& test, NodeIndex self) : test_(test), self_(self) {}
    NodeIndex nodes() const override { return kNodes; }
    NodeIndex self() const override { return self_; }
    const std::string& node_name(NodeIndex) const override { return name_; }
    std::unique_ptr<Call> send(NodeIndex node, Opcode opcode, Bytes body) override {
      return std::make_unique<Asked>(test_, node, opcode, std::move(body));
    }

   private:
    class Asked final : public Call {
     public:
      Asked(ServiceStripes& test, NodeIndex node, Opcode opcode, Bytes body)
          : test_(test), node_(node), opcode_(opcode), body_(std::move(body)) {}
      Result<Bytes> receive() override {
        if (test_.lost.contains(node_)) return Status(Code::kUnreachable, "it is lost");
        const auto outcome = test_.ask_raw(node_, opcode_, body_);
        if (!outcome->status.is_ok()) return outcome->status;
        if (opcode_ == Opcode::kGetChunks && test_.damaged.contains(node_)) {
          outcome->body.back() ^= std::byte{1};
        }
        return outcome->body;
      }

     private:
      ServiceStripes& test_;
      NodeIndex node_;
      Opcode opcode_;
      Bytes body_;
    };

    ServiceStripes& test_;
    NodeIndex self_;
    std::string name_ = "a node";
  };

  void SetUp() override {
    identity_ = test::random_id(random_);
    attempt_ = test::random_id(random_);
    for (NodeIndex n = 0; n < kNodes; ++n) {
      auto executor = std::make_unique<Executor>(
          Executor::Options{Executor::Run::kByHand, [] { return std::int64_t{0}; }});
      executor->connect(std::make_unique<Client>(std::make_unique<Way>(*this, n)));
      auto handler = make_node_handler("n" + std::to_string(n), n, kNodes, *executor);
      nodes_.push_back({std::move(executor), std::move(handler)});
      Attach attach;
      attach.identity = identity_;
      attach.path = "/f";
      attach.store_template = temp_ / "store-%n";
      attach.write = attach.create = true;
      ASSERT_TRUE(ask_raw(n, attach.kOpcode, encoded(attach))->status.is_ok());
    }
    client_ = std::make_unique<Client>(std::make_unique<Way>(*this, NodeIndex{6}));
  }

  std::shared_ptr<Outcome> ask_raw(NodeIndex node, Opcode opcode, const Bytes& body) {
    auto outcome = std::make_shared<Outcome>();
    nodes_[node].handler->handle(opcode, body, std::make_unique<FakeResponder>(1, outcome));
    while (nodes_[node].executor->run_one()) {
    }
    return outcome;
  }
  template <typename Request>
  typename Request::Reply ask(NodeIndex node, const Request& request) {
    auto reply = client_->call(node, request);
    EXPECT_TRUE(reply.is_ok()) << reply.status().message();
    return reply.is_ok() ? *std::move(reply) : typename Request::Reply{};
  }

  // Chunks that a node has alone; every other one without a twin.
  void fill(NodeIndex node, std::size_t count) {
    PutChunks put{identity_, {plan::Placement::copies_on({node})}, {}};
    for (std::size_t i = 0; i < count; ++i) {
      Chunk chunk{test::random_fingerprint(random_),
                  test::random_bytes(random_, 100 + 300 * (i % 3))};
      chunk.fingerprint =
          i % 2 == 0 ? test::single_name(chunk.data, ++made_) : test::content_name(chunk.data);
      put.chunks.push_back(PutChunk::sealed(chunk.fingerprint, 0, chunk.data));
      of_[node].push_back(std::move(chunk));
    }
    EXPECT_EQ(ask(node, put).stored, count);
  }

  std::uint32_t make_units(NodeIndex node) {
    return ask(node, MakeUnits{identity_, attempt_, kParities + 1, kData, false}).units;
  }

  // One stripe of all that the nodes 0 … 3 have; parities are on 4 and 5.
  plan::StripeUnit make_stripe() {
    plan::StripeUnit stripe{test::random_id(random_), 0, kData, {0, 1, 2, 3, 4, 5}};
    std::vector<plan::UnitChunks> units;
    std::vector<Bytes> bytes;
    std::size_t longest = 0;
    for (NodeIndex n = 0; n < kData; ++n) {
      fill(n, 5 + 3 * n);
      EXPECT_EQ(make_units(n), 1u);
      units.push_back(ask(n, ListUnits{identity_, attempt_, {0}}).units.at(0));
      const ChunksReply reply = ask(n, GetChunks{identity_, units.back()});
      Bytes& unit = bytes.emplace_back();
      for (const auto& chunk : reply.chunks(units.back())) {
        unit.insert(unit.end(), chunk.begin(), chunk.end());
      }
      longest = std::max(longest, unit.size());
    }
    std::vector<Bytes> parities(kParities, Bytes(longest));
    const std::vector<std::span<std::byte>> spans(parities.begin(), parities.end());
    for (unsigned n = 0; n < kData; ++n) {
      ErasureCode(kData, kParities).add(n, bytes[n], spans);
      stripe.unit = static_cast<std::uint8_t>(n);
      ask(static_cast<NodeIndex>(n), JoinStripes{identity_, attempt_, {{0, stripe}}});
    }
    for (unsigned p = 0; p < kParities; ++p) {
      const unsigned slot = kData + p;
      PutChunks put{identity_, {plan::placement_of_parts(stripe)}, {}};
      put.chunks.push_back(
          PutChunk::sealed(plan::part_name(stripe.stripe, plan::Part::kWholeTable, slot), 0,
                           plan::encode_stripe_table(units)));
      put.chunks.push_back(PutChunk::sealed(
          plan::part_name(stripe.stripe, plan::Part::kParity, slot), 0, parities[p]));
      EXPECT_EQ(ask(static_cast<NodeIndex>(slot), put).stored, 2u);
    }
    stripe.unit = 0;
    return stripe;
  }

  // How many of a node's chunks come out right, and that none comes out wrong.
  std::size_t decoded_right(const plan::StripeUnit& stripe, NodeIndex node) {
    plan::StripeUnit unit = stripe;
    unit.unit = static_cast<std::uint8_t>(node);
    std::vector<Bytes> out;
    std::vector<StripeDecoder::Target> targets;
    out.reserve(of_[node].size());
    for (const Chunk& chunk : of_[node]) {
      out.emplace_back(chunk.data.size());
      targets.push_back({chunk.named(), out.back().data()});
    }
    StripeDecoder decoder(*client_, identity_);
    const std::vector<std::size_t> failed = decoder.make_chunks(unit, targets);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool made = !std::binary_search(failed.begin(), failed.end(), i);
      EXPECT_EQ(made, out[i] == of_[node][i].data) << i;
    }
    return out.size() - failed.size();
  }

  bool has(NodeIndex node, const Fingerprint& name) {
    const LocateReply reply = ask(node, Locate{identity_, {name}});
    return reply.locations.front().length != 0;
  }

  test::TempDir temp_;
  test::Random random_{11};
  std::uint64_t made_ = 0;
  Id128 identity_;
  Id128 attempt_;
  std::vector<Node> nodes_;
  std::unique_ptr<Client> client_;  // of a node that has nothing
  std::map<NodeIndex, std::vector<Chunk>> of_;
  std::set<NodeIndex> lost;
  std::set<NodeIndex> damaged;  // of whose replies a byte changes on the way
};

TEST_F(ServiceStripes, AnyTwoNodesMayBeLost) {
  const plan::StripeUnit stripe = make_stripe();
  for (NodeIndex a = 0; a < kData; ++a) {
    for (NodeIndex b = 0; b < kData + kParities; ++b) {
      lost = {a, b};
      EXPECT_EQ(decoded_right(stripe, a), of_[a].size()) << a << ' ' << b;
    }
  }
  lost = {0, 1, 2};
  EXPECT_EQ(decoded_right(stripe, 0), 0u);
}

TEST_F(ServiceStripes, WhatIsDamagedOnItsWayIsNotUsed) {
  const plan::StripeUnit stripe = make_stripe();
  for (NodeIndex bad = 1; bad < kData + kParities; ++bad) {
    lost = {0};
    damaged = {bad};
    EXPECT_EQ(decoded_right(stripe, 0), of_[0].size()) << bad;
  }
  damaged = {1, 4};
  EXPECT_EQ(decoded_right(stripe, 0), 0u);
}

TEST_F(ServiceStripes, ManyUnitsAreMadeAtTheSameTime) {
  constexpr std::size_t kStripes = StripeDecoder::kUnitsAtOnce - 2;
  std::vector<plan::StripeUnit> stripes;
  for (std::size_t s = 0; s < kStripes; ++s) stripes.push_back(make_stripe());
  // Two of each stripe; of each unit those with an odd number.
  struct Lost {
    const Chunk* chunk;
    Bytes out;
  };
  std::vector<std::vector<Lost>> lost_chunks;
  std::vector<StripeDecoder::LostUnit> units;
  for (std::size_t s = 0; s < kStripes; ++s) {
    for (NodeIndex node = 0; node < 2; ++node) {
      const std::size_t each = of_[node].size() / kStripes;
      auto& of_unit = lost_chunks.emplace_back();
      for (std::size_t i = 1; i < each; i += 2) {
        const Chunk& chunk = of_[node][s * each + i];
        of_unit.push_back({&chunk, Bytes(chunk.data.size())});
      }
      StripeDecoder::LostUnit& unit = units.emplace_back(StripeDecoder::LostUnit{stripes[s], {}});
      unit.stripe.unit = static_cast<std::uint8_t>(node);
      for (Lost& one : of_unit) unit.targets.push_back({one.chunk->named(), one.out.data()});
    }
  }
  ASSERT_GT(units.size(), StripeDecoder::kUnitsAtOnce);
  const auto failed_of = [&] {
    for (auto& unit : lost_chunks) {
      for (Lost& one : unit) std::fill(one.out.begin(), one.out.end(), std::byte{0});
    }
    const auto failed = StripeDecoder(*client_, identity_).make_chunks(units);
    EXPECT_EQ(failed.size(), units.size());
    std::size_t count = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
      count += failed[u].size();
      for (std::size_t i = 0; i < lost_chunks[u].size(); ++i) {
        const bool made = !std::binary_search(failed[u].begin(), failed[u].end(), i);
        EXPECT_EQ(made, lost_chunks[u][i].out == lost_chunks[u][i].chunk->data);
      }
    }
    return count;
  };
  lost = {0, 1};
  EXPECT_EQ(failed_of(), 0u);
  // As one chunk that is asked for in vain.
  units[3].targets[0].chunk.fingerprint = test::random_fingerprint(random_);
  EXPECT_EQ(failed_of(), 1u);
  units[3].targets[0].chunk.fingerprint = lost_chunks[3][0].chunk->fingerprint;
  damaged = {3};
  EXPECT_GT(failed_of(), units.size());
}

TEST_F(ServiceStripes, NodesSayHowTheirChunksAreKept) {
  const plan::StripeUnit stripe = make_stripe();
  FindPlacements request{identity_, attempt_, {}};
  for (const Chunk& chunk : of_[2]) request.fingerprints.push_back(chunk.fingerprint);
  request.fingerprints.push_back(test::random_fingerprint(random_));
  const FindPlacementsReply reply = ask(2, request);
  plan::StripeUnit unit = stripe;
  unit.unit = 2;
  ASSERT_EQ(reply.of.size(), of_[2].size() + 1);
  for (std::size_t i = 0; i < of_[2].size(); ++i) {
    EXPECT_EQ(reply.placements[reply.of[i]], plan::Placement::in_stripe(unit));
  }
  EXPECT_EQ(reply.placements[reply.of.back()], plan::Placement());
  // They are kept well enough now.
  EXPECT_EQ(make_units(2), 0u);
  EXPECT_FALSE(client_->call(2, ListUnits{identity_, attempt_, {0}}).is_ok());
}

TEST_F(ServiceStripes, WhatIsLostIsMadeAgainWhereItIsToBe) {
  const plan::StripeUnit stripe = make_stripe();
  plan::StripeUnit moved = stripe;  // the second unit and the first parity are on node 6 now
  const auto said = plan::placement_of_parts(stripe);
  lost = {1, 4};
  Restore request{identity_, false, 0, {plan::Placement::in_stripe(stripe), said}, {}, {}};
  moved.nodes = {0, 6, 2, 3, kNoNode, 5};
  request.placements = {plan::Placement::copies_on({6}), plan::placement_of_parts(moved)};
  plan::StripeUnit second = stripe;
  second.unit = 1;
  request.sources[0] = plan::Placement::in_stripe(second);
  for (const Chunk& chunk : of_[1]) {
    request.chunks.push_back({chunk.fingerprint, chunk.named().length, 0, 0});
  }
  const Fingerprint parity = plan::part_name(stripe.stripe, plan::Part::kParity, 4);
  const Fingerprint whole = plan::part_name(stripe.stripe, plan::Part::kWholeTable, 4);
  const Fingerprint table = plan::part_name(stripe.stripe, plan::Part::kUnitTable, 1);
  for (const Fingerprint& part : {parity, whole, table}) {
    request.chunks.push_back({part, 1, 1, 1});
  }
  const RestoreReply reply = ask(6, request);
  EXPECT_EQ(reply.lost, std::vector<std::uint8_t>(request.chunks.size()));
  for (const RestoreChunk& chunk : request.chunks) EXPECT_TRUE(has(6, chunk.fingerprint));
  // The parity is the one that was.
  lost = {};
  const auto bytes_of = [&](NodeIndex node, const Fingerprint& name) {
    const LocateReply at = ask(node, Locate{identity_, {name}});
    const std::vector<NamedChunk> asked{{name, at.locations.front().length}};
    const ChunksReply chunks = ask(node, GetChunks{identity_, asked});
    const auto bytes = chunks.chunks(asked);
    return Bytes(bytes.front().begin(), bytes.front().end());
  };
  EXPECT_EQ(bytes_of(6, parity), bytes_of(4, parity));
  EXPECT_EQ(bytes_of(6, whole), bytes_of(4, whole));
  EXPECT_EQ(bytes_of(6, table), bytes_of(1, table));
}

TEST_F(ServiceStripes, ATableBringsBackTheChunksThatItNames) {
  const plan::StripeUnit stripe = make_stripe();
  lost = {1};
  const Fingerprint table = plan::part_name(stripe.stripe, plan::Part::kUnitTable, 1);
  const auto said = plan::placement_of_parts(stripe);
  plan::StripeUnit moved = stripe;
  moved.nodes[1] = 6;
  const Restore request{identity_,         false, 0, {said}, {plan::placement_of_parts(moved)},
                        {{table, 1, 0, 0}}};
  EXPECT_EQ(ask(6, request).lost, std::vector<std::uint8_t>{0});
  for (const Chunk& chunk : of_[1]) EXPECT_TRUE(has(6, chunk.fingerprint));
}

TEST_F(ServiceStripes, UnitsAreOfOneSizeAndInOrder) {
  fill(0, 3000);
  const std::uint32_t units = make_units(0);
  EXPECT_GE(units, 30u);
  std::vector<NamedChunk> all;
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t most = 0;
  for (std::uint32_t u = 0; u < units; ++u) {
    const ListUnitsReply reply = ask(0, ListUnits{identity_, attempt_, {u}});
    const std::uint64_t length = plan::unit_length(reply.units.front());
    least = std::min(least, length);
    most = std::max(most, length);
    all.insert(all.end(), reply.units.front().begin(), reply.units.front().end());
  }
  EXPECT_LE(most - least, 2 * 700u);
  ASSERT_EQ(all.size(), of_[0].size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], of_[0][i].named());
}

}  // namespace
}  // namespace dedup::service
