#include "service/client.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "service/frame_mac.h"
#include "service/local_calls.h"
#include "service/wire.h"

namespace dedup::service {
namespace {

// One of several addresses may lead nowhere, so each gets a short time first, then longer ones. A
// host that is there takes a connection at once, and one that does not within a minute is lost; but
// a service may be busy with its disk for long.
constexpr int kHostPatience[] = {5'000, 20'000, 35'000, 35'000};      // milliseconds
constexpr int kServicePatience[] = {5'000, 20'000, 80'000, 320'000};  // milliseconds
constexpr std::size_t kTries = 4;
constexpr std::size_t kTriesOfSilentHost = 3;
// A service that many connect to at once may close a connection during its handshake.
constexpr auto kFirstPause = std::chrono::milliseconds(10);
// How often a request that may be repeated is sent anew when its connection broke.
constexpr int kRepeats = 2;

std::string error_text(int error) {
  return std::generic_category().message(error);
}

// Bytes of `in` to come before `patience` is over. The empty string, or what went wrong.
std::string receive_all(int fd, std::span<std::byte> in, int patience) {
  while (!in.empty()) {
    pollfd ready{fd, POLLIN, 0};
    const int n = poll(&ready, 1, patience);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_text(errno);
    if (n == 0) return "no answer";
    const std::ptrdiff_t got = receive_some(fd, in, 0);
    if (got < 0) return error_text(errno);
    if (got == 0) return "the connection was closed instead of an answer";
    in = in.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

// A connection attempt's outcome: a socket, which has MACs once it is proven; or why not and
// whether trying again may help.
struct TriedSocket {
  Socket socket;
  std::string error;
  bool again = false;
  std::optional<FrameMacs> macs = {};
};

// A proven connection.
struct Connection {
  Socket socket;
  FrameMacs macs;
};

TriedSocket open_tcp(const std::string& address, std::uint16_t port, int patience) {
  sockaddr_storage to;
  socklen_t size;
  if (!parse_address(address, port, to, size)) return {{}, "not a numeric address", false};
  Socket s(socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!s.is_open()) return {{}, error_text(errno), false};
  if (connect(s.fd(), reinterpret_cast<const sockaddr*>(&to), size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return {{}, error_text(errno), false};
    pollfd ready{s.fd(), POLLOUT, 0};
    int n;
    do {
      n = poll(&ready, 1, patience);
    } while (n < 0 && errno == EINTR);
    if (n == 0) return {{}, "no answer", true};
    int error = 0;
    socklen_t error_size = sizeof error;
    if (n < 0 || getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) error = errno;
    if (error != 0) return {{}, error_text(error), error == ETIMEDOUT};
  }
  const int flags = fcntl(s.fd(), F_GETFL);
  if (flags < 0 || fcntl(s.fd(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return {{}, error_text(errno), false};
  }
  const Status tuned = tune_connection(s.fd());
  if (!tuned.is_ok()) return {{}, tuned.message(), false};
  return {std::move(s), {}, false};
}

// Proves the secret to the service and has it prove the same.
TriedSocket shake_hands(Socket s, const Secret& secret, const std::string& name, int patience) {
  std::array<std::byte, kHelloSize> hello;
  std::string error = receive_all(s.fd(), hello, patience);
  if (!error.empty()) return {{}, std::move(error), true};
  if (std::memcmp(hello.data(), kMagic, kMagicSize) != 0) {
    return {{}, "what listens there is not a service of this version", true};
  }
  Nonce server;
  std::memcpy(server.data(), hello.data() + kMagicSize, server.size());
  const Nonce client = make_nonce();
  Proof mine;
  Proof expected;
  if (!make_proof(secret, Role::kClient, server, client, name, mine) ||
      !make_proof(secret, Role::kServer, server, client, name, expected)) {
    return {{}, "cannot compute an HMAC", false};
  }
  HeaderBytes nothing{};
  std::array<std::byte, kAnswerSize> answer;
  std::memcpy(answer.data(), client.data(), client.size());
  std::memcpy(answer.data() + client.size(), mine.data(), mine.size());
  const std::ptrdiff_t sent = send_some(s.fd(), nothing, answer, kHeaderSize, 0);
  if (sent != static_cast<std::ptrdiff_t>(answer.size())) return {{}, error_text(errno), true};
  Proof proof;
  error = receive_all(s.fd(), std::as_writable_bytes(std::span(proof)), patience);
  if (!error.empty()) return {{}, "the handshake failed: " + error, true};
  if (!same_proof(proof, expected)) {
    return {{}, "it is not this job's service of that node", true};
  }
  auto macs = FrameMacs::create(secret, Role::kClient, server, client, name);
  if (!macs) return {{}, "cannot make a key for its frames", false};
  return {std::move(s), {}, false, std::move(macs)};
}

// What came of waiting for a reply.
struct Reply {
  std::uint32_t kind = 0;
  Bytes body;
  // Not empty: there is none, since the connection broke in this way; `error` if the system says
  // so.
  std::string broken = {};
  int error = 0;
};

Reply receive_reply(Connection& connection) {
  // Most replies fit here whole, header included: one call for all of it.
  std::array<std::byte, 16384> start;
  std::size_t have = 0;
  Reply reply;
  FrameHeader header;
  std::size_t filled = 0;  // of the body
  while (have < kHeaderSize || filled < reply.body.size()) {
    const bool in_body = have >= kHeaderSize;
    const auto space =
        in_body ? std::span(reply.body).subspan(filled) : std::span(start).subspan(have);
    const std::ptrdiff_t n = receive_some(connection.socket.fd(), space, 0);
    if (n < 0) return {0, {}, error_text(errno), errno};
    if (n == 0) return {0, {}, "it closed the connection before it replied"};
    if (in_body) {
      filled += static_cast<std::size_t>(n);
      continue;
    }
    have += static_cast<std::size_t>(n);
    if (have < kHeaderSize) continue;
    const auto decoded = decode_header(std::span(start).first<kHeaderSize>());
    if (!decoded) return {0, {}, "a reply's header was damaged on its way"};
    header = *decoded;
    if (header.length > kMaxMessage || have - kHeaderSize > header.length) {
      return {0, {}, "it sent what is not a reply"};
    }
    filled = have - kHeaderSize;
    reply.body.resize(header.length);
    std::copy_n(start.data() + kHeaderSize, filled, reply.body.data());
  }
  if (!connection.macs.received.holds(header, reply.body)) {
    return {0, {}, "a reply was damaged on its way: its MAC does not hold"};
  }
  reply.kind = header.kind;
  return reply;
}

class TcpTransport : public Transport {
 public:
  TcpTransport(std::vector<Peer> peers, NodeIndex self, const Secret& secret, LocalCalls* local)
      : self_(self), secret_(secret), local_(local) {
    for (Peer& peer : peers) {
      auto node = std::make_unique<Node>();
      node->server_name = server_name(peer.addresses, peer.port);
      node->peer = std::move(peer);
      nodes_.push_back(std::move(node));
    }
  }

  NodeIndex nodes() const override { return static_cast<NodeIndex>(nodes_.size()); }
  NodeIndex self() const override { return self_; }
  const std::string& node_name(NodeIndex node) const override { return nodes_[node]->peer.node; }
  std::vector<std::uint32_t> domains() const override {
    std::map<std::string_view, std::uint32_t> numbers{{"", 0}};
    std::vector<std::uint32_t> domains;
    for (const auto& node : nodes_) {
      const auto next = static_cast<std::uint32_t>(numbers.size());
      domains.push_back(numbers.emplace(node->peer.domain, next).first->second);
    }
    if (numbers.size() == 1) domains.clear();
    return domains;
  }
  std::unique_ptr<Call> send(NodeIndex node, Opcode opcode,
                             std::span<const std::byte> body) override;

 private:
  class TcpCall;
  // A node, and the connections to it that nobody uses at the moment.
  struct Node {
    Peer peer;
    std::string server_name;
    std::atomic<std::size_t> best{0};  // the address that worked last
    // It did not answer for as long as that may take. Then it is asked briefly: whoever finishes
    // without it should not wait as long again at every step.
    std::atomic<bool> lost{false};
    std::mutex mutex;
    std::vector<Connection> idle;
  };

  std::optional<Connection> take_idle(Node& node) {
    const std::lock_guard lock(node.mutex);
    if (node.idle.empty()) return std::nullopt;
    Connection connection = std::move(node.idle.back());
    node.idle.pop_back();
    return connection;
  }

  void give_back(Node& node, Connection connection) {
    const std::lock_guard lock(node.mutex);
    // Kept for good: a lock that was asked for on a connection goes when the connection goes.
    node.idle.push_back(std::move(connection));
  }

  Status unreachable(const Node& node, const std::string& cause) const {
    return {Code::kUnreachable,
            "the service of node " + node.peer.node + " cannot be reached: " + cause};
  }

  // A connection to the node broke.
  Status broken(Node& node, const std::string& cause, int error) const {
    if (error == ETIMEDOUT || error == EHOSTUNREACH) node.lost = true;
    return unreachable(node, cause);
  }

  // Sends a request; the connection that its reply will come on.
  Result<Connection> dispatch(Node& node, Opcode opcode, std::span<const std::byte> body);

  Result<Connection> connect(Node& node) const {
    const std::size_t count = node.peer.addresses.size();
    std::string causes;
    auto pause = kFirstPause;
    const std::size_t tries = node.lost ? 1 : kTries;
    for (std::size_t tried = 0; tried < tries; ++tried) {
      bool again = false;
      bool silent = count > 0;
      causes.clear();
      const std::size_t first = node.best.load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = (first + i) % count;
        const std::string& address = node.peer.addresses[at];
        TriedSocket attempt = open_tcp(address, node.peer.port, kHostPatience[tried]);
        const bool is_there = attempt.socket.is_open();
        if (is_there) {
          attempt = shake_hands(std::move(attempt.socket), secret_, node.server_name,
                                kServicePatience[tried]);
        }
        if (attempt.socket.is_open()) {
          node.best.store(at, std::memory_order_relaxed);
          node.lost = false;
          return Connection{std::move(attempt.socket), std::move(*attempt.macs)};
        }
        silent = silent && !is_there;
        again = again || (attempt.again && (is_there || tried + 1 < kTriesOfSilentHost));
        causes += (i == 0 ? "" : "; ") + address + " port " + std::to_string(node.peer.port) +
                  ": " + attempt.error;
      }
      if (!again) {
        if (silent) node.lost = true;
        break;
      }
      std::this_thread::sleep_for(pause);
      pause *= 4;
    }
    return unreachable(node, count == 0 ? "it has no address" : causes);
  }

  std::vector<std::unique_ptr<Node>> nodes_;
  NodeIndex self_;
  Secret secret_;
  LocalCalls* local_;  // null: none
};

class TcpTransport::TcpCall : public Transport::Call {
 public:
  // `body`: kept if the request may be repeated.
  TcpCall(TcpTransport& transport, Node& node, Opcode opcode, std::span<const std::byte> body)
      : transport_(transport),
        node_(node),
        opcode_(opcode),
        body_(may_repeat(opcode) ? Bytes(body.begin(), body.end()) : Bytes()),
        connection_(transport.dispatch(node, opcode, body)) {}
  Result<Bytes> receive() override;

 private:
  Result<Bytes> to_result(Reply reply) const;

  TcpTransport& transport_;
  Node& node_;
  Opcode opcode_;
  Bytes body_;
  Result<Connection> connection_;
};

// A request that was not sent, and why.
class FailedCall : public Transport::Call {
 public:
  explicit FailedCall(const std::string& why) : status_(Code::kInternal, why) {}
  Result<Bytes> receive() override { return status_; }

 private:
  Status status_;
};

std::unique_ptr<Transport::Call> TcpTransport::send(NodeIndex index, Opcode opcode,
                                                    std::span<const std::byte> body) {
  if (index >= nodes_.size()) {
    return std::make_unique<FailedCall>("a request to node number " + std::to_string(index) +
                                        ", which the job does not have");
  }
  if (body.size() > kMaxMessage) {
    return std::make_unique<FailedCall>("a request of " + std::to_string(body.size()) +
                                        " bytes, more than a service takes");
  }
  if (index == self_ && local_ != nullptr) return local_->send(opcode, body);
  return std::make_unique<TcpCall>(*this, *nodes_[index], opcode, body);
}

Result<Connection> TcpTransport::dispatch(Node& node, Opcode opcode,
                                          std::span<const std::byte> body) {
  while (true) {
    std::optional<Connection> connection = take_idle(node);
    const bool fresh = !connection;
    if (fresh) {
      DEDUP_ASSIGN(connection, connect(node));
    }
    const auto header = connection->macs.sent.seal(static_cast<std::uint32_t>(opcode), body);
    if (!header) return Status(Code::kInternal, "cannot compute a MAC");
    const std::size_t size = header->size() + body.size();
    std::size_t sent = 0;
    while (sent < size) {
      const std::ptrdiff_t n = send_some(connection->socket.fd(), *header, body, sent, 0);
      if (n < 0) break;
      sent += static_cast<std::size_t>(n);
    }
    if (sent == size) return std::move(*connection);
    // A connection that died while it was idle has taken nothing: the next one may do.
    if (fresh || sent != 0) return broken(node, error_text(errno), errno);
  }
}

Result<Bytes> TcpTransport::TcpCall::receive() {
  for (int repeated = 0;; ++repeated) {
    DEDUP_TRY(connection_.status());
    Connection connection = std::move(*connection_);
    connection_ = Status(Code::kInternal, "a reply was read twice");
    Reply reply = receive_reply(connection);
    if (reply.broken.empty()) {
      transport_.give_back(node_, std::move(connection));
      return to_result(std::move(reply));
    }
    const Status broken = transport_.broken(node_, reply.broken, reply.error);
    if (!may_repeat(opcode_) || repeated == kRepeats || node_.lost) return broken;
    // Also what the service found damaged: all it can do is to close the connection.
    connection_ = transport_.dispatch(node_, opcode_, body_);
  }
}

Result<Bytes> TcpTransport::TcpCall::to_result(Reply reply) const {
  if (reply.kind == static_cast<std::uint32_t>(Code::kOk)) return std::move(reply.body);
  const auto code = reply.kind <= static_cast<std::uint32_t>(Code::kInternal)
                        ? static_cast<Code>(reply.kind)
                        : Code::kInternal;
  if (reply.body.empty()) {
    return Status(code, "the service of node " + node_.peer.node + " gave no reason");
  }
  return Status(code,
                std::string(reinterpret_cast<const char*>(reply.body.data()), reply.body.size()));
}

}  // namespace

Client::Client(std::vector<Peer> peers, NodeIndex self, const Secret& secret, LocalCalls* local)
    : Client(std::make_unique<TcpTransport>(std::move(peers), self, secret, local)) {}

Status Client::bad_reply(NodeIndex node) const {
  return {Code::kInternal,
          "the service of node " + node_name(node) + " sent a reply that cannot be read"};
}

}  // namespace dedup::service
