// Whether a process still runs, whatever its service is busy with.
//
// A service's thread does one request after the other, and may be at one for long: that it gives no
// answer does not tell a busy disk from a process that was stopped, or a host that hangs. So beside
// it is a thread that does nothing but answer, at a port of its own, whoever connects there: with
// the eight bytes that a service's greeting begins with, and the end of the connection. A process
// that is gone refuses the connection; one that is stopped, or whose host is gone, does not answer
// in time. It proves nothing: whoever could pretend to be alive would only be waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "service/listeners.h"

namespace dedup::service {

class Pulse {
 public:
  // `at`: the addresses to listen at.
  static Result<std::unique_ptr<Pulse>> start(const std::vector<std::string>& at);
  // Ends the thread; from then on there is none.
  ~Pulse();

  std::uint16_t port() const { return listeners_.port(); }

 private:
  Pulse() = default;
  void run() const;

  Listeners listeners_;
  Socket waker_;
  std::thread thread_;
};

// Whether there is one at one of these addresses; `patience`: how long each may take to answer.
// Thread-safe.
bool has_pulse(const std::vector<std::string>& addresses, std::uint16_t port,
               std::chrono::seconds patience);

}  // namespace dedup::service
