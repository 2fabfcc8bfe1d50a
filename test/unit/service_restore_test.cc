// A node that gets chunks back from the others: four nodes in one program, their executors by hand.
#include "service/restore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/fields.h"
#include "store/system.h"
#include "test/hooks/faulty_system.h"
#include "test/hooks/names.h"
#include "test/unit/fake_responder.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::service {
namespace {

constexpr NodeIndex kNodes = 4;

// Of executors; stands still, but by hand.
std::int64_t now = 0;

struct Chunk {
  Fingerprint fingerprint;
  Bytes data;
};

class ServiceRestore : public testing::Test {
 protected:
  struct Node {
    std::unique_ptr<Executor> executor;
    std::unique_ptr<Handler> handler;
  };

  // What one node sends to the others: carried out when somebody waits for it.
  class FromNode final : public Transport {
   public:
    FromNode(ServiceRestore& test, NodeIndex self) : test_(test), self_(self) {}
    NodeIndex nodes() const override { return kNodes; }
    NodeIndex self() const override { return self_; }
    const std::string& node_name(NodeIndex) const override { return name_; }
    std::unique_ptr<Call> send(NodeIndex node, Opcode opcode, Bytes body) override {
      EXPECT_NE(node, self_) << "a node that asks itself";
      EXPECT_EQ(opcode, Opcode::kGetChunks) << "what a service may be made to wait for";
      ++test_.asked[node];
      auto& under_way = test_.under_way[self_];
      EXPECT_TRUE(under_way.insert(node).second) << "two requests to one node";
      test_.most_under_way = std::max(test_.most_under_way, under_way.size());
      return std::make_unique<Asked>(*this, node, std::move(body));
    }

   private:
    class Asked final : public Call {
     public:
      Asked(FromNode& from, NodeIndex node, Bytes body)
          : from_(from), node_(node), body_(std::move(body)) {}
      ~Asked() override { from_.test_.under_way[from_.self_].erase(node_); }
      Result<Bytes> receive() override {
        from_.test_.under_way[from_.self_].erase(node_);
        if (from_.test_.intercept) {
          auto instead = from_.test_.intercept(node_, body_);
          if (instead) return *instead;
        }
        const auto outcome = from_.test_.ask_raw(node_, Opcode::kGetChunks, body_);
        if (!outcome->status.is_ok()) return outcome->status;
        return outcome->body;
      }

     private:
      FromNode& from_;
      NodeIndex node_;
      Bytes body_;
    };

    ServiceRestore& test_;
    NodeIndex self_;
    std::string name_ = "a node";
  };

  void SetUp() override {
    identity_ = test::random_id(random_);
    for (NodeIndex n = 0; n < kNodes; ++n) {
      auto executor =
          std::make_unique<Executor>(Executor::Options{Executor::Run::kByHand, [] { return now; }});
      executor->connect(std::make_unique<Client>(std::make_unique<FromNode>(*this, n)));
      auto handler = make_node_handler("n" + std::to_string(n), n, kNodes, *executor);
      nodes_.push_back({std::move(executor), std::move(handler)});
      Attach attach;
      attach.identity = identity_;
      attach.path = "/f";
      attach.store_template = temp_ / "store-%n";
      attach.write = attach.create = true;
      const auto attached = ask(n, attach);
      ASSERT_TRUE(attached->status.is_ok()) << attached->status.message();
    }
  }

  std::shared_ptr<Outcome> ask_raw(NodeIndex node, Opcode opcode, const Bytes& body,
                                   ConnectionId connection = 1) {
    auto outcome = std::make_shared<Outcome>();
    nodes_[node].handler->handle(opcode, body,
                                 std::make_unique<FakeResponder>(connection, outcome));
    return outcome;
  }
  template <typename Request>
  std::shared_ptr<Outcome> ask(NodeIndex node, const Request& request,
                               ConnectionId connection = 1) {
    return ask_raw(node, Request::kOpcode, encoded(request), connection);
  }

