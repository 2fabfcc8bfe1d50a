#include "service/server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "base/barrier.h"
#include "base/passed_descriptor.h"
#include "base/thread.h"
#include "service/frame_mac.h"
#include "service/listeners.h"
#include "service/local_calls.h"
#include "service/pulse.h"
#include "service/wire.h"

namespace dedup::service {
namespace {

constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kWaker = 1;
constexpr std::uint64_t kFirstConnection = 2;
constexpr std::uint64_t kNoConnection = ~std::uint64_t{0};

// Connections that have not proven the secret yet: beyond this the oldest is closed. A client that
// meets this while many others connect tries again.
constexpr std::size_t kMaxUnproven = 1024;
// Accepted in a row before those that are connected get their turn.
constexpr int kAcceptBatch = 32;
// How long to wait when the process has no descriptors left for another connection.
constexpr int kPauseMilliseconds = 50;

struct Connection {
  Socket socket;
  std::optional<FrameMacs> macs;  // once the secret is proven
  bool is_here = false;           // its other end is a process of this host
  bool doomed = false;
  bool busy = false;          // a request was handed to the handler, its reply is not sent yet
  bool wants_output = false;  // registered for it

  // The handshake, or a frame's header; then a body that did not come in one piece.
  std::array<std::byte, std::max(kAnswerSize, kHeaderSize)> start;
  std::size_t start_size = 0;
  Nonce nonce{};
  FrameHeader header;
  std::unique_ptr<std::byte[]> body;
  std::size_t body_size = 0;  // so far

  std::optional<HeaderBytes> reply_header;  // none: it cannot be made
  Bytes reply;
  std::size_t reply_sent = 0;  // header and body
  store::LentSegment lent;     // goes with it
};

// DEDUP_SAME_HOST=network: processes of one host go about it as if they were on several.
bool shares_host() {
  const char* const wanted = std::getenv("DEDUP_SAME_HOST");
  return wanted == nullptr || std::string_view(wanted) != "network";
}

// All that happens in the service thread, while it holds the mutex; who asks the handler elsewhere
// holds it, too.
class Loop {
 public:
  Loop(const Secret& secret, std::chrono::seconds patience, std::unique_ptr<Handler> handler)
      : secret_(secret),
        patience_(patience),
        handler_(std::move(handler)),
        local_(mutex_, *handler_, [this] { close_doomed(); }),
        scratch_(std::size_t{256} << 10) {}
  // After run() has returned.
  void end() {
    // Whoever waits for an answer in this process is given one when the handler drops his request.
    const std::lock_guard lock(mutex_);
    // What the handler still answers while it is destroyed finds nobody, and nobody comes who would
    // wait for an answer.
    listeners_ = {};
    host_listener_ = {};
    connections_.clear();
    local_.end();
    handler_.reset();
  }

  Status listen(bool loopback_only);
  void introduce() {
    handler_->set_waker([this] { wake(); });
  }
  void run();
  void stop() noexcept {
    stopping_ = true;
    wake();
  }
  void wake() noexcept {
    const std::uint64_t one = 1;
    // Fails only if the counter is at its limit, and then the thread is awake.
    [[maybe_unused]] const ssize_t n = write(waker_.fd(), &one, sizeof one);
  }
  // Nothing is thrown: what cannot be sent for lack of memory ends its connection.
  void reply(ConnectionId id, const Status& status, Bytes body,
             store::LentSegment lent = {}) noexcept;
  bool is_here(ConnectionId id) const {
    const auto found = connections_.find(id);
    return found != connections_.end() && found->second->is_here;
  }
  // A request will not be answered by the handler.
  void dropped(ConnectionId id) noexcept;

  LocalCalls& local() { return local_; }
  std::uint16_t port() const { return listeners_.port(); }
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::vector<std::string>& bound() const { return bound_; }

