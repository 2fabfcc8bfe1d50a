/* libdedup-mount.so, preloaded by dedup-mpiexec --mount: before a process of the job does anything,
 * its host has the mount, whichever launcher started it there, and whether or not it is a program
 * of MPI's. The first process of a host starts `dedupctl mount`; each has it until it ends, in
 * whatever way. Variables: DEDUP_MOUNT is the directory, DEDUP_MOUNT_BY dedupctl, DEDUP_MOUNT_JOB
 * the job.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mount_address.h"
#include "tools/mount_in_job.h"

extern char** environ;

/* Milliseconds. */
enum {
  PAUSE = 10,      /* until somebody who is about to listen does, or the mount of before is gone */
  PATIENCE = 10000 /* for a mount of before, and for ours to be taken down */
};
enum { HIGH_DESCRIPTOR = 800 }; /* where few programs look for one that they may use */

static int connection = -1;
static pid_t connected; /* this process, and none that it forks */

static void pause_shortly(void) {
  const struct timespec time = {0, PAUSE * 1000000L};
  nanosleep(&time, NULL);
}

/* mpiexec drops what it has not read when it is told to end a job: as wait_until_read() in
 * base/warn.h. */
static void wait_until_read(void) {
  int unread = 0;
  for (int i = 0; i < 100 && ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0; ++i) {
    pause_shortly();
  }
}

/* MPICH's mpiexec ends the others of a process that ends before MPI_Init only if it is told to. */
static _Noreturn void end_job(void) {
  static const char command[] = "cmd=abort exitcode=1\n";
  const char* const descriptor = getenv("PMI_FD");
  if (descriptor != NULL) (void)!write(atoi(descriptor), command, sizeof command - 1);
  _exit(EXIT_FAILURE);
}

static _Noreturn void die(const char* format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "dedup: error: %s\n", text);
  wait_until_read();
  end_job();
}

/* -1 if nobody is there. */
static int connect_to_mount(const char* directory) {
  struct sockaddr_un address;
  struct ucred peer;
  socklen_t size = mount_address(geteuid(), directory, &address);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) die("cannot make a socket: %s", strerror(errno));
  while (connect(fd, (const struct sockaddr*)&address, size) != 0) {
    if (errno == EINTR) continue;
    if (errno != ECONNREFUSED) die("cannot ask for the mount: %s", strerror(errno));
    close(fd);
    return -1;
  }
  size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid()) {
    die("who answers for the mount at %s is another user's process", directory);
  }
  return fd;
}

/* The environment without what is the job's. */
static char** environment_of_dedupctl(void) {
  size_t count = 0, kept = 0;
  while (environ[count] != NULL) ++count;
  char** const words = malloc((count + 1) * sizeof *words);
  if (words == NULL) die("no memory is left");
  for (size_t i = 0; i < count; ++i) {
    if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) == 0) continue;
    words[kept++] = environ[i];
  }
  words[kept] = NULL;
  return words;
}

static int start_mount(const char* program, const char* directory, const char* job) {
  int ends[2];
  int status = 0;
  pid_t child;
  posix_spawn_file_actions_t actions;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
      posix_spawn_file_actions_init(&actions) != 0 ||
      posix_spawn_file_actions_adddup2(&actions, ends[1], MOUNT_DESCRIPTOR) != 0) {
    die("cannot make a socket: %s", strerror(errno));
  }
  char* words[] = {(char*)program, "mount", "--for-job", (char*)job, (char*)directory, NULL};
  char** const environment = environment_of_dedupctl();
  const int error = posix_spawn(&child, program, &actions, NULL, words, environment);
  if (error != 0) die("cannot run %s: %s", program, strerror(error));
  free(environment);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  /* It goes on by itself at once, so that the program does not come upon a child of its own. */
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return ends[0];
}

/* 0 if the connection has ended. */
static char answer_of(int fd) {
  char answer = 0;
  ssize_t size;
  do {
    size = recv(fd, &answer, 1, 0);
    /* The latter once, before what was answered by who did not read what he was sent. */
  } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
  return size == 1 ? answer : 0;
}

static void wait_for_end(int fd) {
  struct pollfd ended = {fd, POLLIN, 0};
  const int ready = poll(&ended, 1, PATIENCE);
  if (ready > 0 && answer_of(fd) == 0) return;
  if (ready < 0 && errno == EINTR) return; /* it is asked again */
  die("%s: another job has its mount there; dedup-mpiexec --mount=DIR names another directory",
      getenv("DEDUP_MOUNT"));
}

/* The connection by which this process has the mount. */
static int get_mount(const char* program, const char* directory, const char* job) {
  for (;;) {
    int fd = connect_to_mount(directory);
    const int is_started = fd < 0;
    if (is_started) fd = start_mount(program, directory, job);
    /* Who is gone by now may have answered. */
    (void)!send(fd, job, strlen(job), MSG_NOSIGNAL);
    switch (answer_of(fd)) {
      case MOUNT_IS_UP:
        return fd;
      case MOUNT_FAILED:
        end_job();
      case MOUNT_IS_OTHERS:
        wait_for_end(fd); /* it may be about to be taken down */
        break;
      case MOUNT_IS_BEING_MADE:
        break;
      default:
        if (is_started) die("%s ended before it had mounted %s", program, directory);
    }
    close(fd);
    pause_shortly();
  }
}

__attribute__((constructor)) static void begin(void) {
  const char* const directory = getenv("DEDUP_MOUNT");
  const char* const program = getenv("DEDUP_MOUNT_BY");
  const char* const job = getenv("DEDUP_MOUNT_JOB");
  if (directory == NULL || program == NULL || job == NULL) return;
  if (strlen(job) > MOUNT_JOB_BYTES) die("DEDUP_MOUNT_JOB is too long");
  const int fd = get_mount(program, directory, job);
  /* Not closed by exec: a wrapper has it for what it becomes. */
  connection = fcntl(fd, F_DUPFD, HIGH_DESCRIPTOR);
  if (connection < 0) connection = fcntl(fd, F_DUPFD, 0);
  if (connection < 0) die("no descriptor is left: %s", strerror(errno));
  close(fd);
  connected = getpid();
  unsetenv("DEDUP_MOUNT_JOB"); /* what this process starts has it through this one */
}

/* Who is the last one waits until it is taken down: Slurm kills what is left after a step's tasks.
 */
__attribute__((destructor)) static void end(void) {
  if (connected != getpid() || shutdown(connection, SHUT_WR) != 0) return;
  struct pollfd ended = {connection, POLLIN, 0};
  poll(&ended, 1, PATIENCE);
}
