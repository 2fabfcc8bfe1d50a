// How a client reaches what listens at a host, within a bounded time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "service/wire.h"

namespace dedup::service {

// A socket, or why there is none.
struct Reached {
  Socket socket;
  std::string error;
  bool again = false;  // trying again may help
};

// A blocking connection, tuned for `patience` (tune_connection); `within`: how long the host may
// take to answer.
Reached reach(const std::string& address, std::uint16_t port, std::chrono::milliseconds within,
              std::chrono::seconds patience);

// The same within this host, under a name of host_socket_name(). It does not wait: who is here
// takes a connection at once. `again`: somebody is, but cannot take it now.
Reached reach_on_host(const std::string& name);

// Asked when nothing has come for a while: the empty string, to wait on, or why not.
using WhyStop = std::function<std::string()>;

// How long something is waited for until `why_stop` is asked; without one, for ever.
struct Waited {
  std::chrono::seconds patience{};
  WhyStop why_stop{};
};

// Bytes for all of `in`. The empty string, or what went wrong.
std::string receive_all(int fd, std::span<std::byte> in, const Waited& waited);

// What the system calls an error.
std::string error_text(int error);

}  // namespace dedup::service
