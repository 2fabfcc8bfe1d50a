#include "service/connect.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/passed_descriptor.h"

namespace dedup::service {

std::string error_text(int error) {
  return std::generic_category().message(error);
}

namespace {

Status make_blocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0) return {};
  return Status(Code::kUnreachable, error_text(errno));
}

}  // namespace

Reached reach_on_host(const std::string& name) {
  sockaddr_un to;
  socklen_t size;
  host_address(name, to, size);
  Socket s(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!s.is_open()) return {{}, error_text(errno), true};
  if (connect(s.fd(), reinterpret_cast<const sockaddr*>(&to), size) != 0) {
    return {{}, error_text(errno), errno != ECONNREFUSED};
  }
  if (!is_own_user(s.fd())) return {{}, "it is another user's", false};
  const Status status = make_blocking(s.fd());
  if (!status.is_ok()) return {{}, status.message(), true};
  return {std::move(s), {}, false};
}

Reached reach(const std::string& address, std::uint16_t port, std::chrono::milliseconds within,
              std::chrono::seconds patience) {
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
      n = poll(&ready, 1, static_cast<int>(within.count()));
    } while (n < 0 && errno == EINTR);
    if (n == 0) return {{}, "no answer", true};
    int error = 0;
    socklen_t error_size = sizeof error;
    if (n < 0 || getsockopt(s.fd(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) error = errno;
    if (error != 0) return {{}, error_text(error), error == ETIMEDOUT};
  }
  const Status status = make_blocking(s.fd());
  if (!status.is_ok()) return {{}, status.message(), false};
  const Status tuned = tune_connection(s.fd(), patience);
  if (!tuned.is_ok()) return {{}, tuned.message(), false};
  return {std::move(s), {}, false};
}

std::string receive_all(int fd, std::span<std::byte> in, const Waited& waited) {
  const std::chrono::milliseconds patience = waited.patience;
  while (!in.empty()) {
    pollfd ready{fd, POLLIN, 0};
    const int n = poll(&ready, 1, static_cast<int>(patience.count()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_text(errno);
    if (n == 0) {
      std::string why = waited.why_stop();
      if (why.empty()) continue;
      return why;
    }
    const std::ptrdiff_t got = receive_some(fd, in, 0);
    if (got < 0) return error_text(errno);
    if (got == 0) return "the connection was closed instead of an answer";
    in = in.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace dedup::service
