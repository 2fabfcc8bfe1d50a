#include "base/passed_descriptor.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/retried.h"

namespace dedup {
namespace {

// Room for one descriptor.
struct Control {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes{};
};

}  // namespace

bool is_own_user(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

ssize_t send_with(int socket, std::span<const iovec> parts, int flags, int descriptor) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  Control control;
  if (descriptor >= 0) {
    cmsghdr about{};
    about.cmsg_level = SOL_SOCKET;
    about.cmsg_type = SCM_RIGHTS;
    about.cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(control.bytes.data(), &about, sizeof about);
    std::memcpy(control.bytes.data() + CMSG_LEN(0), &descriptor, sizeof descriptor);
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
  }
  return retried([&] { return sendmsg(socket, &message, flags); });
}

ssize_t receive_with(int socket, std::span<std::byte> out, int flags, Descriptor& passed) {
  Control control;
  iovec part{out.data(), out.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  const ssize_t size = retried([&] { return recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC); });
  if (size < 0 || message.msg_controllen < CMSG_LEN(0)) return size;
  cmsghdr about;
  std::memcpy(&about, control.bytes.data(), sizeof about);
  if (about.cmsg_level != SOL_SOCKET || about.cmsg_type != SCM_RIGHTS) return size;
  // All that came is this process's to close, also if it is more than was agreed on: there is room
  // for it since the kernel aligns what it gives.
  const std::size_t end = std::min<std::size_t>(about.cmsg_len, message.msg_controllen);
  for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= end; at += sizeof(int)) {
    int which;
    std::memcpy(&which, control.bytes.data() + at, sizeof which);
    passed = Descriptor(which);
  }
  return size;
}

}  // namespace dedup
