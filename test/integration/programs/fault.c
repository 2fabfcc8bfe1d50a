/* A library to preload: something happens to this process at the n-th call that changes files.
 *
 *   FAULT_RANK   the rank (PMI_RANK) that it happens to
 *   FAULT_CALL   n, from 1; calls made by the service thread count as well
 *   FAULT_ERROR  the errno that this call and all later ones return; SIGKILL if not set
 *   FAULT_ONCE   set: later ones do what they should
 *   FAULT_ONLY   count calls of this function only
 *   FAULT_COUNT  a file that gets the number of calls when the process ends */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
WRAP(int, rename, (const char* from, const char* to), (from, to))
WRAP(int, link, (const char* from, const char* to), (from, to))
WRAP(int, mkdir, (const char* path, mode_t mode), (path, mode))
WRAP(int, unlink, (const char* path), (path))
WRAP(int, rmdir, (const char* path), (path))