  // Every other one had no twin.
  std::vector<Chunk> chunks(std::size_t count, std::size_t size = 4096) {
    std::vector<Chunk> out;
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back({test::random_fingerprint(random_), test::random_bytes(random_, size)});
      if (i % 2 == 0) out.back().fingerprint = test::single_name(out.back().data, ++made_);
    }
    return out;
  }
  void put(NodeIndex node, const std::vector<Chunk>& what) {
    PutChunks request{identity_, {plan::Placement::copies_on({node})}, {}};
    for (const Chunk& chunk : what) {
      request.chunks.push_back(PutChunk::sealed(chunk.fingerprint, 0, chunk.data));
    }
    const auto outcome = ask(node, request);
    ASSERT_TRUE(outcome->status.is_ok()) << outcome->status.message();
  }
  Restore restore(const std::vector<Chunk>& what, const NodeSet& sources, NodeIndex to = 0) const {
    const auto before = plan::Placement::copies_on(sources);
    plan::Placement after = before;
    after.add_copy(to);
    Restore request{identity_, false, 0, {before}, {after}, {}};
    for (const Chunk& chunk : what) {
      request.chunks.push_back(
          {chunk.fingerprint, static_cast<std::uint32_t>(chunk.data.size()), 0, 0});
    }
    return request;
  }
  void run(NodeIndex node = 0) {
    while (nodes_[node].executor->run_one()) {
    }
  }
  static RestoreReply reply_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.answers, 1);
    EXPECT_TRUE(outcome.status.is_ok()) << outcome.status.message();
    return decoded<RestoreReply>(outcome.body).value_or(RestoreReply{});
  }
  // How many of them the node has, as they should be.
  std::size_t held(NodeIndex node, const std::vector<Chunk>& what) {
    GetChunks request{identity_, {}};
    for (const Chunk& chunk : what) {
      request.chunks.push_back({chunk.fingerprint, static_cast<std::uint32_t>(chunk.data.size())});
    }
    const auto outcome = ask(node, request);
    EXPECT_TRUE(outcome->status.is_ok()) << outcome->status.message();
    ChunksReply reply;
    EXPECT_TRUE(ChunksReply::from_body(outcome->body, reply));
    const auto got = reply.chunks(request.chunks);
    EXPECT_EQ(got.size(), what.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i].empty()) continue;
      EXPECT_TRUE(
          std::equal(got[i].begin(), got[i].end(), what[i].data.begin(), what[i].data.end()));
      ++count;
    }
    return count;
  }
  static std::vector<std::uint8_t> none(std::size_t count) {
    return std::vector<std::uint8_t>(count);
  }

  test::TempDir temp_;
  test::Random random_{7};
  std::uint64_t made_ = 0;
  Id128 identity_;
  std::vector<Node> nodes_;
  // If set, asked before a node answers: what is answered instead, if anything.
  std::function<std::optional<Result<Bytes>>(NodeIndex, const Bytes&)> intercept;
  std::map<NodeIndex, int> asked;                      // requests to each
  std::map<NodeIndex, std::set<NodeIndex>> under_way;  // by who asks
  std::size_t most_under_way = 0;
};

TEST_F(ServiceRestore, AllThatHaveChunksAreAskedAtTheSameTime) {
  const auto what = chunks(3000);  // 12 MiB
  for (const NodeIndex n : {1, 2, 3}) put(n, what);
  const auto outcome = ask(0, restore(what, {1, 2, 3}));
  EXPECT_EQ(outcome->answers, 0);  // not by the loop
  EXPECT_TRUE(asked.empty());
  run();
  const RestoreReply reply = reply_of(*outcome);
  EXPECT_EQ(reply.stored, what.size());
  EXPECT_EQ(reply.lost, none(what.size()));
  EXPECT_EQ(held(0, what), what.size());
  EXPECT_EQ(most_under_way, 3u);
  // 24 requests of 128 chunks, and no chunk asked for twice.
  for (const NodeIndex n : {1, 2, 3}) EXPECT_GE(asked[n], 4);
  EXPECT_LE(asked[1] + asked[2] + asked[3], 27);
}

TEST_F(ServiceRestore, SeveralTargetsAreServedByTheSameSources) {
  const auto a = chunks(1500);
  const auto b = chunks(1500);
  for (const NodeIndex n : {2, 3}) {
    put(n, a);
    put(n, b);
  }
  const auto first = ask(0, restore(a, {2, 3}, 0));
  const auto second = ask(1, restore(b, {2, 3}, 1));
  bool both = false;
  for (bool more = true; more;) {
    more = nodes_[0].executor->run_one();
    more = nodes_[1].executor->run_one() || more;
    both = both || (!under_way[0].empty() && !under_way[1].empty());
  }
  EXPECT_TRUE(both);
  EXPECT_EQ(reply_of(*first).stored, a.size());
  EXPECT_EQ(reply_of(*second).stored, b.size());
  EXPECT_EQ(held(0, a), a.size());
  EXPECT_EQ(held(1, b), b.size());
}