 private:
  bool watch_listeners(std::uint32_t events, int operation);
  Status watch(int fd, std::uint64_t id, std::uint32_t events, int operation);
  void event(ConnectionId id, std::uint32_t what);
  void woken();
  void accept_some(const Socket& listener);
  bool make_room_for_descriptor();
  void doom_oldest_unproven();
  void admit(Socket socket, bool is_here);
  void input(ConnectionId id, Connection& c);
  void handshake(ConnectionId id, Connection& c, std::span<const std::byte> in);
  void frame(ConnectionId id, Connection& c, std::span<const std::byte> in);
  void request(ConnectionId id, Connection& c, std::span<const std::byte> body);
  void begin_reply(Connection& c, const Status& status, Bytes body);
  void output(ConnectionId id, Connection& c);
  void want_output(ConnectionId id, Connection& c, bool wanted);
  void doom(ConnectionId id, Connection& c) noexcept;
  void close_doomed() noexcept;

  Secret secret_;
  std::chrono::seconds patience_;
  Listeners listeners_;
  Socket host_listener_;  // for processes of this host; not open: they come like others
  Socket waker_;
  Socket poller_;
  std::vector<std::string> addresses_;
  std::vector<std::string> bound_;  // the addresses that it listens at
  std::string name_;
  bool listening_ = true;  // the listeners are watched
  std::atomic<bool> stopping_ = false;

  std::mutex mutex_;
  std::unique_ptr<Handler> handler_;
  LocalCalls local_;
  std::unordered_map<ConnectionId, std::unique_ptr<Connection>> connections_;
  std::set<ConnectionId> unproven_;  // ids grow: the first is the oldest
  // To be closed when nobody is in the middle of using them, each once. Has room for all.
  std::vector<ConnectionId> doomed_;
  ConnectionId handled_ = kNoConnection;  // whose request the handler is just given
  bool handled_dropped_ = false;          // and has let go of without an answer
  // Made while there is memory.
  const Status not_answered_{Code::kInternal, "a service dropped a request"};
  ConnectionId next_id_ = kFirstConnection;
  Bytes scratch_;
};

class LoopResponder : public Responder {
 public:
  LoopResponder(Loop& loop, ConnectionId id) : loop_(&loop), id_(id) {}
  ~LoopResponder() override {
    if (!answered_) loop_->dropped(id_);
  }
  ConnectionId connection() const override { return id_; }
  void reply(const Status& status, Bytes body) override {
    if (answered_) return;
    answered_ = true;
    loop_->reply(id_, status, std::move(body));
  }
  void lend(store::LentSegment what, Bytes body) override {
    if (answered_ || !loop_->is_here(id_)) return Responder::lend(std::move(what), {});
    answered_ = true;
    loop_->reply(id_, {}, std::move(body), std::move(what));
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

Status Loop::listen(bool loopback_only) {
  if (loopback_only) {
    addresses_ = {"127.0.0.1"};
    bound_ = addresses_;
    DEDUP_ASSIGN(listeners_, Listeners::open(bound_));
  } else {
    const char* const wanted = std::getenv("DEDUP_INTERFACE");
    const bool chosen = wanted != nullptr && *wanted != '\0';
    DEDUP_ASSIGN(addresses_, host_addresses(chosen ? wanted : ""));
    bound_ = chosen ? addresses_ : std::vector<std::string>{"::"};
    auto listeners = Listeners::open(bound_);
    if (!listeners.is_ok() && !chosen) {
      // One socket for both; hosts without IPv6 refuse it.
      bound_ = {"0.0.0.0"};
      listeners = Listeners::open(bound_);
    }
    DEDUP_ASSIGN(listeners_, std::move(listeners));
  }
  name_ = server_name(addresses_, port());
  if (shares_host()) host_listener_ = listen_on_host(host_socket_name(secret_, name_));
  waker_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  poller_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!waker_.is_open() || !poller_.is_open()) {
    return Status::from_errno(errno, "setting up the service");
  }
  DEDUP_TRY(watch(waker_.fd(), kWaker, EPOLLIN, EPOLL_CTL_ADD));
  if (watch_listeners(EPOLLIN, EPOLL_CTL_ADD)) return {};
  return Status::from_errno(errno, "watching for connections");
}

bool Loop::watch_listeners(std::uint32_t events, int operation) {
  const auto& sockets = listeners_.sockets();
  const auto is_watched = [&](const Socket& listener) {
    return watch(listener.fd(), kListener, events, operation).is_ok();
  };
  return std::all_of(sockets.begin(), sockets.end(), is_watched) &&
         (!host_listener_.is_open() || is_watched(host_listener_));
}

void Loop::run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int n = epoll_wait(poller_.fd(), events.data(), static_cast<int>(events.size()),
                             listening_ ? -1 : kPauseMilliseconds);
    if (n < 0 && errno != EINTR) return;
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < n; ++i) {
      const epoll_event& one = events[static_cast<std::size_t>(i)];
      const ConnectionId id = one.data.u64;
      if (id == kWaker) {
        if (stopping_) return;
        woken();
        close_doomed();
        continue;
      }
      const Status status = no_exceptions([&] { event(id, one.events); });
      // Of what came on it, a part may be gone: only the connection's end is sure to be noticed.
      const auto found = connections_.find(id);
      if (!status.is_ok() && found != connections_.end()) doom(id, *found->second);
      close_doomed();
    }
    close_doomed();
    if (n == 0 && !listening_) listening_ = watch_listeners(EPOLLIN, EPOLL_CTL_MOD);
  }
}

