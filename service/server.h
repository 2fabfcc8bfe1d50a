// A node's service: one thread that answers requests over TCP and sleeps when there are none; and
// the way to it for threads of its own process, which need no connection (local_calls.h).
//
// The thread calls no MPI, blocks all signals, and never waits for another service. Handlers run in
// it, or in the thread that asks, one at a time: their state needs no locks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/codec.h"
#include "base/status.h"
#include "hints/node.h"
#include "service/client.h"
#include "store/segment.h"

namespace dedup::service {

class Executor;
class LocalCalls;

// Identifies a client connection for as long as it lasts.
using ConnectionId = std::uint64_t;

// Where the answer to one request goes; may be kept and answered later, exactly once. If the
// connection has gone by then, the answer is dropped. One that is destroyed unanswered answers with
// kInternal, or with what handle() threw. Used where Handlers run only, and gone when the Handler
// is.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual ConnectionId connection() const = 0;
  // `body`: the encoded Reply; ignored if `status` is an error.
  virtual void reply(const Status& status, Bytes body) = 0;
  // Ok, the body and the segment for who asked; kUnsupported to who is on another host.
  virtual void lend(store::LentSegment what, Bytes body);
};

class Handler {
 public:
  virtual ~Handler() = default;
  // What it throws, such as for lack of memory, becomes the request's answer.
  virtual void handle(Opcode opcode, std::span<const std::byte> body,
                      std::unique_ptr<Responder> responder) = 0;
  // A connection ended: what depended on it (locks it waits for or holds) is to be freed.
  virtual void closed(ConnectionId connection) = 0;
  // Before all else. `wake` may be called in any thread as long as the handler is there, throws
  // nothing, and has woken() called soon after, once or more often, in the service thread.
  virtual void set_waker(std::function<void()> /*wake*/) {}
  virtual void woken() {}
};

class Server {
 public:
  // Binds to an ephemeral port (loopback only if `loopback_only`, else all interfaces) and starts
  // the thread. Connections that do not prove the secret are closed before they can ask anything.
  // Environment: DEDUP_INTERFACE, an interface's name or an address, says at which of the host's
  // addresses alone it listens, and of which others are told; kArgument if there is none.
  // `patience`: how long a client's host may give no sign of life.
  static Result<std::unique_ptr<Server>> start(const Secret& secret, bool loopback_only,
                                               std::unique_ptr<Handler> handler,
                                               std::chrono::seconds patience = hints::kNodeTimeout);
  // stop().
  ~Server();
  // Stops the threads, closes all connections (the handler is not told), destroys the handler. What
  // is asked locally from then on, or waits for its answer, fails. Nothing if it was stopped; by
  // one thread at a time.
  void stop();

  // For threads of this process. Nobody may use it any more when the Server goes.
  LocalCalls& local();

  std::uint16_t port() const;
  // Of the thread that tells that the process runs (pulse.h); while the service does.
  std::uint16_t pulse() const;
  // Addresses under which other hosts may reach this one (numeric; loopback only if bound so).
  const std::vector<std::string>& addresses() const;

 private:
  struct Private;
  explicit Server(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// The handler of a node: file home, block home and store node in one. `node_name` replaces %n in
// store templates; `self` is the node's index, `nodes` their number. `executor`, which does what
// takes long, is this handler's alone and must outlive it; it is stopped with the handler.
std::unique_ptr<Handler> make_node_handler(const std::string& node_name, NodeIndex self,
                                           NodeIndex nodes, Executor& executor);

}  // namespace dedup::service