TEST_F(ServiceRestore, WhatIsHereIsNotFetched) {
  const auto what = chunks(10);
  put(0, what);
  const auto outcome = ask(0, restore(what, {1}));
  run();
  const RestoreReply reply = reply_of(*outcome);
  EXPECT_EQ(reply.stored, 0u);
  EXPECT_EQ(reply.lost, none(10));
  EXPECT_TRUE(asked.empty());
}

TEST_F(ServiceRestore, WhatIsInTheBackgroundKeepsToTheRateThatItIsAskedFor) {
  const auto what = chunks(256);  // of 4 KiB: two requests of 512 KiB
  put(1, what);
  Restore request = restore(what, {1});
  request.in_background = true;
  request.bytes_per_second = 512 << 10;
  const auto outcome = ask(0, request);
  run();
  EXPECT_EQ(asked[1], 1);
  now += 999'999'999;
  run();
  EXPECT_EQ(asked[1], 1);
  // Whoever waits for a commit is not held up.
  const auto other = chunks(1);
  put(2, other);
  const auto commit = ask(0, restore(other, {2}), 2);
  run();
  EXPECT_EQ(reply_of(*commit).stored, 1u);
  now += 1;
  run();
  EXPECT_EQ(reply_of(*outcome).stored, what.size());
  EXPECT_EQ(held(0, what), what.size());
}

TEST_F(ServiceRestore, ADamagedReplyIsAskedForElsewhere) {
  const auto what = chunks(20);
  put(1, what);
  put(2, what);
  int damaged = 0;
  intercept = [&](NodeIndex node, const Bytes& body) -> std::optional<Result<Bytes>> {
    if (node != 1) return std::nullopt;
    const auto outcome = ask_raw(node, Opcode::kGetChunks, body);
    // A bit of each chunk's last byte.
    Bytes reply = outcome->body;
    const std::size_t count = what.size();
    for (std::size_t i = 0; i < count; ++i) reply[reply.size() - 1 - i * 4096] ^= std::byte{1};
    ++damaged;
    return reply;
  };
  const auto outcome = ask(0, restore(what, {1}));
  run();
  EXPECT_EQ(damaged, 1);
  EXPECT_EQ(reply_of(*outcome).stored, what.size());
  EXPECT_EQ(held(0, what), what.size());
  EXPECT_GE(asked[2], 1);  // whom nobody had named
}

TEST_F(ServiceRestore, ANodeThatCannotBeReachedIsLeftOut) {
  const auto what = chunks(2000);
  for (const NodeIndex n : {1, 2}) put(n, what);
  intercept = [](NodeIndex node, const Bytes&) -> std::optional<Result<Bytes>> {
    if (node != 1) return std::nullopt;
    return Result<Bytes>(Status(Code::kUnreachable, "gone"));
  };
  const auto outcome = ask(0, restore(what, {1, 2}));
  run();
  EXPECT_EQ(reply_of(*outcome).stored, what.size());
  EXPECT_EQ(held(0, what), what.size());
}

TEST_F(ServiceRestore, WhatNobodyHasIsLostAndTheRestIsNot) {
  const auto there = chunks(10);
  auto all = there;
  const auto gone = chunks(3);
  all.insert(all.begin() + 4, gone.begin(), gone.end());
  put(2, there);
  const auto outcome = ask(0, restore(all, {1, 2}));
  run();
  const RestoreReply reply = reply_of(*outcome);
  EXPECT_EQ(reply.stored, there.size());
  std::vector<std::uint8_t> lost = none(13);
  std::fill_n(lost.begin() + 4, 3, 1);
  EXPECT_EQ(reply.lost, lost);
  EXPECT_EQ(held(0, there), there.size());
  for (const NodeIndex n : {1, 2, 3}) EXPECT_GE(asked[n], 1) << n;
}