void Loop::woken() {
  std::uint64_t count = 0;
  // Fails only if it was read already.
  [[maybe_unused]] const ssize_t n = read(waker_.fd(), &count, sizeof count);
  // What it lacks memory for is the handler's to answer.
  (void)no_exceptions([&] { handler_->woken(); });
}

void Loop::event(ConnectionId id, std::uint32_t what) {
  if (id == kListener) {
    for (const Socket& listener : listeners_.sockets()) accept_some(listener);
    if (host_listener_.is_open()) accept_some(host_listener_);
    return;
  }
  // Gone if an earlier event of this round closed it.
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& c = *found->second;
  if ((what & EPOLLOUT) != 0) output(id, c);
  if ((what & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) input(id, c);
}

// After accept found no free descriptor: whether it is worth trying again at once.
bool Loop::make_room_for_descriptor() {
  rlimit limit{};
  if (errno == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = std::min(limit.rlim_max, 2 * limit.rlim_cur);
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return true;
  }
  if (unproven_.empty()) return false;
  doom_oldest_unproven();
  return true;
}

void Loop::doom_oldest_unproven() {
  const ConnectionId id = *unproven_.begin();
  doom(id, *connections_.at(id));
  close_doomed();
}

void Loop::accept_some(const Socket& listener) {
  for (int i = 0; i < kAcceptBatch; ++i) {
    Socket socket = accept_connection(listener.fd());
    if (socket.is_open()) {
      admit(std::move(socket), &listener == &host_listener_);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    const bool exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    // Other errors are of the connection that was not accepted.
    if (!exhausted || make_room_for_descriptor()) continue;
    // Level-triggered: watching on would spin. Tried again after a pause.
    listening_ = !watch_listeners(0, EPOLL_CTL_MOD);
    return;
  }
}

void Loop::admit(Socket socket, bool is_here) {
  const ConnectionId id = next_id_++;
  auto c = std::make_unique<Connection>();
  c->socket = std::move(socket);
  c->is_here = is_here;
  c->nonce = make_nonce();
  std::array<std::byte, kHelloSize> hello;
  std::memcpy(hello.data(), kMagic, kMagicSize);
  std::memcpy(hello.data() + kMagicSize, c->nonce.data(), c->nonce.size());
  // Always fits into the buffer of a new connection.
  const bool is_ready =
      is_here ? is_own_user(c->socket.fd()) : tune_connection(c->socket.fd(), patience_).is_ok();
  if (!is_ready ||
      send_some(c->socket.fd(), {}, hello, kHeaderSize, 0) !=
          static_cast<std::ptrdiff_t>(hello.size()) ||
      !watch(c->socket.fd(), id, EPOLLIN, EPOLL_CTL_ADD).is_ok()) {
    return;
  }
  doomed_.reserve(connections_.size() + 1);
  unproven_.insert(id);
  try {
    connections_.emplace(id, std::move(c));
  } catch (...) {
    unproven_.erase(id);
    throw;
  }
  if (unproven_.size() > kMaxUnproven) doom_oldest_unproven();
}

void Loop::input(ConnectionId id, Connection& c) {
  std::span<std::byte> space(scratch_);
  if (!c.macs) {
    // Not a byte more than it takes: what follows may be an attack.
    space = space.first(kAnswerSize - c.start_size);
  } else if (c.body) {
    space = std::span(c.body.get() + c.body_size, c.header.length - c.body_size);
  }
  const std::ptrdiff_t n = receive_some(c.socket.fd(), space, 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  // A client has one request under way and sends nothing until its reply is there.
  if (n <= 0 || c.busy) {
    doom(id, c);
    return;
  }
  const auto in = std::span<const std::byte>(space.first(static_cast<std::size_t>(n)));
  if (!c.macs) {
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
  if (make_proof(secret_, Role::kClient, c.nonce, client, name_, expected) &&
      same_proof(proof, expected) &&
      make_proof(secret_, Role::kServer, c.nonce, client, name_, mine)) {
    c.macs = FrameMacs::create(secret_, Role::kServer, c.nonce, client, name_);
  }
  if (!c.macs || send_some(c.socket.fd(), {}, std::as_bytes(std::span(mine)), kHeaderSize, 0) !=
                     static_cast<std::ptrdiff_t>(mine.size())) {
    doom(id, c);
    return;
  }
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
  const auto header = decode_header(std::span(c.start).first<kHeaderSize>());
  if (!header || header->length > kMaxMessage || header->kind > 0xff ||
      in.size() > header->length) {
    doom(id, c);
    return;
  }
  c.header = *header;
  if (in.size() == c.header.length) {
    request(id, c, in);
    return;
  }
  c.body.reset(new (std::nothrow) std::byte[c.header.length]);
  if (!c.body) {
    doom(id, c);
    return;
  }
  std::copy(in.begin(), in.end(), c.body.get());
  c.body_size = in.size();
}

void Loop::request(ConnectionId id, Connection& c, std::span<const std::byte> body) {
  if (!c.macs->received.holds(c.header, body)) {
    doom(id, c);
    return;
  }
  c.busy = true;
  handled_ = id;
  handled_dropped_ = false;
  const Status status = no_exceptions([&] {
    handler_->handle(static_cast<Opcode>(c.header.kind), body,
                     std::make_unique<LoopResponder>(*this, id));
  });
  handled_ = kNoConnection;
  // What the responder cannot know when it goes: why.
  if (handled_dropped_) reply(id, status.is_ok() ? not_answered_ : status, {});
}

void Loop::dropped(ConnectionId id) noexcept {
  if (id == handled_) {
    handled_dropped_ = true;
  } else {
    reply(id, not_answered_, {});
  }
}

void Loop::reply(ConnectionId id, const Status& status, Bytes body,
                 store::LentSegment lent) noexcept {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& c = *found->second;
  const bool sent = no_exceptions([&] {
                      begin_reply(c, status, std::move(body));
                      c.lent = std::move(lent);
                      output(id, c);
                    }).is_ok();
  if (!sent) doom(id, c);
}

void Loop::begin_reply(Connection& c, const Status& status, Bytes body) {
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
  c.reply_header = c.macs->sent.seal(static_cast<std::uint32_t>(code), c.reply);
  c.reply_sent = 0;
}

void Loop::output(ConnectionId id, Connection& c) {
  if (!c.reply_header) {
    doom(id, c);
    return;
  }
  const std::size_t size = c.reply_header->size() + c.reply.size();
  while (c.reply_sent < size) {
    const bool lends = c.reply_sent == 0 && c.lent.is_there();
    const std::ptrdiff_t n =
        lends ? send_some(c.socket.fd(), *c.reply_header, c.reply, c.lent, MSG_DONTWAIT)
              : send_some(c.socket.fd(), *c.reply_header, c.reply, c.reply_sent, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      want_output(id, c, true);
      return;
    }
    // Too many are on their way to others already (ETOOMANYREFS), or the connection is broken,
    // which shows again: who asked for it sees that it did not come.
    if (n < 0 && lends) {
      c.lent = {};
      continue;
    }
    if (n < 0) {
      doom(id, c);
      return;
    }
    c.reply_sent += static_cast<std::size_t>(n);
  }
  want_output(id, c, false);
  c.busy = false;
  c.reply = {};
  c.lent = {};
}

void Loop::want_output(ConnectionId id, Connection& c, bool wanted) {
  if (wanted == c.wants_output) return;
  c.wants_output = wanted;
  const std::uint32_t events = wanted ? EPOLLIN | EPOLLOUT : EPOLLIN;
  if (!watch(c.socket.fd(), id, events, EPOLL_CTL_MOD).is_ok()) doom(id, c);
}

void Loop::doom(ConnectionId id, Connection& c) noexcept {
  if (c.doomed) return;
  c.doomed = true;
  // Its other end sees at once that nothing comes any more, before anybody is answered what it
  // should have been told first (AwaitWriter).
  shutdown(c.socket.fd(), SHUT_RDWR);
  doomed_.push_back(id);
}

// The handler may answer other connections when it hears of one that closed, and doom more.
void Loop::close_doomed() noexcept {
  while (!doomed_.empty()) {
    const ConnectionId id = doomed_.back();
    doomed_.pop_back();
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    const bool proven = found->second->macs.has_value();
    connections_.erase(found);
    unproven_.erase(id);
    // What it lacks memory for concerns others, who are told when they ask.
    if (proven) (void)no_exceptions([&] { handler_->closed(id); });
  }
}

}  // namespace

void Responder::lend(store::LentSegment /*what*/, Bytes /*body*/) {
  reply(Status(Code::kUnsupported, "it is lent to processes of the same host only"), {});
}

struct Server::Private {
  Private(const Secret& secret, std::chrono::seconds patience, std::unique_ptr<Handler> handler)
      : loop(secret, patience, std::move(handler)) {}
  Loop loop;
  std::unique_ptr<Pulse> pulse;
  std::thread thread;
};

Server::Server(std::unique_ptr<Private> p) : p_(std::move(p)) {}

Result<std::unique_ptr<Server>> Server::start(const Secret& secret, bool loopback_only,
                                              std::unique_ptr<Handler> handler,
                                              std::chrono::seconds patience) {
  auto p = std::make_unique<Private>(secret, patience, std::move(handler));
  DEDUP_TRY(p->loop.listen(loopback_only));
  DEDUP_ASSIGN(p->pulse, Pulse::start(p->loop.bound()));
  p->loop.introduce();
  DEDUP_ASSIGN(p->thread, start_thread("dedup-service", [&loop = p->loop] { loop.run(); }));
  return std::unique_ptr<Server>(new Server(std::move(p)));
}

Server::~Server() {
  stop();
}

void Server::stop() {
  if (!p_->thread.joinable()) return;
  p_->loop.stop();
  p_->thread.join();
  p_->loop.end();
  p_->pulse.reset();
}

LocalCalls& Server::local() {
  return p_->loop.local();
}

std::uint16_t Server::port() const {
  return p_->loop.port();
}

std::uint16_t Server::pulse() const {
  return p_->pulse->port();
}

const std::vector<std::string>& Server::addresses() const {
  return p_->loop.addresses();
}

}  // namespace dedup::service
