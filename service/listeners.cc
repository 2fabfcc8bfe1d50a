#include "service/listeners.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace dedup::service {
namespace {

// Several listeners share a port, which the first one finds: the others may find it taken.
constexpr int kTriesOfPort = 16;

}  // namespace

Result<Listeners> Listeners::open(const std::vector<std::string>& addresses) {
  Status status;
  for (int tried = 0; tried < kTriesOfPort; ++tried) {
    Listeners listeners;
    status = Status::ok();
    for (const std::string& address : addresses) {
      if (status.is_ok()) status = listeners.add(address);
    }
    if (status.is_ok()) return listeners;
  }
  return status;
}

Status Listeners::add(const std::string& address) {
  sockaddr_storage at;
  socklen_t size;
  if (!parse_address(address, port_, at, size)) {
    return {Code::kArgument, "'" + address + "' is not a numeric address"};
  }
  Socket listener(socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!listener.is_open()) return Status::from_errno(errno, "making a socket");
  // The address of all interfaces stands for IPv4 too; a single one could not.
  const int no = 0;
  if (at.ss_family == AF_INET6 &&
      setsockopt(listener.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0) {
    return Status::from_errno(errno, "setting up a socket");
  }
  if (bind(listener.fd(), reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
      ::listen(listener.fd(), SOMAXCONN) != 0 ||
      getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return Status::from_errno(errno, "listening for connections at " + address);
  }
  port_ = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(at).sin_port);
  sockets_.push_back(std::move(listener));
  return {};
}

Socket listen_on_host(const std::string& name) {
  sockaddr_un at;
  socklen_t size;
  host_address(name, at, size);
  Socket listener(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.is_open() ||
      bind(listener.fd(), reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
      ::listen(listener.fd(), SOMAXCONN) != 0) {
    return {};
  }
  return listener;
}

Socket accept_connection(int listener) {
  int fd;
  do {
    fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return Socket(fd);
}

}  // namespace dedup::service
