// Requests and replies of every kind with a bit flipped on the way, wherever in them: what is
// handled is what was asked for, and what is taken for a reply is what was replied.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <utility>

#include "service/client.h"
#include "service/server.h"
#include "test/unit/damaged_recv.h"

namespace dedup::service {
namespace {

constexpr Secret kSecret = {4, 5, 6};

struct Blob {
  Bytes bytes;
  static Blob decode(Decoder& d) {
    Blob blob;
    blob.bytes.resize(d.left());
    if (!blob.bytes.empty()) d.get_raw(blob.bytes.data(), blob.bytes.size());
    return blob;
  }
};

template <Opcode opcode>
struct Any {
  static constexpr Opcode kOpcode = opcode;
  using Reply = Blob;
  Bytes bytes;
  void encode(Encoder& e) const { e.put_raw(bytes.data(), bytes.size()); }
};

// What a request is answered with: nothing else has that reply.
Bytes answer_to(Opcode opcode, std::span<const std::byte> body) {
  Bytes reply(1 + body.size(), static_cast<std::byte>(opcode));
  std::copy(body.rbegin(), body.rend(), reply.begin() + 1);
  return reply;
}

class Answering : public Handler {
 public:
  struct Seen {
    std::atomic<Opcode> opcode{};
    const Bytes* body = nullptr;
    std::atomic<unsigned> handled{0};
    std::atomic<unsigned> wrong{0};
  };
  explicit Answering(Seen& seen) : seen_(seen) {}

  void handle(Opcode opcode, std::span<const std::byte> body,
              std::unique_ptr<Responder> responder) override {
    ++seen_.handled;
    if (opcode != seen_.opcode ||
        !std::equal(body.begin(), body.end(), seen_.body->begin(), seen_.body->end())) {
      ++seen_.wrong;
    }
    responder->reply({}, answer_to(opcode, body));
  }
  void closed(ConnectionId) override {}

 private:
  Seen& seen_;
};

class Damage : public ::testing::Test {
 protected:
  Damage() {
    for (std::byte& byte : body_) byte = static_cast<std::byte>(random_());
    seen_.body = &body_;
    auto server = Server::start(kSecret, true, std::make_unique<Answering>(seen_));
    EXPECT_TRUE(server.is_ok());
    server_ = std::move(*server);
    connect();
  }
  ~Damage() override { stop_damage(); }

  void connect() {
    client_ = std::make_unique<Client>(
        std::vector<Peer>{{"n0", server_->addresses(), server_->port()}}, NodeIndex{0}, kSecret);
  }

  template <Opcode opcode>
  Result<Blob> ask() {
    seen_.opcode = opcode;
    return client_->call(0, Any<opcode>{body_});
  }

  // All of one request and its reply, a byte after the other; from the end, where data stand.
  template <Opcode opcode>
  void flip_everywhere() {
    stop_damage();
    ASSERT_TRUE(ask<opcode>().is_ok());
    for (std::uint64_t byte = stop_damage(); byte-- > 0;) {
      flip<opcode>(byte);
      if (HasFatalFailure()) return;
    }
  }

  template <Opcode opcode>
  void flip(std::uint64_t byte) {
    const auto number = static_cast<unsigned>(opcode);
    const unsigned handled = seen_.handled;
    const unsigned bit = random_() % 8;
    damage_received(byte, bit);
    const Result<Blob> reply = ask<opcode>();
    stop_damage();
    ASSERT_EQ(0u, seen_.wrong) << "opcode " << number << ", byte " << byte << ", bit " << bit;
    if (reply.is_ok()) {
      ASSERT_EQ(answer_to(opcode, body_), reply->bytes) << "opcode " << number << ", byte " << byte;
    } else {
      ASSERT_LE(seen_.handled, handled + 1) << "what may not be done twice was";
      ASSERT_NE(std::string::npos, reply.status().message().find("n0")) << reply.status().message();
    }
    // Nobody else notices.
    ASSERT_TRUE(ask<opcode>().is_ok());
  }

  template <Opcode... opcodes>
  void flip_everywhere_in_each() {
    (
        [&] {
          if (!HasFatalFailure()) flip_everywhere<opcodes>();
        }(),
        ...);
  }

  std::mt19937 random_{17};
  Bytes body_ = Bytes(24);
  Answering::Seen seen_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(Damage, OfAFileHomesMessagesIsNeverTakenForData) {
  flip_everywhere_in_each<Opcode::kOpenBegin, Opcode::kOpenEnd, Opcode::kCloseBegin,
                          Opcode::kCloseEnd, Opcode::kGetFile, Opcode::kGetSize,
                          Opcode::kExtendSize, Opcode::kSetSize, Opcode::kLock, Opcode::kUnlock,
                          Opcode::kSharedAdd, Opcode::kSharedSet, Opcode::kCommitDone,
                          Opcode::kSetAside>();
}

TEST_F(Damage, OfABlockHomesMessagesIsNeverTakenForData) {
  flip_everywhere_in_each<Opcode::kWriteLog, Opcode::kWriteChunks, Opcode::kConvert,
                          Opcode::kTruncate, Opcode::kResolve, Opcode::kInstallBase,
                          Opcode::kSnapshot, Opcode::kEndCommit, Opcode::kReturnLease>();
}

TEST_F(Damage, OfAStoreNodesMessagesIsNeverTakenForData) {
  flip_everywhere_in_each<
      Opcode::kFind, Opcode::kAttach, Opcode::kDetach, Opcode::kAdopt, Opcode::kDrop,
      Opcode::kSpace, Opcode::kOpenSegment, Opcode::kOpenLog, Opcode::kLook, Opcode::kClaim,
      Opcode::kRegister, Opcode::kRelease, Opcode::kForgetSegment, Opcode::kDistrust,
      Opcode::kLocate, Opcode::kGetChunks, Opcode::kPutChunks, Opcode::kReadLog, Opcode::kListShard,
      Opcode::kReadShard, Opcode::kPutShard, Opcode::kReferences, Opcode::kWriteIndex,
      Opcode::kPrepare, Opcode::kCommit, Opcode::kAbort, Opcode::kCollect, Opcode::kRecallLease,
      Opcode::kRestore, Opcode::kGetRecord>();
}

}  // namespace
}  // namespace dedup::service
