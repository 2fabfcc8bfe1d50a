/* A library to preload: something happens to this process at the n-th call that changes files.
 *
 *   FAULT_RANK   the rank (PMI_RANK) that it happens to
 *   FAULT_CALL   n, from 1; calls made by the service thread count as well
 *   FAULT_ERROR  the errno that this call and all later ones return; SIGKILL if not set
 *   FAULT_ONCE   set: later ones do what they should
 *   FAULT_ONLY   count calls of this function only
 *   FAULT_COUNT  a file that gets the number of calls when the process ends
 *   FAULT_NO_LOCKS  set: flock() succeeds and locks nothing, as on a file system whose locks other
 *                nodes do not see; all ranks
 *   FAULT_MEET   a directory: who is about to replace what stands at a real path (by a symbolic
 *                link or, where it makes none, by renaming) waits there, once, until two are;
 *                all ranks */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static long target;
static int fault_error;
static const char* only;
static int once;

__attribute__((constructor)) static void start(void) {
  const char* mine = getenv("PMI_RANK");
  const char* wanted = getenv("FAULT_RANK");
  const char* call = getenv("FAULT_CALL");
  const char* error = getenv("FAULT_ERROR");
  only = getenv("FAULT_ONLY");
  once = getenv("FAULT_ONCE") != NULL;
  if (mine == NULL || wanted == NULL || strcmp(mine, wanted) != 0) return;
  if (call != NULL) target = atol(call);
  if (error != NULL) fault_error = atoi(error);
}

__attribute__((destructor)) static void end(void) {
  const char* mine = getenv("PMI_RANK");
  const char* wanted = getenv("FAULT_RANK");
  const char* path = getenv("FAULT_COUNT");
  if (path == NULL || mine == NULL || wanted == NULL || strcmp(mine, wanted) != 0) return;
  FILE* file = fopen(path, "w");
  if (file == NULL) abort();
  fprintf(file, "%ld\n", atomic_load(&calls));
  fclose(file);
}

/* True if the call has to fail. */
static int fails(const char* function) {
  if (only != NULL && strcmp(only, function) != 0) return 0;
  const long n = atomic_fetch_add(&calls, 1) + 1;
  if (target == 0 || n < target || (once && n > target)) return 0;
  if (fault_error == 0) {
    raise(SIGKILL);
  }
  errno = fault_error;
  return 1;
}

/* The function of that name with these parameters, and the same in the C library. */
#define WRAP(result, function, parameters, arguments)               \
  result function parameters {                                      \
    static result(*real) parameters;                                \
    if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #function); \
    if (fails(#function)) return -1;                                \
    return real arguments;                                          \
  }

WRAP(ssize_t, pwrite, (int fd, const void* data, size_t size, off_t at), (fd, data, size, at))
WRAP(ssize_t, pwritev, (int fd, const struct iovec* parts, int n, off_t at), (fd, parts, n, at))
WRAP(ssize_t, pwrite64, (int fd, const void* data, size_t size, off64_t at), (fd, data, size, at))
WRAP(ssize_t, pwritev64, (int fd, const struct iovec* parts, int n, off64_t at), (fd, parts, n, at))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size))
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
/* Where FAULT_MEET says, once. */
static void meet(void) {
  static atomic_int done;
  const char* place = getenv("FAULT_MEET");
  if (place == NULL || atomic_exchange(&done, 1) != 0) return;
  char name[4096];
  for (int i = 1; i <= 2; ++i) {
    snprintf(name, sizeof name, "%s/%d", place, i);
    const int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0) continue;
    close(fd);
    break;
  }
  snprintf(name, sizeof name, "%s/2", place);
  while (access(name, F_OK) != 0) usleep(1000);
}

int symlink(const char* target, const char* path) {
  static int (*real)(const char*, const char*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "symlink");
  if (strstr(target, ".dedup-tmp") != NULL) meet();
  return fails("symlink") ? -1 : real(target, path);
}

int rename(const char* from, const char* to) {
  static int (*real)(const char*, const char*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "rename");
  if (strstr(from, ".dedup-tmp") != NULL) meet();
  return fails("rename") ? -1 : real(from, to);
}

int flock(int fd, int operation) {
  static int (*real)(int, int);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "flock");
  return getenv("FAULT_NO_LOCKS") != NULL ? 0 : real(fd, operation);
}

WRAP(int, link, (const char* from, const char* to), (from, to))
WRAP(int, mkdir, (const char* path, mode_t mode), (path, mode))
WRAP(int, unlink, (const char* path), (path))
WRAP(int, rmdir, (const char* path), (path))
