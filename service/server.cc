#include "service/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/thread.h"
#include "service/wire.h"

namespace dedup::service {
namespace {

constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kWaker = 1;
constexpr std::uint64_t kFirstConnection = 2;

// Connections that have not proven the secret yet: beyond this the oldest is closed. A client that
// meets this while many others connect tries again.
constexpr std::size_t kMaxUnproven = 1024;
// Accepted in a row before those that are connected get their turn.
constexpr int kAcceptBatch = 32;
// How long to wait when the process has no descriptors left for another connection.
constexpr int kPauseMilliseconds = 50;

struct Connection {
  Socket socket;
  bool proven = false;
  bool busy = false;          // a request was handed to the handler, its reply is not sent yet
  bool wants_output = false;  // registered for it

  // The handshake, or a frame's header; then a body that did not come in one piece.
  std::array<std::byte, std::max(kAnswerSize, kHeaderSize)> start;
  std::size_t start_size = 0;
  Nonce nonce{};
  FrameHeader header;
  std::unique_ptr<std::byte[]> body;
  std::size_t body_size = 0;  // so far

  HeaderBytes reply_header{};
  Bytes reply;
  std::size_t reply_sent = 0;  // header and body
};

// All that happens in the service thread.
class Loop {
 public:
  Loop(const Secret& secret, std::unique_ptr<Handler> handler)
      : secret_(secret), handler_(std::move(handler)), scratch_(std::size_t{256} << 10) {}
  ~Loop() {
    // What the handler still answers while it is destroyed finds nobody.
    connections_.clear();
    handler_.reset();
  }

  Status listen(bool loopback_only);
  void run();
  void stop() {
    const std::uint64_t one = 1;
    // Fails only if the counter is at its limit, and then the thread is awake.
    [[maybe_unused]] const ssize_t n = write(waker_.fd(), &one, sizeof one);
  }
  void reply(ConnectionId id, const Status& status, Bytes body);

  std::uint16_t port() const { return port_; }
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  Status bind_to(int family, bool loopback_only);
  Status watch(int fd, std::uint64_t id, std::uint32_t events, int operation);
  void accept_some();
  bool make_room_for_descriptor();
  void admit(Socket socket);
  void input(ConnectionId id, Connection& c);
  void handshake(ConnectionId id, Connection& c, std::span<const std::byte> in);
  void frame(ConnectionId id, Connection& c, std::span<const std::byte> in);
  void request(ConnectionId id, Connection& c, std::span<const std::byte> body);
  void output(ConnectionId id, Connection& c);
  void want_output(ConnectionId id, Connection& c, bool wanted);
  void close_doomed();

  Secret secret_;
  Socket listener_;
  Socket waker_;
  Socket poller_;
  std::uint16_t port_ = 0;
  std::vector<std::string> addresses_;
  std::string name_;
  bool listening_ = true;  // the listener is watched

  std::unique_ptr<Handler> handler_;
  std::unordered_map<ConnectionId, std::unique_ptr<Connection>> connections_;
  std::set<ConnectionId> unproven_;   // ids grow: the first is the oldest
  std::vector<ConnectionId> doomed_;  // to be closed when nobody is in the middle of using them
  ConnectionId next_id_ = kFirstConnection;
  Bytes scratch_;
};

class LoopResponder : public Responder {
 public:
  LoopResponder(Loop& loop, ConnectionId id) : loop_(&loop), id_(id) {}
  ~LoopResponder() override {
    if (!answered_) reply(Status(Code::kInternal, "a service dropped a request"), {});
  }
  ConnectionId connection() const override { return id_; }
  void reply(const Status& status, Bytes body) override {
    if (answered_) return;
    answered_ = true;
    loop_->reply(id_, status, std::move(body));
  }

