// A node's handler: that each request reaches its role, and that the roles go together.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/fields.h"
#include "service/executor.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "service/server.h"
#include "test/hooks/names.h"
#include "test/unit/fake_responder.h"

namespace dedup::service {
namespace {

class NodeHandlerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "dedup-node-handler-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    handler_ = make_node_handler("n3", 3, 4, executor_);
  }
  void TearDown() override {
    handler_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::shared_ptr<Outcome> ask_raw(Opcode opcode, const Bytes& body, ConnectionId connection = 1) {
    auto outcome = std::make_shared<Outcome>();
    handler_->handle(opcode, body, std::make_unique<FakeResponder>(connection, outcome));
    return outcome;
  }
  template <typename Request>
  std::shared_ptr<Outcome> ask(const Request& request, ConnectionId connection = 1) {
    return ask_raw(Request::kOpcode, encoded(request), connection);
  }
  Attach attach() const {
    Attach request;
    request.identity.bytes[0] = 5;
    request.path = "/f";
    request.store_template = directory_ + "/store-%n";
    request.write = request.create = true;
    return request;
  }

  std::string directory_;
  Executor executor_{{Executor::Run::kByHand}};
  std::unique_ptr<Handler> handler_;
};

TEST_F(NodeHandlerTest, RefusesWhatItDoesNotUnderstand) {
  const auto unknown = ask_raw(static_cast<Opcode>(200), {});
  EXPECT_EQ(unknown->answers, 1);
  EXPECT_EQ(unknown->status.code(), Code::kInternal);
  EXPECT_NE(unknown->status.message().find("n3"), std::string::npos);
  Bytes shorter = encoded(OpenBegin{"/f"});
  shorter.pop_back();
  EXPECT_EQ(ask_raw(Opcode::kOpenBegin, shorter)->status.code(), Code::kInternal);
  Bytes longer = encoded(OpenBegin{"/f"});
  longer.push_back({});
  EXPECT_EQ(ask_raw(Opcode::kOpenBegin, longer)->status.code(), Code::kInternal);
  EXPECT_TRUE(ask(OpenBegin{"/f"})->status.is_ok());
}

TEST_F(NodeHandlerTest, EveryRequestIsAnsweredByItsRole) {
  // Undecodable on purpose: one that is not dispatched at all says something else.
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    const auto outcome = ask_raw(static_cast<Opcode>(opcode), Bytes(1));
    ASSERT_EQ(outcome->answers, 1);
    const bool exists = (opcode >= 1 && opcode <= 18) || (opcode >= 32 && opcode <= 40) ||
                        (opcode >= 64 && opcode <= 106);
    const std::string expected = exists ? "malformed request " : "unknown request ";
    EXPECT_NE(outcome->status.message().find(expected + std::to_string(opcode)), std::string::npos)
        << outcome->status.message();
  }
}

TEST_F(NodeHandlerTest, TurnsEndWithTheirConnection) {
  EXPECT_EQ(ask(OpenBegin{"/f"}, 1)->answers, 1);
  const auto second = ask(OpenBegin{"/f"}, 2);
  EXPECT_EQ(second->answers, 0);
  handler_->closed(1);
  EXPECT_EQ(second->answers, 1);
  EXPECT_TRUE(second->status.is_ok());
}

TEST_F(NodeHandlerTest, BlockHomesKnowWhatIsAttached) {
  const Resolve resolve{attach().identity, {{0, 1}}};
  EXPECT_EQ(ask(resolve)->status.code(), Code::kNotFound);
  const auto attached = ask(attach());
  ASSERT_TRUE(attached->status.is_ok()) << attached->status.message();
  EXPECT_TRUE(ask(Space{attach().identity})->status.is_ok());
  const auto resolved = ask(resolve);
  ASSERT_TRUE(resolved->status.is_ok());
  const auto reply = decoded<ResolveReply>(resolved->body);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->base.is_zero());
  EXPECT_TRUE(ask(Detach{attach().identity, false, {}})->status.is_ok());
  EXPECT_EQ(ask(resolve)->status.code(), Code::kNotFound);
}

