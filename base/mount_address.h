/* Where the processes of a host find the one that looks after a mount in a job (dedup-mpiexec
 * --mount): a socket (SOCK_SEQPACKET) in the abstract namespace, of which the directory tells the
 * name. Others may have made it: who connects sees to it that the other end is this user's process.
 * C, and C++.
 */
#ifndef DEDUP_BASE_MOUNT_ADDRESS_H
#define DEDUP_BASE_MOUNT_ADDRESS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* Sets `address` to the socket of this user's mount at `directory`; returns its size. */
static inline socklen_t mount_address(uid_t user, const char* directory,
                                      struct sockaddr_un* address) {
  /* FNV-1a: a path may be longer than an address. */
  uint64_t hash = UINT64_C(14695981039346656037);
  for (const char* c = directory; *c != '\0'; ++c) {
    hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
  }
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  const int length =
      snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "dedup-mount-%lu-%016llx",
               (unsigned long)user, (unsigned long long)hash);
  return (socklen_t)(sizeof address->sun_family + 1 + (size_t)length);
}

#endif
