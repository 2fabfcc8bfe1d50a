/* How the processes of a job have their host's mount (dedup-mpiexec --mount): what
 * libdedup-mount.so, which is preloaded into them (mount_in_job.c), and the process of
 * `dedupctl mount --for-job` (dedupctl/mount_users.h) say to each other. C, and C++.
 *
 * They meet at a socket (SOCK_SEQPACKET) in the abstract namespace. A process sends the job's name,
 * is answered by one byte, and has the mount for as long as the connection is there. Whoever finds
 * nobody at the socket starts `dedupctl`, which has the other end of a connection from the start.
 */
#ifndef DEDUP_TOOLS_MOUNT_IN_JOB_H
#define DEDUP_TOOLS_MOUNT_IN_JOB_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

enum {
  MOUNT_DESCRIPTOR = 3, /* of the connection that dedupctl is started with */
  MOUNT_JOB_BYTES = 256 /* most of a job's name, without a zero behind it */
};

/* The answers. */
enum {
  MOUNT_IS_UP = 'u',
  MOUNT_FAILED = 'f',       /* which has been said on standard error */
  MOUNT_IS_OTHERS = 'o',    /* another job's; the connection ends with the mount */
  MOUNT_IS_BEING_MADE = 'm' /* by another process, which is to be asked */
};

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