 private:
  Loop* loop_;
  ConnectionId id_;
  bool answered_ = false;
};

Status Loop::watch(int fd, std::uint64_t id, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(poller_.fd(), operation, fd, &event) == 0) return {};
  return Status::from_errno(errno, "watching a connection");
}

Status Loop::bind_to(int family, bool loopback_only) {
  listener_ = Socket(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!listener_.is_open()) return Status::from_errno(errno, "making a socket");
  sockaddr_storage address{};
  socklen_t size;
  if (family == AF_INET6) {
    const int no = 0;
    if (setsockopt(listener_.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0) {
      return Status::from_errno(errno, "setting up a socket");
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_any;
    size = sizeof v6;
  } else {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(loopback_only ? INADDR_LOOPBACK : INADDR_ANY);
    size = sizeof v4;
  }
  if (bind(listener_.fd(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.fd(), SOMAXCONN) != 0 ||
      getsockname(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Status::from_errno(errno, "listening for connections");
  }
  port_ = ntohs(family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return {};
}

Status Loop::listen(bool loopback_only) {
  if (loopback_only) {
    addresses_ = {"127.0.0.1"};
    DEDUP_TRY(bind_to(AF_INET, true));
  } else {
    const char* wanted = std::getenv("DEDUP_INTERFACE");
    DEDUP_ASSIGN(addresses_, host_addresses(wanted == nullptr ? "" : wanted));
    // One socket for both; hosts without IPv6 refuse it.
    if (!bind_to(AF_INET6, false).is_ok()) DEDUP_TRY(bind_to(AF_INET, false));
  }
  name_ = server_name(addresses_, port_);
  waker_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  poller_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!waker_.is_open() || !poller_.is_open()) {
    return Status::from_errno(errno, "setting up the service");
  }
  DEDUP_TRY(watch(waker_.fd(), kWaker, EPOLLIN, EPOLL_CTL_ADD));
  return watch(listener_.fd(), kListener, EPOLLIN, EPOLL_CTL_ADD);
}

void Loop::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int n = epoll_wait(poller_.fd(), events.data(), static_cast<int>(events.size()),
                             listening_ ? -1 : kPauseMilliseconds);
    if (n < 0 && errno != EINTR) return;
    for (int i = 0; i < n; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      // By value: the member of a packed structure is not where a reference may point.
      const ConnectionId id = event.data.u64;
      if (id == kWaker) return;
      if (id == kListener) {
        accept_some();
        continue;
      }
      // Gone if an earlier event of this round closed it.
      const auto found = connections_.find(id);
      if (found == connections_.end()) continue;
      Connection& c = *found->second;
      if ((event.events & EPOLLOUT) != 0) output(found->first, c);
      if ((event.events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) input(found->first, c);
      close_doomed();
    }
    close_doomed();
    if (n == 0 && !listening_) {
      listening_ = watch(listener_.fd(), kListener, EPOLLIN, EPOLL_CTL_MOD).is_ok();
    }
  }
}

// After accept found no free descriptor: whether it is worth trying again at once.
bool Loop::make_room_for_descriptor() {
  rlimit limit{};
  if (errno == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min(limit.rlim_max, 2 * limit.rlim_cur);
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return true;
  }
  if (unproven_.empty()) return false;
  doomed_.push_back(*unproven_.begin());
  close_doomed();
  return true;
}

void Loop::accept_some() {
  for (int i = 0; i < kAcceptBatch; ++i) {
    Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      admit(std::move(socket));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    const bool exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    // Other errors are of the connection that was not accepted.
    if (!exhausted || make_room_for_descriptor()) continue;
    // Level-triggered: watching on would spin. Tried again after a pause.
    listening_ = !watch(listener_.fd(), kListener, 0, EPOLL_CTL_MOD).is_ok();
    return;
  }
}

void Loop::admit(Socket socket) {
  const ConnectionId id = next_id_++;
  auto c = std::make_unique<Connection>();
  c->socket = std::move(socket);
  c->nonce = make_nonce();
  std::array<std::byte, kHelloSize> hello;
  std::memcpy(hello.data(), kMagic, kMagicSize);
  std::memcpy(hello.data() + kMagicSize, c->nonce.data(), c->nonce.size());
  // Always fits into the buffer of a new connection.
  if (!tune_connection(c->socket.fd()).is_ok() ||
      send_some(c->socket.fd(), {}, hello, kHeaderSize, 0) !=
          static_cast<std::ptrdiff_t>(hello.size()) ||
      !watch(c->socket.fd(), id, EPOLLIN, EPOLL_CTL_ADD).is_ok()) {
    return;
  }
  connections_.emplace(id, std::move(c));
  unproven_.insert(id);
  if (unproven_.size() > kMaxUnproven) {
    doomed_.push_back(*unproven_.begin());
    close_doomed();
  }
}

void Loop::input(ConnectionId id, Connection& c) {
  std::span<std::byte> space(scratch_);
  if (!c.proven) {
    // Not a byte more than it takes: what follows may be an attack.
    space = space.first(kAnswerSize - c.start_size);
  } else if (c.body) {
    space = std::span(c.body.get() + c.body_size, c.header.length - c.body_size);
  }
  const std::ptrdiff_t n = receive_some(c.socket.fd(), space, 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  // A client has one request under way and sends nothing until its reply is there.
  if (n <= 0 || c.busy) {
    doomed_.push_back(id);
    return;
  }
  const auto in = std::span<const std::byte>(space.first(static_cast<std::size_t>(n)));
  if (!c.proven) {
    handshake(id, c, in);
  } else if (c.body) {
    c.body_size += in.size();
    if (c.body_size < c.header.length) return;
    const std::unique_ptr<std::byte[]> body = std::move(c.body);
    request(id, c, {body.get(), c.header.length});
  } else {
    frame(id, c, in);
  }
}

void Loop::handshake(ConnectionId id, Connection& c, std::span<const std::byte> in) {
  std::memcpy(c.start.data() + c.start_size, in.data(), in.size());
  c.start_size += in.size();
  if (c.start_size < kAnswerSize) return;
  Nonce client;
  Proof proof;
  std::memcpy(client.data(), c.start.data(), client.size());
  std::memcpy(proof.data(), c.start.data() + client.size(), proof.size());
  Proof expected;
  Proof mine;
  if (!make_proof(secret_, Role::kClient, c.nonce, client, name_, expected) ||
      !same_proof(proof, expected) ||
      !make_proof(secret_, Role::kServer, c.nonce, client, name_, mine) ||
      send_some(c.socket.fd(), {}, std::as_bytes(std::span(mine)), kHeaderSize, 0) !=
          static_cast<std::ptrdiff_t>(mine.size())) {
    doomed_.push_back(id);
    return;
  }
  c.proven = true;
  c.start_size = 0;
  unproven_.erase(id);
}

// `in`: what came after the last complete frame, in the scratch buffer.
void Loop::frame(ConnectionId id, Connection& c, std::span<const std::byte> in) {
  const std::size_t taken = std::min(in.size(), kHeaderSize - c.start_size);
  std::memcpy(c.start.data() + c.start_size, in.data(), taken);
  c.start_size += taken;
  if (c.start_size < kHeaderSize) return;
  c.start_size = 0;
  in = in.subspan(taken);
  c.header = decode_header(std::span(c.start).first<kHeaderSize>());
  if (c.header.length > kMaxMessage || c.header.kind > 0xff || in.size() > c.header.length) {
    doomed_.push_back(id);
    return;
  }
  if (in.size() == c.header.length) {
    request(id, c, in);
    return;
  }
  c.body.reset(new (std::nothrow) std::byte[c.header.length]);
  if (!c.body) {
    doomed_.push_back(id);
    return;
  }
  std::copy(in.begin(), in.end(), c.body.get());
  c.body_size = in.size();
}

void Loop::request(ConnectionId id, Connection& c, std::span<const std::byte> body) {
  c.busy = true;
  handler_->handle(static_cast<Opcode>(c.header.kind), body,
                   std::make_unique<LoopResponder>(*this, id));
}

void Loop::reply(ConnectionId id, const Status& status, Bytes body) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& c = *found->second;
  Code code = status.code();
  c.reply = std::move(body);
  const auto set_text = [&c](const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    c.reply.assign(bytes.begin(), bytes.end());
  };
  if (code != Code::kOk) {
    set_text(status.message());
  } else if (c.reply.size() > kMaxMessage) {
    code = Code::kInternal;
    set_text("a reply of " + std::to_string(c.reply.size()) + " bytes, more than a client takes");
  }
  c.reply_header =
      encode_header({static_cast<std::uint32_t>(c.reply.size()), static_cast<std::uint32_t>(code)});
  c.reply_sent = 0;
  output(id, c);
}

void Loop::output(ConnectionId id, Connection& c) {
  const std::size_t size = c.reply_header.size() + c.reply.size();
  while (c.reply_sent < size) {
    const std::ptrdiff_t n =
        send_some(c.socket.fd(), c.reply_header, c.reply, c.reply_sent, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      want_output(id, c, true);
      return;
    }
    if (n < 0) {
      doomed_.push_back(id);
      return;
    }
    c.reply_sent += static_cast<std::size_t>(n);
  }
  want_output(id, c, false);
  c.busy = false;
  c.reply = {};
}

void Loop::want_output(ConnectionId id, Connection& c, bool wanted) {
  if (wanted == c.wants_output) return;
  c.wants_output = wanted;
  const std::uint32_t events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (!watch(c.socket.fd(), id, events, EPOLL_CTL_MOD).is_ok()) doomed_.push_back(id);
}

// The handler may answer other connections when it hears of one that closed, and doom more.
void Loop::close_doomed() {
  while (!doomed_.empty()) {
    const ConnectionId id = doomed_.back();
    doomed_.pop_back();
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    const bool proven = found->second->proven;
    connections_.erase(found);
    unproven_.erase(id);
    if (proven) handler_->closed(id);
  }
}

}  // namespace

struct Server::Private {
  Private(const Secret& secret, std::unique_ptr<Handler> handler)
      : loop(secret, std::move(handler)) {}
  Loop loop;
  std::thread thread;
};

Server::Server(std::unique_ptr<Private> p) : p_(std::move(p)) {}

Result<std::unique_ptr<Server>> Server::start(const Secret& secret, bool loopback_only,
                                              std::unique_ptr<Handler> handler) {
  auto p = std::make_unique<Private>(secret, std::move(handler));
  DEDUP_TRY(p->loop.listen(loopback_only));
  DEDUP_ASSIGN(p->thread, start_thread("dedup-service", [&loop = p->loop] { loop.run(); }));
  return std::unique_ptr<Server>(new Server(std::move(p)));
}

Server::~Server() {
  p_->loop.stop();
  p_->thread.join();
}

std::uint16_t Server::port() const {
  return p_->loop.port();
}

const std::vector<std::string>& Server::addresses() const {
  return p_->loop.addresses();
}

}  // namespace dedup::service
