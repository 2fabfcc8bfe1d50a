// What processes of one host, and one user, pass to each other over a socket (unix(7)).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/descriptor.h"

namespace dedup {

// Whether the other end of a connection within this host is a process of this user.
bool is_own_user(int socket);

// Both: what sendmsg() or recvmsg() returns, never EINTR.
//
// `descriptor` goes with the first byte; negative: none does.
ssize_t send_with(int socket, std::span<const iovec> parts, int flags, int descriptor);
// `passed`: what came with the bytes, as it was if nothing did. One that cannot be received (this
// process has too many files open) is not there.
ssize_t receive_with(int socket, std::span<std::byte> out, int flags, Descriptor& passed);

}  // namespace dedup
