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
#include <mutex>
#include <system_error>
#include <thread>

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

bool parse_address(const std::string& text, std::uint16_t port, sockaddr_storage& out,
                   socklen_t& size) {
  out = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    size = sizeof v4;
    return true;
  }
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    size = sizeof v6;
    return true;
  }
  return false;
}

// A connection attempt's outcome: a socket, or why not and whether trying again may help.
struct Attempt {
  Socket socket;
  std::string error;
  bool again = false;
};

Attempt open_tcp(const std::string& address, std::uint16_t port, int patience) {
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
Attempt shake_hands(Socket s, const Secret& secret, const std::string& name, int patience) {
  std::array<std::byte, kHelloSize> hello;
  std::string error = receive_all(s.fd(), hello, patience);
  if (!error.empty()) return {{}, std::move(error), true};
  if (std::memcmp(hello.data(), kMagic, kMagicSize) != 0) {
    return {{}, "what listens there is not a service of this version", false};
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
    return {{}, "it is not this job's service of that node", false};
  }
  return {std::move(s), {}, false};
}

class TcpTransport : public Transport {
 public:
  TcpTransport(std::vector<Peer> peers, NodeIndex self, const Secret& secret)
      : self_(self), secret_(secret) {
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
    std::vector<Socket> idle;
  };

  Socket take_idle(Node& node) {
    const std::lock_guard lock(node.mutex);
    if (node.idle.empty()) return {};
    Socket socket = std::move(node.idle.back());
    node.idle.pop_back();
    return socket;
  }

  void give_back(Node& node, Socket socket) {
    const std::lock_guard lock(node.mutex);
    // Kept for good: a lock that was asked for on a connection goes when the connection goes.
    node.idle.push_back(std::move(socket));
  }

  Status unreachable(const Node& node, const std::string& cause) const {
    return {Code::kUnreachable,
            "the service of node " + node.peer.node + " cannot be reached: " + cause};
  }

  // A connection to the node broke.
  Status broken(Node& node, int error) const {
    if (error == ETIMEDOUT || error == EHOSTUNREACH) node.lost = true;
    return unreachable(node, error_text(error));
  }

  Result<Socket> connect(Node& node) const {
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
        Attempt attempt = open_tcp(address, node.peer.port, kHostPatience[tried]);
        const bool is_there = attempt.socket.is_open();
        if (is_there) {
          attempt = shake_hands(std::move(attempt.socket), secret_, node.server_name,
                                kServicePatience[tried]);
        }
        if (attempt.socket.is_open()) {
          node.best.store(at, std::memory_order_relaxed);
          node.lost = false;
          return std::move(attempt.socket);
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
};

// Not open if it could not be sent: `status` says why.
class TcpTransport::TcpCall : public Transport::Call {
 public:
  explicit TcpCall(TcpTransport& transport) : transport_(transport) {}
  Result<Bytes> receive() override;

  Node* node = nullptr;
  Socket socket;
  Status status;

 private:
  TcpTransport& transport_;
};

std::unique_ptr<Transport::Call> TcpTransport::send(NodeIndex index, Opcode opcode,
                                                    std::span<const std::byte> body) {
  auto call = std::make_unique<TcpCall>(*this);
  if (index >= nodes_.size()) {
    call->status = Status(Code::kInternal, "a request to node number " + std::to_string(index) +
                                               ", which the job does not have");
    return call;
  }
  Node& node = *nodes_[index];
  call->node = &node;
  if (body.size() > kMaxMessage) {
    call->status = Status(Code::kInternal, "a request of " + std::to_string(body.size()) +
                                               " bytes, more than a service takes");
    return call;
  }
  const HeaderBytes header =
      encode_header({static_cast<std::uint32_t>(body.size()), static_cast<std::uint32_t>(opcode)});
  const std::size_t size = header.size() + body.size();
  while (true) {
    Socket socket = take_idle(node);
    const bool fresh = !socket.is_open();
    if (fresh) {
      Result<Socket> made = connect(node);
      if (!made.is_ok()) {
        call->status = made.status();
        return call;
      }
      socket = std::move(*made);
    }
    std::size_t sent = 0;
    while (sent < size) {
      const std::ptrdiff_t n = send_some(socket.fd(), header, body, sent, 0);
      if (n < 0) break;
      sent += static_cast<std::size_t>(n);
    }
    if (sent == size) {
      call->socket = std::move(socket);
      return call;
    }
    // A connection that died while it was idle has taken nothing: the next one may do.
    if (fresh || sent != 0) {
      call->status = broken(node, errno);
      return call;
    }
  }
}

Result<Bytes> TcpTransport::TcpCall::receive() {
  DEDUP_TRY(status);
  Socket connection = std::move(socket);
  const auto fail = [&](const std::string& cause) {
    status = transport_.unreachable(*node, cause);
    return status;
  };
  if (!connection.is_open()) return fail("its reply was read already");
  // Most replies fit here whole, header included: one call for all of it.
  std::array<std::byte, 16384> start;
  std::size_t have = 0;
  Bytes body;
  FrameHeader header;
  std::size_t filled = 0;  // of the body
  while (have < kHeaderSize || filled < body.size()) {
    const bool in_body = have >= kHeaderSize;
    const auto space = in_body ? std::span(body).subspan(filled) : std::span(start).subspan(have);
    const std::ptrdiff_t n = receive_some(connection.fd(), space, 0);
    if (n < 0) {
      status = transport_.broken(*node, errno);
      return status;
    }
    if (n == 0) return fail("it closed the connection before it replied");
    if (in_body) {
      filled += static_cast<std::size_t>(n);
      continue;
    }
    have += static_cast<std::size_t>(n);
    if (have < kHeaderSize) continue;
    header = decode_header(std::span(start).first<kHeaderSize>());
    if (header.length > kMaxMessage || have - kHeaderSize > header.length) {
      return fail("it sent what is not a reply");
    }
    filled = have - kHeaderSize;
    body.resize(header.length);
    std::copy_n(start.data() + kHeaderSize, filled, body.data());
  }
  transport_.give_back(*node, std::move(connection));
  if (header.kind == static_cast<std::uint32_t>(Code::kOk)) return body;
  const auto code = header.kind <= static_cast<std::uint32_t>(Code::kInternal)
                        ? static_cast<Code>(header.kind)
                        : Code::kInternal;
  if (body.empty())
    return Status(code, "the service of node " + node->peer.node + " gave no reason");
  return Status(code, std::string(reinterpret_cast<const char*>(body.data()), body.size()));
}

}  // namespace

Client::Client(std::vector<Peer> peers, NodeIndex self, const Secret& secret)
    : Client(std::make_unique<TcpTransport>(std::move(peers), self, secret)) {}

Status Client::bad_reply(NodeIndex node) const {
  return {Code::kInternal,
          "the service of node " + node_name(node) + " sent a reply that cannot be read"};
}

}  // namespace dedup::service