TEST_F(NodeHandlerTest, TellsWhenSomebodyCanWrite) {
  Attach reading = attach();
  reading.write = false;
  const Id128 identity = reading.identity;
  const Id128 first{{1}};
  const Id128 second{{2}};
  const auto is_awaited = [&](const Id128& ticket) {
    return decoded<AskWritersReply>(ask(AskWriters{identity, ticket})->body)->is_awaited;
  };
  const auto one = ask(AwaitWriter{first}, 7);
  const auto two = ask(AwaitWriter{second}, 8);
  EXPECT_FALSE(is_awaited(first));  // the file is not attached
  ASSERT_TRUE(ask(reading)->is_ok());
  EXPECT_TRUE(is_awaited(first) && is_awaited(second));
  EXPECT_FALSE(is_awaited(Id128{{3}}));
  EXPECT_EQ(ask(AwaitWriter{second}, 9)->code(), Code::kArgument);
  handler_->closed(7);
  EXPECT_FALSE(is_awaited(first));
  EXPECT_TRUE(is_awaited(second));
  ASSERT_TRUE(ask(reading)->is_ok());  // another reader
  EXPECT_TRUE(one->waits() && two->waits());
  ASSERT_TRUE(ask(attach())->is_ok());
  EXPECT_TRUE(two->is_ok());
  EXPECT_FALSE(is_awaited(second));
  const auto three = ask(AwaitWriter{first});
  EXPECT_FALSE(is_awaited(first));  // somebody can write
  EXPECT_TRUE(three->waits());
}

TEST_F(NodeHandlerTest, TellsWhenAFileIsDetachedOrAnotherGeneration) {
  Attach reading = attach();
  reading.write = false;
  const auto watched = [&] {
    const Id128 ticket = Id128::random();
    auto waiting = ask(AwaitWriter{ticket});
    EXPECT_TRUE(
        decoded<AskWritersReply>(ask(AskWriters{reading.identity, ticket})->body)->is_awaited);
    EXPECT_TRUE(waiting->waits());
    return waiting;
  };
  ASSERT_TRUE(ask(reading)->is_ok());
  const auto until_other = watched();
  reading.base = Id128{{4}};
  ASSERT_TRUE(ask(reading)->is_ok());
  EXPECT_TRUE(until_other->is_ok());
  const auto until_gone = watched();
  Attach other = reading;
  other.identity = Id128{{77}};
  ASSERT_TRUE(ask(other)->is_ok());
  EXPECT_TRUE(ask(Detach{other.identity, false, {}})->is_ok());
  EXPECT_TRUE(until_gone->waits());  // it was not asked about that one
  EXPECT_TRUE(ask(Detach{reading.identity, false, {}})->is_ok());
  EXPECT_TRUE(until_gone->is_ok());
}

TEST_F(NodeHandlerTest, LendsToNobodyElsewhere) {
  ASSERT_TRUE(ask(attach())->is_ok());
  EXPECT_FALSE(ask(LendSegment{attach().identity, 1})->is_ok());  // it is not here
  const Bytes data(1000, std::byte{5});
  PutChunks put{attach().identity, {plan::Placement::copies_on({3})}, {}};
  put.chunks.push_back(PutChunk::sealed(test::content_name(data), 0, data));
  ASSERT_TRUE(ask(put)->is_ok());
  const auto located =
      decoded<LocateReply>(ask(Locate{attach().identity, {put.chunks[0].fingerprint}})->body);
  ASSERT_TRUE(located && located->locations.size() == 1 && located->locations[0].length == 1000);
  // A responder that leads to no process of this host.
  EXPECT_EQ(ask(LendSegment{attach().identity, located->locations[0].segment})->code(),
            Code::kUnsupported);
}

TEST_F(NodeHandlerTest, AFailedAttachAttachesNothing) {
  Attach request = attach();
  request.store_template = "/proc/no/such/place";
  EXPECT_FALSE(ask(request)->status.is_ok());
  EXPECT_EQ(ask(Resolve{request.identity, {{0, 1}}})->status.code(), Code::kNotFound);
}

}  // namespace
}  // namespace dedup::service
