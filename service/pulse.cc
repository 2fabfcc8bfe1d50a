#include "service/pulse.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "base/thread.h"
#include "service/connect.h"

namespace dedup::service {
namespace {

// How long to wait when the process has no descriptors left for another connection.
constexpr int kPauseMilliseconds = 50;

// To all that wait at a listener. False if the process can take no more of them at the moment.
bool answer_all(int listener) {
  while (true) {
    const Socket caller = accept_connection(listener);
    if (!caller.is_open()) {
      return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    }
    // Always fits into the buffer of a new connection; who has gone needs none.
    (void)send(caller.fd(), kMagic, kMagicSize, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

}  // namespace

Result<std::unique_ptr<Pulse>> Pulse::start(const std::vector<std::string>& at) {
  std::unique_ptr<Pulse> pulse(new Pulse);
  DEDUP_ASSIGN(pulse->listeners_, Listeners::open(at));
  pulse->waker_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!pulse->waker_.is_open()) return Status::from_errno(errno, "setting up the service");
  DEDUP_ASSIGN(pulse->thread_, start_thread("dedup-pulse", [p = pulse.get()] { p->run(); }));
  return pulse;
}

Pulse::~Pulse() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  // Fails only if the counter is at its limit, which nobody else counts.
  [[maybe_unused]] const ssize_t n = write(waker_.fd(), &one, sizeof one);
  thread_.join();
}

void Pulse::run() const {
  std::vector<pollfd> watched{{waker_.fd(), POLLIN, 0}};
  for (const Socket& listener : listeners_.sockets()) {
    watched.push_back({listener.fd(), POLLIN, 0});
  }
  while (true) {
    const int n = poll(watched.data(), watched.size(), -1);
    if (n < 0 && errno != EINTR) return;
    if (n < 0) continue;
    if (watched[0].revents != 0) return;
    bool may_go_on = true;
    for (std::size_t i = 1; i < watched.size(); ++i) {
      if (watched[i].revents != 0) may_go_on = answer_all(watched[i].fd) && may_go_on;
    }
    if (!may_go_on) (void)poll(watched.data(), 1, kPauseMilliseconds);
  }
}

bool has_pulse(const std::vector<std::string>& addresses, std::uint16_t port,
               std::chrono::seconds patience) {
  return std::any_of(addresses.begin(), addresses.end(), [&](const std::string& address) {
    const Reached reached = reach(address, port, patience, patience);
    if (!reached.socket.is_open()) return false;
    std::array<std::byte, kMagicSize> told;
    const std::string error =
        receive_all(reached.socket.fd(), told, {patience, [] { return "no answer"; }});
    return error.empty() && std::memcmp(told.data(), kMagic, kMagicSize) == 0;
  });
}

}  // namespace dedup::service
