// Client and Server against each other, and the Server against peers that do not keep to the rules.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "service/client.h"
#include "service/frame_mac.h"
#include "service/local_calls.h"
#include "service/messages/store_node.h"
#include "service/server.h"
#include "service/wire.h"

namespace dedup::service {
namespace {

struct Blob {
  Bytes bytes;
  static Blob decode(Decoder& d) {
    Blob blob;
    blob.bytes.resize(d.left());
    if (!blob.bytes.empty()) d.get_raw(blob.bytes.data(), blob.bytes.size());
    return blob;
  }
};

// A request whose opcode says what the test's handler does with it.
template <int opcode>
struct Test {
  static constexpr Opcode kOpcode = static_cast<Opcode>(opcode);
  using Reply = Blob;
  Bytes bytes;
  void encode(Encoder& e) const { e.put_raw(bytes.data(), bytes.size()); }
};
using Echo = Test<1>;
using Keep = Test<2>;        // answered when AnswerAll comes
using AnswerAll = Test<3>;   // reply: how many were answered
using Fail = Test<4>;        // an error with the body as its text
using Grow = Test<5>;        // the body's first four bytes are a size: that many bytes
using Drop = Test<6>;        // never answered by the handler
using Closed = Test<7>;      // reply: how many connections have ended
using NoMemory = Test<8>;    // the handler throws
using Throw = Test<9>;       // … with the body as what it says
using KeepThrow = Test<10>;  // … after it has taken the responder for later
using Beside = Test<static_cast<int>(Opcode::kRestore)>;  // as Keep

struct Text {
  static Bytes of(const std::string& text) {
    Bytes bytes(text.size());
    std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(), bytes.data());
    return bytes;
  }
  static std::string from(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class TestHandler : public Handler {
 public:
  explicit TestHandler(std::promise<void>* kept = nullptr) : kept_(kept) {}

  void handle(Opcode opcode, std::span<const std::byte> body,
              std::unique_ptr<Responder> responder) override {
    switch (static_cast<int>(opcode)) {
      case 1:
        responder->reply({}, Bytes(body.begin(), body.end()));
        break;
      case 2:
      case static_cast<int>(Opcode::kRestore):
        waiting_.emplace_back(std::move(responder), Bytes(body.begin(), body.end()));
        if (kept_ != nullptr) kept_->set_value();
        break;
      case 3: {
        std::size_t answered = 0;
        for (auto& [waiting, bytes] : waiting_) {
          if (ended_.count(waiting->connection()) == 0) ++answered;
          waiting->reply({}, std::move(bytes));
        }
        waiting_.clear();
        responder->reply({}, Text::of(std::to_string(answered)));
        break;
      }
      case 4:
        responder->reply(Status(Code::kNoSpace, Text::from(Bytes(body.begin(), body.end()))),
                         Text::of("not to be sent"));
        break;
      case 5: {
        Decoder d(body);
        responder->reply({}, Bytes(d.get<std::uint32_t>(), std::byte{7}));
        break;
      }
      case 6:
        break;
      case 8:
        throw std::bad_alloc();
      case 9:
        throw std::runtime_error(Text::from(Bytes(body.begin(), body.end())));
      case 10:
        waiting_.emplace_back(std::move(responder), Bytes(body.begin(), body.end()));
        throw std::bad_alloc();
      default:
        responder->reply({}, Text::of(std::to_string(ended_.size())));
    }
  }
  void closed(ConnectionId connection) override {
    EXPECT_TRUE(ended_.insert(connection).second);
    std::erase_if(waiting_, [&](auto& w) { return w.first->connection() == connection; });
  }

 private:
  std::promise<void>* kept_;
  std::vector<std::pair<std::unique_ptr<Responder>, Bytes>> waiting_;
  std::set<ConnectionId> ended_;
};

constexpr Secret kSecret = {1, 2, 3};

std::unique_ptr<Server> start(std::promise<void>* kept = nullptr, bool loopback_only = true) {
  auto server = Server::start(kSecret, loopback_only, std::make_unique<TestHandler>(kept));
  EXPECT_TRUE(server.is_ok()) << server.status().message();
  return std::move(*server);
}

Peer peer_of(const Server& server, const std::string& node = "n0") {
  return {node, server.addresses(), server.port()};
}

std::unique_ptr<Client> client_of(const Server& server, const Secret& secret = kSecret) {
  return std::make_unique<Client>(std::vector<Peer>{peer_of(server)}, NodeIndex{0}, secret);
}

Bytes random_bytes(std::mt19937& random, std::size_t size) {
  Bytes bytes(size);
  for (auto& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// A TCP connection without any protocol.
class Plain {
 public:
  explicit Plain(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(0, connect(socket_.fd(), reinterpret_cast<sockaddr*>(&to), sizeof to));
  }
  void send(std::span<const std::byte> bytes) {
    EXPECT_EQ(static_cast<ssize_t>(bytes.size()),
              ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  Bytes receive(std::size_t size) {
    Bytes bytes(size);
    EXPECT_EQ(static_cast<ssize_t>(size),
              recv(socket_.fd(), bytes.data(), bytes.size(), MSG_WAITALL));
    return bytes;
  }
  // Waits for the end of the connection: true if no byte came before it.
  bool cut_off() {
    std::byte byte;
    return recv(socket_.fd(), &byte, 1, 0) <= 0;
  }
  void shake_hands(const Server& server) {
    const Bytes hello = receive(kHelloSize);
    Nonce theirs;
    std::memcpy(theirs.data(), hello.data() + kMagicSize, theirs.size());
    const Nonce mine = make_nonce();
    Proof proof;
    const std::string name = server_name(server.addresses(), server.port());
    ASSERT_TRUE(make_proof(kSecret, Role::kClient, theirs, mine, name, proof));
    send(std::as_bytes(std::span(mine)));
    send(std::as_bytes(std::span(proof)));
    Proof expected;
    ASSERT_TRUE(make_proof(kSecret, Role::kServer, theirs, mine, name, expected));
    const Bytes answer = receive(sizeof(Proof));
    EXPECT_EQ(0, std::memcmp(answer.data(), expected.data(), expected.size()));
    macs_ = FrameMacs::create(kSecret, Role::kClient, theirs, mine, name);
    ASSERT_TRUE(macs_.has_value());
  }
  // The next request's frame.
  Bytes frame(std::uint32_t opcode, const Bytes& body = {}) {
    const auto header = macs_->sent.seal(opcode, body);
    EXPECT_TRUE(header.has_value());
    Bytes bytes(kHeaderSize + body.size());
    std::copy(header->begin(), header->end(), bytes.begin());
    std::copy(body.begin(), body.end(), bytes.begin() + kHeaderSize);
    return bytes;
  }
  // The next reply, which has so many bytes.
  Bytes receive_reply(std::size_t size) {
    const Bytes start = receive(kHeaderSize);
    const auto header = decode_header(std::span(start).first<kHeaderSize>());
    EXPECT_TRUE(header.has_value());
    const Bytes body = receive(size);
    EXPECT_TRUE(macs_->received.holds(*header, body));
    return body;
  }

 private:
  std::optional<FrameMacs> macs_;
  Socket socket_;
};

bool takes_connections(const std::string& address, std::uint16_t port) {
  sockaddr_storage to{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(to);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(to);
  const bool is_v4 = inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  EXPECT_TRUE(is_v4 || inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1);
  to.ss_family = is_v4 ? AF_INET : AF_INET6;
  (is_v4 ? v4.sin_port : v6.sin6_port) = htons(port);
  const Socket s(socket(to.ss_family, SOCK_STREAM, 0));
  return connect(s.fd(), reinterpret_cast<sockaddr*>(&to), is_v4 ? sizeof v4 : sizeof v6) == 0;
}

void expect_alive(const Server& server) {
  const auto client = client_of(server);
  auto reply = client->call(0, Echo{Text::of("hello")});
  ASSERT_TRUE(reply.is_ok()) << reply.status().message();
  EXPECT_EQ("hello", Text::from(reply->bytes));
}

TEST(Transport, EchoesBodiesOfAllSizes) {
  const auto server = start();
  const auto client = client_of(*server);
  std::mt19937 random(1);
  for (const std::size_t size : {0, 1, 8, 16375, 16376, 16377, 65536, 262136, 262137, 1000000}) {
    const Bytes bytes = random_bytes(random, size);
    auto reply = client->call(0, Echo{bytes});
    ASSERT_TRUE(reply.is_ok()) << reply.status().message();
    EXPECT_EQ(bytes, reply->bytes) << size;
  }
}

TEST(Transport, CarriesLargeBodiesAndRefusesLargerOnes) {
  const auto server = start();
  const auto client = client_of(*server);
  std::mt19937 random(2);
  const Bytes bytes = random_bytes(random, std::size_t{32} << 20);
  auto reply = client->call(0, Echo{bytes});
  ASSERT_TRUE(reply.is_ok()) << reply.status().message();
  EXPECT_EQ(bytes, reply->bytes);
  EXPECT_EQ(Code::kInternal, client->call(0, Echo{Bytes(kMaxMessage + 1)}).status().code());
  Encoder size;
  size.put(static_cast<std::uint32_t>(kMaxMessage + 1));
  EXPECT_EQ(Code::kInternal, client->call(0, Grow{size.bytes()}).status().code());
  EXPECT_TRUE(client->call(0, Echo{}).is_ok());
}

TEST(Transport, CarriesErrors) {
  const auto server = start();
  const auto client = client_of(*server);
  const auto reply = client->call(0, Fail{Text::of("the disk is full")});
  EXPECT_EQ(Code::kNoSpace, reply.status().code());
  EXPECT_EQ("the disk is full", reply.status().message());
  EXPECT_EQ(Code::kInternal, client->call(0, Drop{}).status().code());
}

TEST(Transport, AnExceptionIsAnErrorOfItsRequest) {
  const auto server = start();
  const auto client = client_of(*server);
  const auto no_memory = client->call(0, NoMemory{});
  EXPECT_EQ(Code::kNoMemory, no_memory.status().code()) << no_memory.status().message();
  const auto thrown = client->call(0, Throw{Text::of("something cannot be")});
  EXPECT_EQ(Code::kInternal, thrown.status().code());
  EXPECT_NE(std::string::npos, thrown.status().message().find("something cannot be"))
      << thrown.status().message();
  // What the handler has taken on is still its to answer.
  auto kept = client->start(0, KeepThrow{Text::of("later")});
  std::string answered = "0";
  while (answered == "0") {
    auto reply = client->call(0, AnswerAll{});
    ASSERT_TRUE(reply.is_ok());
    answered = Text::from(reply->bytes);
  }
  const auto later = kept.wait();
  ASSERT_TRUE(later.is_ok()) << later.status().message();
  EXPECT_EQ("later", Text::from(later->bytes));
  expect_alive(*server);
}

// As client_of(), in the service's process.
std::unique_ptr<Client> local_client_of(Server& server) {
  return std::make_unique<Client>(std::vector<Peer>{peer_of(server)}, NodeIndex{0}, kSecret,
                                  &server.local());
}

TEST(LocalCalls, AreAnsweredAsOverAConnection) {
  const auto server = start();
  const auto client = local_client_of(*server);
  std::mt19937 random(1);
  const Bytes bytes = random_bytes(random, 100000);
  const auto echo = client->call(0, Echo{bytes});
  ASSERT_TRUE(echo.is_ok());
  EXPECT_EQ(bytes, echo->bytes);
  const auto full = client->call(0, Fail{Text::of("the disk is full")});
  EXPECT_EQ(Code::kNoSpace, full.status().code());
  EXPECT_EQ("the disk is full", full.status().message());
  EXPECT_EQ(Code::kInternal, client->call(0, Drop{}).status().code());
  EXPECT_EQ(Code::kNoMemory, client->call(0, NoMemory{}).status().code());
  const auto thrown = client->call(0, Throw{Text::of("something cannot be")});
  EXPECT_NE(std::string::npos, thrown.status().message().find("something cannot be"));
  EXPECT_EQ("0", Text::from(client->call(0, Closed{})->bytes));
}

TEST(LocalCalls, WaitForAnswersThatComeFromElsewhere) {
  std::promise<void> kept;
  const auto server = start(&kept);
  const auto local = local_client_of(*server);
  const auto remote = client_of(*server);
  std::thread waiter([&] {
    const auto reply = local->call(0, Keep{Text::of("here")});
    ASSERT_TRUE(reply.is_ok());
    EXPECT_EQ("here", Text::from(reply->bytes));
  });
  kept.get_future().wait();
  EXPECT_EQ("1", Text::from(remote->call(0, AnswerAll{})->bytes));
  waiter.join();
}

TEST(LocalCalls, AnswerOthers) {
  std::promise<void> kept;
  const auto server = start(&kept);
  const auto local = local_client_of(*server);
  const auto remote = client_of(*server);
  auto waiting = remote->start(0, Keep{Text::of("there")});
  kept.get_future().wait();
  EXPECT_EQ("1", Text::from(local->call(0, AnswerAll{})->bytes));
  EXPECT_EQ("there", Text::from(waiting.wait()->bytes));
}

TEST(LocalCalls, AreNotMadeBeforeTheyAreWaitedFor) {
  const auto server = start();
  const auto client = local_client_of(*server);
  {
    const auto never = client->start(0, Keep{Text::of("nobody waits")});
    EXPECT_EQ("0", Text::from(client->call(0, AnswerAll{})->bytes));
  }
  EXPECT_EQ("0", Text::from(client->call(0, Closed{})->bytes));
}

TEST(LocalCalls, ThatAreGivenUpEndAsConnectionsDo) {
  const auto server = start();
  const auto client = local_client_of(*server);
  {
    // Done beside the service: it is begun at once, and this handler never answers it.
    const auto given_up = client->start(0, Beside{});
    EXPECT_EQ("0", Text::from(client->call(0, Closed{})->bytes));
  }
  EXPECT_EQ("1", Text::from(client->call(0, Closed{})->bytes));
  EXPECT_EQ("0", Text::from(client->call(0, AnswerAll{})->bytes));
}

TEST(LocalCalls, AreMadeByOneThreadAtATime) {
  const auto server = start();
  const auto local = local_client_of(*server);
  const auto remote = client_of(*server);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Client& client = t % 2 == 0 ? *local : *remote;
      for (int i = 0; i < 200; ++i) {
        const std::string text = std::to_string(1000 * t + i);
        const auto reply = client.call(0, Echo{Text::of(text)});
        ASSERT_TRUE(reply.is_ok());
        EXPECT_EQ(text, Text::from(reply->bytes));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Transport, AnswersLater) {
  const auto server = start();
  const auto client = client_of(*server);
  std::vector<Client::Pending<Keep>> pending;
  for (int i = 0; i < 20; ++i)
    pending.push_back(client->start(0, Keep{Text::of(std::to_string(i))}));
  // Requests on different connections have no order: ask until all have come.
  std::size_t answered = 0;
  while (answered < 20) {
    auto reply = client->call(0, AnswerAll{});
    ASSERT_TRUE(reply.is_ok());
    answered += std::stoul(Text::from(reply->bytes));
  }
  for (int i = 19; i >= 0; --i) {
    auto reply = pending[static_cast<std::size_t>(i)].wait();
    ASSERT_TRUE(reply.is_ok());
    EXPECT_EQ(std::to_string(i), Text::from(reply->bytes));
  }
  // All connections are kept: what they asked for, such as a lock, would go with them.
  EXPECT_EQ("0", Text::from(client->call(0, Closed{})->bytes));
}

TEST(Transport, ServesThreadsAndNodesAtOnce) {
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<Peer> peers;
  for (int i = 0; i < 3; ++i) {
    servers.push_back(start());
    peers.push_back(peer_of(*servers.back(), "n" + std::to_string(i)));
  }
  Client client(peers, 1, kSecret);
  EXPECT_EQ(3, client.nodes());
  EXPECT_EQ(1, client.self());
  EXPECT_EQ("n2", client.node_name(2));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 200; ++i) {
        const std::size_t size = random() % 8 == 0 ? random() % 300000 : random() % 100;
        const Bytes bytes = random_bytes(random, size);
        std::vector<Client::Pending<Echo>> pending;
        for (NodeIndex n = 0; n < 3; ++n) pending.push_back(client.start(n, Echo{bytes}));
        for (auto& p : pending) {
          auto reply = p.wait();
          if (!reply.is_ok() || reply->bytes != bytes) ++wrong;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
}

TEST(Transport, TellsTheHandlerOfClosedConnections) {
  std::promise<void> kept;
  const auto server = start(&kept);
  const auto client = client_of(*server);
  {
    const auto abandoned = client->start(0, Keep{});
    kept.get_future().wait();
  }
  std::string closed = "0";
  while (closed == "0") {
    auto reply = client->call(0, Closed{});
    ASSERT_TRUE(reply.is_ok());
    closed = Text::from(reply->bytes);
  }
  EXPECT_EQ("1", closed);
  EXPECT_EQ("0", Text::from(client->call(0, AnswerAll{})->bytes));
}

TEST(Transport, RefusesAWrongSecret) {
  const auto server = start();
  Secret wrong = kSecret;
  wrong[31] ^= 1;
  const auto client = client_of(*server, wrong);
  const auto reply = client->call(0, Echo{});
  EXPECT_EQ(Code::kUnreachable, reply.status().code());
  EXPECT_NE(std::string::npos, reply.status().message().find("n0")) << reply.status().message();
  expect_alive(*server);
}

TEST(Transport, RefusesAnotherNodesService) {
  const auto server = start();
  Peer peer = peer_of(*server);
  // Reached, but not under the addresses that the service told.
  peer.addresses.push_back("127.0.0.2");
  Client client({peer}, 0, kSecret);
  EXPECT_EQ(Code::kUnreachable, client.call(0, Echo{}).status().code());
}

// A service that does not know the secret learns nothing and is not believed.
TEST(Transport, DoesNotTrustAServerWithoutTheSecret) {
  Socket listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  ASSERT_EQ(0, bind(listener.fd(), reinterpret_cast<sockaddr*>(&at), size));
  ASSERT_EQ(0, listen(listener.fd(), 1));
  ASSERT_EQ(0, getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&at), &size));
  Bytes heard;
  std::thread impostor([&] {
    const Socket s(accept(listener.fd(), nullptr, nullptr));
    listener = Socket();  // for who tries again
    Bytes hello(kHelloSize);
    std::memcpy(hello.data(), kMagic, kMagicSize);
    EXPECT_EQ(static_cast<ssize_t>(hello.size()), send(s.fd(), hello.data(), hello.size(), 0));
    heard.resize(kAnswerSize);
    EXPECT_EQ(static_cast<ssize_t>(kAnswerSize),
              recv(s.fd(), heard.data(), heard.size(), MSG_WAITALL));
    // The client's own proof, sent back.
    EXPECT_EQ(static_cast<ssize_t>(sizeof(Proof)),
              send(s.fd(), heard.data() + sizeof(Nonce), sizeof(Proof), MSG_NOSIGNAL));
    std::byte more;
    EXPECT_EQ(0, recv(s.fd(), &more, 1, 0));
  });
  Client client({{"n0", {"127.0.0.1"}, ntohs(at.sin_port)}}, 0, kSecret);
  const auto reply = client.call(0, Echo{Text::of("precious")});
  impostor.join();
  EXPECT_EQ(Code::kUnreachable, reply.status().code());
}

TEST(Transport, CutsOffGarbage) {
  const auto server = start();
  std::mt19937 random(3);
  for (int i = 0; i < 20; ++i) {
    Plain plain(server->port());
    plain.receive(kHelloSize);
    plain.send(random_bytes(random, kAnswerSize + random() % 1000));
    EXPECT_TRUE(plain.cut_off());
  }
  expect_alive(*server);
}

TEST(Transport, CutsOffFramesThatAreTooLong) {
  const auto server = start();
  const FrameHeader bad[] = {{kMaxMessage + 1, 1, {}}, {0xffffffff, 1, {}}, {0, 256, {}}};
  for (const FrameHeader& header : bad) {
    Plain plain(server->port());
    plain.shake_hands(*server);
    plain.send(encode_header(header));
    EXPECT_TRUE(plain.cut_off());
  }
  expect_alive(*server);
}

TEST(Transport, CutsOffWhoDoesNotWaitForTheReply) {
  const auto server = start();
  Plain plain(server->port());
  plain.shake_hands(*server);
  plain.send(plain.frame(2));
  plain.send(plain.frame(2));
  EXPECT_TRUE(plain.cut_off());
  expect_alive(*server);
}

TEST(Transport, CutsOffFramesThatAreNotTheNext) {
  const auto server = start();
  {
    Plain again(server->port());
    again.shake_hands(*server);
    const Bytes frame = again.frame(1, Bytes(5));
    again.send(frame);
    EXPECT_EQ(Bytes(5), again.receive_reply(5));
    again.send(frame);
    EXPECT_TRUE(again.cut_off());
  }
  {
    Plain early(server->port());
    early.shake_hands(*server);
    (void)early.frame(1, Bytes(5));
    early.send(early.frame(1, Bytes(5)));
    EXPECT_TRUE(early.cut_off());
  }
  {
    Plain reflected(server->port());
    reflected.shake_hands(*server);
    reflected.send(reflected.frame(1, Bytes(5)));
    reflected.send(reflected.receive(kHeaderSize + 5));
    EXPECT_TRUE(reflected.cut_off());
  }
  {
    Plain one(server->port());
    Plain other(server->port());
    one.shake_hands(*server);
    other.shake_hands(*server);
    other.send(one.frame(1, Bytes(5)));
    EXPECT_TRUE(other.cut_off());
  }
  expect_alive(*server);
}

TEST(Transport, TakesFramesInSmallParts) {
  const auto server = start();
  Plain plain(server->port());
  plain.shake_hands(*server);
  const Bytes body(10, std::byte{5});
  const Bytes frame = plain.frame(1, body);
  for (const std::byte& b : frame) plain.send({&b, 1});
  EXPECT_EQ(body, plain.receive_reply(body.size()));
}

TEST(Transport, SilentPeersHinderNobody) {
  const auto server = start();
  std::vector<std::unique_ptr<Plain>> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<Plain>(server->port()));
  // One that stops within a frame, one that does not read a long reply.
  Plain half(server->port());
  half.shake_hands(*server);
  half.send(encode_header({1000, 1, {}}));
  Plain deaf(server->port());
  deaf.shake_hands(*server);
  Encoder size;
  size.put(std::uint32_t{32} << 20);
  deaf.send(deaf.frame(5, size.bytes()));
  expect_alive(*server);
  const Bytes reply = deaf.receive_reply(std::size_t{32} << 20);
  EXPECT_EQ(std::byte{7}, reply.back());
}

TEST(Transport, TooManyUnprovenConnectionsPushOutTheOldest) {
  const auto server = start();
  std::vector<std::unique_ptr<Plain>> silent;
  for (int i = 0; i < 1100; ++i) {
    silent.push_back(std::make_unique<Plain>(server->port()));
    silent.back()->receive(kHelloSize);
  }
  EXPECT_TRUE(silent.front()->cut_off());
  expect_alive(*server);
}

TEST(Transport, AServerThatEndsIsUnreachable) {
  std::promise<void> kept;
  auto server = start(&kept);
  const auto client = client_of(*server);
  auto pending = client->start(0, Keep{});
  kept.get_future().wait();
  server.reset();
  const auto reply = pending.wait();
  EXPECT_EQ(Code::kUnreachable, reply.status().code());
  EXPECT_NE(std::string::npos, reply.status().message().find("n0")) << reply.status().message();
  const auto again = client->call(0, Echo{});
  EXPECT_EQ(Code::kUnreachable, again.status().code());
  EXPECT_NE(std::string::npos, again.status().message().find("127.0.0.1"))
      << again.status().message();
}

TEST(Transport, AnIdleConnectionThatDiedIsAnErrorNotAHang) {
  auto server = start();
  const auto client = client_of(*server);
  ASSERT_TRUE(client->call(0, Echo{}).is_ok());
  server.reset();
  EXPECT_EQ(Code::kUnreachable, client->call(0, Echo{}).status().code());
}

TEST(Transport, ANodeTheJobDoesNotHaveIsAnError) {
  const auto server = start();
  EXPECT_EQ(Code::kInternal, client_of(*server)->call(5, Echo{}).status().code());
}

TEST(Transport, ListensOnTheHostsAddresses) {
  unsetenv("DEDUP_INTERFACE");
  const auto server = start(nullptr, false);
  EXPECT_FALSE(server->addresses().empty());
  expect_alive(*server);
}

TEST(Transport, TheEnvironmentChoosesTheInterface) {
  setenv("DEDUP_INTERFACE", "127.0.0.1", 1);
  const auto by_address = start(nullptr, false);
  EXPECT_EQ(std::vector<std::string>{"127.0.0.1"}, by_address->addresses());
  expect_alive(*by_address);
  setenv("DEDUP_INTERFACE", "lo", 1);
  const auto by_name = start(nullptr, false);
  EXPECT_EQ("127.0.0.1", by_name->addresses().front());
  expect_alive(*by_name);
  // Loopback has more addresses than the one that was named.
  EXPECT_TRUE(takes_connections("127.0.0.1", by_address->port()));
  EXPECT_FALSE(takes_connections("127.0.0.2", by_address->port()));
  for (const std::string& address : by_name->addresses()) {
    EXPECT_TRUE(takes_connections(address, by_name->port())) << address;
  }
  EXPECT_FALSE(takes_connections("127.0.0.2", by_name->port()));
  setenv("DEDUP_INTERFACE", "no-such-interface", 1);
  const auto none = Server::start(kSecret, false, std::make_unique<TestHandler>());
  EXPECT_EQ(Code::kArgument, none.status().code());
  EXPECT_NE(std::string::npos, none.status().message().find("no-such-interface"));
  unsetenv("DEDUP_INTERFACE");
}

}  // namespace
}  // namespace dedup::service
