#include "service/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "service/connect.h"
#include "service/frame_mac.h"
#include "service/local_calls.h"
#include "service/pulse.h"
#include "service/wire.h"

namespace dedup::service {
namespace {

// One of several addresses may lead nowhere, so each gets a short time first, then longer ones: so
// many twelfths of the patience, all of it together. A host that is there takes a connection at
// once.
constexpr int kHostPatience[] = {1, 4, 7, 7};
constexpr int kHostPatienceParts = 12;
constexpr std::size_t kTries = 4;
constexpr std::size_t kTriesOfSilentHost = 3;
// A service that many connect to at once may close a connection during its handshake.
constexpr auto kFirstPause = std::chrono::milliseconds(10);
// How often a request that may be repeated is sent anew when its connection broke.
constexpr int kRepeats = 2;

// A proven connection.
struct Connection {
  Socket socket;
  FrameMacs macs;
  bool is_here = false;  // to a service on this host
};

// One, or why not and whether trying again may help.
struct Proven {
  std::optional<Connection> connection;
  std::string error;
  bool again = false;
};

// Whether a receive ended since nothing came in time.
bool is_timeout(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

// Whether something has come, or the other end has gone.
bool has_input(int fd) {
  pollfd ready{fd, POLLIN, 0};
  return poll(&ready, 1, 0) != 0;
}

// Proves the secret to the service and has it prove the same.
Proven shake_hands(Socket s, const Secret& secret, const std::string& name, const Waited& waited) {
  std::array<std::byte, kHelloSize> hello;
  std::string error = receive_all(s.fd(), hello, waited);
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
  error = receive_all(s.fd(), std::as_writable_bytes(std::span(proof)), waited);
  if (!error.empty()) return {{}, "the handshake failed: " + error, true};
  if (!same_proof(proof, expected)) {
    return {{}, "it is not this job's service of that node", true};
  }
  auto macs = FrameMacs::create(secret, Role::kClient, server, client, name);
  if (!macs) return {{}, "cannot make a key for its frames", false};
  // A receive and a send come back when nothing has moved for so long.
  const timeval patience{static_cast<time_t>(waited.patience.count()), 0};
  if (setsockopt(s.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
      setsockopt(s.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0) {
    return {{}, error_text(errno), false};
  }
  return {Connection{std::move(s), std::move(*macs)}, {}, false};
}

// What came of waiting for a reply.
struct Reply {
  std::uint32_t kind = 0;
  Bytes body;
  // Not empty: there is none, since the connection broke in this way; `error` if the system says
  // so.
  std::string broken = {};
  int error = 0;
  store::LentSegment lent = {};
};

// `why_stop`: asked whenever nothing has come for the connection's patience. `may_lend`: the reply
// may come with a descriptor.
Reply receive_reply(Connection& connection, const WhyStop& why_stop, bool may_lend) {
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
    const std::ptrdiff_t n = may_lend && have == 0
                                 ? receive_some(connection.socket.fd(), space, reply.lent)
                                 : receive_some(connection.socket.fd(), space, 0);
    if (n < 0 && is_timeout(errno)) {
      std::string why = why_stop();
      if (why.empty()) continue;
      return {0, {}, std::move(why)};
    }
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
  TcpTransport(std::vector<Peer> peers, NodeIndex self, const Secret& secret, LocalCalls* local,
               std::chrono::seconds patience)
      : self_(self), secret_(secret), local_(local), patience_(patience) {
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
  bool is_there(NodeIndex node) override {
    return index_is_local(node) || has_pulse_at(*nodes_[node]);
  }
  bool is_neighbour(NodeIndex index) override {
    if (index >= nodes() || index == self_) return false;
    Node& node = *nodes_[index];
    if (node.where == Where::kElsewhere || node.lost) return false;
    if (node.where == Where::kHere && has_live_connection(node)) return true;
    auto connection = connect(node);
    if (!connection.is_ok()) return false;
    give_back(node, *std::move(connection));
    return node.where == Where::kHere;
  }
  bool has_missed() const override { return has_missed_; }
  std::unique_ptr<Call> send(NodeIndex node, Opcode opcode, Bytes body) override;

 private:
  class TcpCall;
  enum class Where { kUnknown, kHere, kElsewhere };
  // A node, and the connections to it that nobody uses at the moment.
  struct Node {
    Peer peer;
    std::string server_name;
    std::atomic<Where> where{Where::kUnknown};  // known with the first connection
    std::atomic<std::size_t> best{0};           // the address that worked last
    // It gave no sign of life for as long as that may take. Then it is asked briefly: whoever
    // finishes without it should not wait as long again at every step.
    std::atomic<bool> lost{false};
    std::mutex mutex;
    std::vector<Connection> idle;
  };

  bool index_is_local(NodeIndex node) const { return node == self_ && local_ != nullptr; }

  bool has_pulse_at(const Node& node) const {
    return node.peer.pulse == 0 ||
           has_pulse(node.peer.addresses, node.peer.pulse, patience_of(node));
  }

  std::chrono::seconds patience_of(const Node& node) const {
    return node.lost ? std::max(std::chrono::seconds(1), patience_ / kHostPatienceParts)
                     : patience_;
  }

  // For a node that has not answered for a while.
  std::string why_stop(Node& node) const {
    if (has_pulse_at(node)) return {};
    node.lost = true;
    return "its process gives no sign of life";
  }

  // For a request that waits for its turn: until a node is lost that may have the turn.
  std::string why_stop_waiting_for_others() const {
    for (NodeIndex n = 0; n < nodes(); ++n) {
      if (index_is_local(n) || has_pulse_at(*nodes_[n])) continue;
      has_missed_ = true;
      return "it waits for others, and node " + node_name(n) + " gives no sign of life";
    }
    return {};
  }

  std::optional<Connection> take_idle(Node& node) {
    const std::lock_guard lock(node.mutex);
    // Those to a process that has stopped would be waited for, one after the other.
    if (node.lost) node.idle.clear();
    if (node.idle.empty()) return std::nullopt;
    Connection connection = std::move(node.idle.back());
    node.idle.pop_back();
    return connection;
  }

  // Whether there is a connection that nobody uses, whose other end is still there.
  static bool has_live_connection(Node& node) {
    const std::lock_guard lock(node.mutex);
    while (!node.idle.empty() && has_input(node.idle.back().socket.fd())) node.idle.pop_back();
    return !node.idle.empty();
  }

  void give_back(Node& node, Connection connection) {
    const std::lock_guard lock(node.mutex);
    // Kept for good: a lock that was asked for on a connection goes when the connection goes.
    node.idle.push_back(std::move(connection));
  }

  Status unreachable(const Node& node, const std::string& cause) const {
    has_missed_ = true;
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

  Proven shake_hands_with(Node& node, Socket socket) const {
    return shake_hands(std::move(socket), secret_, node.server_name,
                       {patience_of(node), [&] { return why_stop(node); }});
  }

  // Within this host; none if it is on another one, or that is not to be had.
  std::optional<Connection> connect_here(Node& node) const {
    if (node.where == Where::kElsewhere) return std::nullopt;
    Reached reached = reach_on_host(host_socket_name(secret_, node.server_name));
    if (!reached.socket.is_open()) {
      if (node.where == Where::kUnknown && !reached.again) node.where = Where::kElsewhere;
      return std::nullopt;
    }
    Proven proven = shake_hands_with(node, std::move(reached.socket));
    if (proven.connection) {
      node.where = Where::kHere;
      proven.connection->is_here = true;
    }
    return std::move(proven.connection);
  }

  Result<Connection> connect(Node& node) const {
    if (std::optional<Connection> here = connect_here(node)) {
      node.lost = false;
      return *std::move(here);
    }
    const std::size_t count = node.peer.addresses.size();
    std::string causes;
    auto pause = kFirstPause;
    const std::size_t tries = node.lost ? 1 : kTries;
    for (std::size_t tried = 0; tried < tries; ++tried) {
      const std::chrono::milliseconds within =
          std::chrono::milliseconds(patience_) * kHostPatience[tried] / kHostPatienceParts;
      bool again = false;
      bool silent = count > 0;
      causes.clear();
      const std::size_t first = node.best.load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = (first + i) % count;
        const std::string& address = node.peer.addresses[at];
        Reached reached = reach(address, node.peer.port, within, patience_);
        const bool is_there = reached.socket.is_open();
        Proven proven{{}, std::move(reached.error), reached.again};
        if (is_there) {
          proven = shake_hands_with(node, std::move(reached.socket));
        }
        if (proven.connection) {
          node.best.store(at, std::memory_order_relaxed);
          node.lost = false;
          return *std::move(proven.connection);
        }
        silent = silent && !is_there;
        again = again || (proven.again && (is_there || tried + 1 < kTriesOfSilentHost));
        causes += (i == 0 ? "" : "; ") + address + " port " + std::to_string(node.peer.port) +
                  ": " + proven.error;
      }
      if (!again || node.lost) {
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
  std::chrono::seconds patience_;
  mutable std::atomic<bool> has_missed_{false};
};

class TcpTransport::TcpCall : public Transport::Call {
 public:
  // `body`: kept if the request may be repeated.
  TcpCall(TcpTransport& transport, Node& node, Opcode opcode, Bytes body)
      : transport_(transport),
        node_(node),
        opcode_(opcode),
        connection_(transport.dispatch(node, opcode, body)) {
    if (may_repeat(opcode)) body_ = std::move(body);
  }
  Result<Bytes> receive() override;
  bool is_ready() override {
    return !connection_.is_ok() || !connection_->is_here || has_input(connection_->socket.fd());
  }
  store::LentSegment take_lent() override { return std::move(lent_); }

 private:
  std::string why_stop() const {
    std::string why = transport_.why_stop(node_);
    const bool is_turn = why.empty() && waits_for_others(opcode_);
    return is_turn ? transport_.why_stop_waiting_for_others() : why;
  }
  Result<Bytes> to_result(Reply reply) const;

  TcpTransport& transport_;
  Node& node_;
  Opcode opcode_;
  Bytes body_;
  Result<Connection> connection_;
  store::LentSegment lent_;
};

// A request that was not sent, and why.
class FailedCall : public Transport::Call {
 public:
  explicit FailedCall(Status why) : status_(std::move(why)) {}
  explicit FailedCall(const std::string& why) : status_(Code::kInternal, why) {}
  Result<Bytes> receive() override { return status_; }

 private:
  Status status_;
};

std::unique_ptr<Transport::Call> TcpTransport::send(NodeIndex index, Opcode opcode, Bytes body) {
  if (index >= nodes_.size()) {
    return std::make_unique<FailedCall>("a request to node number " + std::to_string(index) +
                                        ", which the job does not have");
  }
  if (body.size() > kMaxMessage) {
    return std::make_unique<FailedCall>("a request of " + std::to_string(body.size()) +
                                        " bytes, more than a service takes");
  }
  if (index_is_local(index)) {
    Waited waited{patience_, {}};
    if (waits_for_others(opcode)) {
      waited.why_stop = [this] { return why_stop_waiting_for_others(); };
    }
    return local_->send(opcode, std::move(body), std::move(waited));
  }
  return std::make_unique<TcpCall>(*this, *nodes_[index], opcode, std::move(body));
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
      if (n < 0 && is_timeout(errno)) {
        const std::string why = why_stop(node);
        if (why.empty()) continue;
        return unreachable(node, why);
      }
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
    Reply reply = receive_reply(
        connection, [&] { return why_stop(); }, opcode_ == Opcode::kLendSegment);
    if (reply.broken.empty()) {
      lent_ = std::move(reply.lent);
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

Client::Client(std::vector<Peer> peers, NodeIndex self, const Secret& secret, LocalCalls* local,
               std::chrono::seconds patience)
    : Client(std::make_unique<TcpTransport>(std::move(peers), self, secret, local, patience)) {}

std::unique_ptr<Transport::Call> Client::send(NodeIndex node, Opcode opcode, Bytes body) {
  if (has_ended()) return std::make_unique<FailedCall>(why_ended_);
  return transport_->send(node, opcode, std::move(body));
}

void Client::end(const std::string& why) {
  if (has_ended()) return;
  why_ended_ = Status(Code::kUnreachable, why);
  has_ended_.store(true, std::memory_order_release);
}

Status Client::standing() const {
  return has_ended() ? why_ended_ : Status::ok();
}

Status Client::bad_reply(NodeIndex node) const {
  return {Code::kInternal,
          "the service of node " + node_name(node) + " sent a reply that cannot be read"};
}

}  // namespace dedup::service
