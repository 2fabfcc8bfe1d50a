// Requests of threads of the service's own process: the caller hands them to the handler itself,
// without a socket, a MAC, or another thread that has to wake up.
//
// The handler is still asked by one thread at a time: by whoever holds the service's mutex. A
// request that the handler answers later (a lock that somebody else has) is waited for.
// Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/types.h"
#include "service/client.h"
#include "service/connect.h"
#include "service/server.h"

namespace dedup::service {

class LocalCalls {
 public:
  // `mutex`: of the service; `after`: called with it held whenever the handler was asked. All must
  // outlive it, and it the calls.
  LocalCalls(std::mutex& mutex, Handler& handler, std::function<void()> after)
      : mutex_(mutex), handler_(&handler), after_(std::move(after)) {}

  // With the mutex held: the handler is about to go. Requests fail from now on.
  void end() { handler_ = nullptr; }

  // A request is handled in receive(), so that others to other nodes are on their way meanwhile;
  // some at once (is_handled_at_once). Until `waited` says why to wait no longer.
  std::unique_ptr<Transport::Call> send(Opcode opcode, Bytes body, Waited waited = {});

 private:
  class Call;
  class LocalResponder;
  struct Answer;

  std::mutex& mutex_;
  Handler* handler_;  // null: it has gone
  std::function<void()> after_;
  // As the connections of a client: one for each call that is under way, used again afterwards.
  std::vector<ConnectionId> idle_;
  ConnectionId next_ = ConnectionId{1} << 63;  // none that came over a socket
};

}  // namespace dedup::service
