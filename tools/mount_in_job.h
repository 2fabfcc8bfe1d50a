/* How the processes of a job have their host's mount (dedup-mpiexec --mount): what
 * libdedup-mount.so, which is preloaded into them (mount_in_job.c), and the process of
 * `dedupctl mount --for-job` (dedupctl/mount_users.h) say to each other. C, and C++.
 *
 * They meet at a socket (base/mount_address.h). A process sends the job's name, is answered by one
 * byte, and has the mount for as long as the connection is there. Whoever finds nobody at the
 * socket starts `dedupctl`, which has the other end of a connection from the start. (Who tells of a
 * job's services comes to the same socket: service/job_services.h.)
 */
#ifndef DEDUP_TOOLS_MOUNT_IN_JOB_H
#define DEDUP_TOOLS_MOUNT_IN_JOB_H

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

#endif
