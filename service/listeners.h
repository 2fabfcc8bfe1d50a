// Sockets that listen: for TCP connections at one port of several addresses, and for those of
// processes of this host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/wire.h"

namespace dedup::service {

class Listeners {
 public:
  Listeners() = default;
  // At a port that the kernel chooses. `addresses`: numeric; the one of all interfaces of IPv6
  // stands for IPv4 too.
  static Result<Listeners> open(const std::vector<std::string>& addresses);

  std::uint16_t port() const { return port_; }
  const std::vector<Socket>& sockets() const { return sockets_; }  // nonblocking

 private:
  Status add(const std::string& address);

  std::vector<Socket> sockets_;
  std::uint16_t port_ = 0;
};

// Listens for processes of this host, under a name of host_socket_name(); nonblocking. An invalid
// socket if that cannot be.
Socket listen_on_host(const std::string& name);

// A connection that waits, or an invalid socket and errno. Never EINTR.
Socket accept_connection(int listener);

}  // namespace dedup::service