TEST_F(ServiceRestore, ATargetThatIsFullSaysSoAndMayTryAgain) {
  const auto what = chunks(500);
  put(1, what);
  store::FaultPlan plan;
  store::FaultySystem faulty(store::kernel(), plan);
  store::System& before = store::use_system(faulty);
  plan.set(store::Fault::kFull, 3);
  const auto outcome = ask(0, restore(what, {1}));
  run();
  EXPECT_EQ(plan.struck, 1u);
  plan.set(store::Fault::kNone, 0);
  EXPECT_EQ(outcome->answers, 1);
  EXPECT_EQ(outcome->status.code(), Code::kNoSpace) << outcome->status.message();
  EXPECT_NE(outcome->status.message().find("n0"), std::string::npos);
  EXPECT_LT(held(0, what), what.size());
  const auto again = ask(0, restore(what, {1}));
  run();
  EXPECT_EQ(reply_of(*again).lost, none(what.size()));
  EXPECT_EQ(held(0, what), what.size());
  // Open files go with the system that opened them.
  nodes_.clear();
  store::use_system(before);
}

TEST_F(ServiceRestore, StoppedInTheMiddleItIsGoneOnWithByAnother) {
  const auto what = chunks(2000);
  put(1, what);
  const auto outcome = ask(0, restore(what, {1}));
  EXPECT_TRUE(nodes_[0].executor->run_one());
  EXPECT_TRUE(nodes_[0].executor->run_one());
  const std::size_t some = held(0, what);
  EXPECT_GT(some, 0u);
  EXPECT_LT(some, what.size());
  nodes_[0].executor->stop();
  nodes_[0].executor->deliver();
  EXPECT_EQ(outcome->answers, 1);
  EXPECT_FALSE(outcome->status.is_ok());
  EXPECT_TRUE(under_way[0].empty());
  // By another process: it removes what was not committed, and gets all of it.
  Executor next(Executor::Options{.run = Executor::Run::kByHand});
  next.connect(std::make_unique<Client>(std::make_unique<FromNode>(*this, 0)));
  nodes_[0].handler.reset();
  nodes_[0].handler = make_node_handler("n0", 0, kNodes, next);
  Attach attach;
  attach.identity = identity_;
  attach.path = "/f";
  attach.store_template = temp_ / "store-%n";
  attach.write = attach.create = true;
  ASSERT_TRUE(ask(0, attach)->status.is_ok());
  const auto again = ask(0, restore(what, {1}));
  while (next.run_one()) {
  }
  EXPECT_EQ(reply_of(*again).lost, none(what.size()));
  EXPECT_EQ(held(0, what), what.size());
  nodes_[0].handler.reset();
}

TEST_F(ServiceRestore, AConnectionThatEndsEndsWhatItAskedFor) {
  const auto what = chunks(2000);
  put(1, what);
  const auto outcome = ask(0, restore(what, {1}), 5);
  const auto other = ask(0, restore(what, {1}), 6);
  EXPECT_TRUE(nodes_[0].executor->run_one());
  nodes_[0].handler->closed(5);
  const int before = asked[1];
  run();
  EXPECT_EQ(outcome->answers, 0);
  EXPECT_EQ(reply_of(*other).lost, none(what.size()));
  EXPECT_EQ(held(0, what), what.size());
  EXPECT_GT(asked[1], before);
}

TEST_F(ServiceRestore, AFileThatIsNotAttachedIsAnError) {
  Restore request = restore(chunks(3), {1});
  request.identity = test::random_id(random_);
  const auto outcome = ask(0, request);
  run();
  EXPECT_EQ(outcome->status.code(), Code::kInternal);
  // Nor one that is detached on the way.
  const auto what = chunks(2000);
  put(1, what);
  const auto detached = ask(0, restore(what, {1}));
  EXPECT_TRUE(nodes_[0].executor->run_one());
  EXPECT_TRUE(ask(0, Detach{identity_, false, {}})->status.is_ok());
  run();
  EXPECT_EQ(detached->answers, 1);
  EXPECT_EQ(detached->status.code(), Code::kInternal);
}

TEST_F(ServiceRestore, APlacementThatCannotBeIsRefused) {
  const auto what = chunks(1);
  put(1, what);
  Restore request = restore(what, {1});
  request.placements = {plan::Placement::copies_on({1, 2})};  // not the target
  const auto outcome = ask(0, request);
  run();
  EXPECT_EQ(outcome->status.code(), Code::kArgument);
}

}  // namespace
}  // namespace dedup::service
