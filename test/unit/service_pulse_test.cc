// Nodes that give no sign of life, services that are busy, and those that have ended.
#include "service/pulse.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "service/client.h"
#include "service/local_calls.h"
#include "service/server.h"

namespace dedup::service {
namespace {

using namespace std::chrono_literals;

constexpr Secret kSecret = {4, 5, 6};
constexpr std::chrono::seconds kShort{1};

template <Opcode kCode>
struct Asking {
  static constexpr Opcode kOpcode = kCode;
  using Reply = Empty;
};
using Quick = Asking<Opcode::kGetSize>;
using Slow = Asking<Opcode::kWriteIndex>;  // takes longer than kShort
using Turn = Asking<Opcode::kLock>;        // never comes

class Working : public Handler {
 public:
  explicit Working(std::promise<void>* asked_for_turn = nullptr) : asked_(asked_for_turn) {}
  void handle(Opcode opcode, std::span<const std::byte>,
              std::unique_ptr<Responder> responder) override {
    if (opcode == Opcode::kLock) {
      waiting_.push_back(std::move(responder));
      if (asked_ != nullptr) asked_->set_value();
      return;
    }
    if (opcode == Opcode::kWriteIndex) std::this_thread::sleep_for(2500ms);
    responder->reply({}, {});
  }
  void closed(ConnectionId connection) override {
    std::erase_if(waiting_, [&](auto& one) { return one->connection() == connection; });
  }

 private:
  std::promise<void>* asked_;
  std::vector<std::unique_ptr<Responder>> waiting_;
};

std::unique_ptr<Server> start(std::promise<void>* asked_for_turn = nullptr) {
  auto server = Server::start(kSecret, true, std::make_unique<Working>(asked_for_turn), kShort);
  EXPECT_TRUE(server.is_ok()) << server.status().message();
  return std::move(*server);
}

Peer peer_of(const Server& server, const std::string& node = "n0") {
  return {node, server.addresses(), server.port(), {}, server.pulse()};
}

// What a process that was stopped looks like: the kernel takes connections, and nobody answers.
class Stopped {
 public:
  Stopped() : listeners_(*Listeners::open({"127.0.0.1"})) {}
  Peer peer(const std::string& node) const {
    return {node, {"127.0.0.1"}, listeners_.port(), {}, listeners_.port()};
  }

 private:
  Listeners listeners_;
};

TEST(Pulse, TellsThatAProcessRuns) {
  const auto pulse = Pulse::start({"127.0.0.1"});
  ASSERT_TRUE(pulse.is_ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(has_pulse({"127.0.0.1"}, (*pulse)->port(), kShort));
  // One of several addresses is enough.
  EXPECT_TRUE(has_pulse({"127.0.0.2", "127.0.0.1"}, (*pulse)->port(), kShort));
  EXPECT_FALSE(has_pulse({}, (*pulse)->port(), kShort));
}

TEST(Pulse, EndsWithItsProcess) {
  auto pulse = Pulse::start({"127.0.0.1"});
  ASSERT_TRUE(pulse.is_ok());
  const std::uint16_t port = (*pulse)->port();
  pulse->reset();
  EXPECT_FALSE(has_pulse({"127.0.0.1"}, port, kShort));
}

TEST(Pulse, IsNotFeltOfAProcessThatWasStopped) {
  const Stopped stopped;
  EXPECT_FALSE(has_pulse({"127.0.0.1"}, stopped.peer("n").pulse, kShort));
}

TEST(Patience, ABusyServiceIsWaitedFor) {
  const auto server = start();
  Client client({peer_of(*server)}, 0, kSecret, nullptr, kShort);
  EXPECT_TRUE(client.call(0, Slow{}).is_ok());
  // Also by those who connect meanwhile.
  auto slow = client.start(0, Slow{});
  EXPECT_TRUE(client.call(0, Quick{}).is_ok());
  EXPECT_TRUE(slow.wait().is_ok());
  EXPECT_FALSE(client.has_missed());
  EXPECT_TRUE(client.is_there(0));
}

TEST(Patience, AProcessThatWasStoppedIsLost) {
  const Stopped stopped;
  Client client({stopped.peer("n0")}, 0, kSecret, nullptr, kShort);
  const Status status = client.call(0, Quick{}).status();
  EXPECT_EQ(Code::kUnreachable, status.code());
  EXPECT_NE(std::string::npos, status.message().find("no sign of life")) << status.message();
  EXPECT_TRUE(client.has_missed());
  EXPECT_FALSE(client.is_there(0));
}

// A turn that only ranks of a lost node could give back never comes.
TEST(Patience, NobodyWaitsForTheTurnOfALostNode) {
  const auto server = start();
  const Stopped stopped;
  Client client({peer_of(*server), stopped.peer("n1")}, 0, kSecret, nullptr, kShort);
  const Status status = client.call(0, Turn{}).status();
  EXPECT_EQ(Code::kUnreachable, status.code());
  EXPECT_NE(std::string::npos, status.message().find("node n1")) << status.message();
}

TEST(Patience, NorAtItsOwnService) {
  const auto server = start();
  const Stopped stopped;
  Client client({peer_of(*server), stopped.peer("n1")}, 0, kSecret, &server->local(), kShort);
  const Status status = client.call(0, Turn{}).status();
  EXPECT_EQ(Code::kUnreachable, status.code());
  EXPECT_NE(std::string::npos, status.message().find("node n1")) << status.message();
  EXPECT_TRUE(client.call(0, Quick{}).is_ok());
}

TEST(Ending, AnEndedClientSaysWhy) {
  const auto server = start();
  Client client({peer_of(*server)}, 0, kSecret, &server->local());
  EXPECT_TRUE(client.standing().is_ok());
  client.end("it was a lovely day");
  client.end("another reason");
  EXPECT_EQ("it was a lovely day", client.standing().message());
  EXPECT_EQ("it was a lovely day", client.call(0, Quick{}).status().message());
  EXPECT_FALSE(client.is_there(0));
  EXPECT_TRUE(client.has_missed());
}

TEST(Ending, AStoppedServerAnswersNobody) {
  const auto server = start();
  Client near({peer_of(*server)}, 0, kSecret, &server->local());
  Client far({peer_of(*server), peer_of(*server)}, 1, kSecret, nullptr, kShort);
  EXPECT_TRUE(near.call(0, Quick{}).is_ok());
  EXPECT_TRUE(far.call(0, Quick{}).is_ok());
  server->stop();
  server->stop();
  EXPECT_EQ(Code::kUnreachable, near.call(0, Quick{}).status().code());
  EXPECT_EQ(Code::kUnreachable, far.call(0, Quick{}).status().code());
  EXPECT_FALSE(far.is_there(0));
}

TEST(Ending, WhoWaitsForAStoppedServerIsTold) {
  std::promise<void> asked;
  const auto server = start(&asked);
  Client client({peer_of(*server)}, 0, kSecret, &server->local());
  auto turn = std::async(std::launch::async, [&] { return client.call(0, Turn{}).status(); });
  asked.get_future().wait();
  server->stop();
  EXPECT_FALSE(turn.get().is_ok());
}

}  // namespace
}  // namespace dedup::service
