/* Preloaded: what file systems do to a copy that is written back, or to a plain file that is read,
 * and programs of the store do not see.
 *
 *   COPY_FAULT   refuse: writes to a copy are EIO
 *                lose: the first flush of a copy is EIO, and what was written to it since is zeros
 *                      (the kernel has dropped it, and says so once)
 *                stall: a write to a copy makes the file COPY_GO.stalled, and waits until COPY_GO
 *                      is there
 *                stall-read: so does a read of the file COPY_OF, when half of it has been read
 *   COPY_RANK    the rank (PMI_RANK) that it happens to; any, if not set
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kMost = 10000 };

static const char* fault = "";
static struct {
  off_t offset;
  off_t bytes;
} written[kMost];
static int count;

__attribute__((constructor)) static void begin(void) {
  const char* mine = getenv("PMI_RANK");
  const char* wanted = getenv("COPY_RANK");
  const char* what = getenv("COPY_FAULT");
  if (what != NULL && (wanted == NULL || (mine != NULL && strcmp(mine, wanted) == 0))) fault = what;
}

static int is(const char* what) {
  return strcmp(fault, what) == 0;
}

/* Empty if it has none. */
static const char* path_of(int fd, char path[4096]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, 4095);
  path[length < 0 ? 0 : length] = 0;
  return path;
}

static int is_copy(int fd) {
  char path[4096];
  return strstr(path_of(fd, path), ".dedup-copy-") != NULL;
}

static void stall(void) {
  char stalled[4096];
  snprintf(stalled, sizeof stalled, "%s.stalled", getenv("COPY_GO"));
  const int fd = open(stalled, O_CREAT | O_WRONLY, 0600);
  if (fd >= 0) close(fd);
  while (access(getenv("COPY_GO"), F_OK) != 0) usleep(10000);
}

ssize_t pwritev(int fd, const struct iovec* parts, int n, off_t offset) {
  static ssize_t (*real)(int, const struct iovec*, int, off_t);
  if (real == NULL) real = dlsym(RTLD_NEXT, "pwritev");
  if (fault[0] == 0 || !is_copy(fd)) return real(fd, parts, n, offset);
  if (is("refuse")) {
    errno = EIO;
    return -1;
  }
  if (is("stall")) stall();
  const ssize_t bytes = real(fd, parts, n, offset);
  if (is("lose") && bytes > 0 && count < kMost) {
    written[count].offset = offset;
    written[count++].bytes = bytes;
  }
  return bytes;
}
ssize_t pwritev64(int fd, const struct iovec* parts, int n, off_t offset) {
  return pwritev(fd, parts, n, offset);
}

/* The second half is what lies behind the first. */
static int is_second_half(int fd, off_t offset) {
  char path[4096];
  struct stat about;
  return strcmp(path_of(fd, path), getenv("COPY_OF")) == 0 && fstat(fd, &about) == 0 &&
         offset >= about.st_size / 2;
}

ssize_t preadv(int fd, const struct iovec* parts, int n, off_t offset) {
  static ssize_t (*real)(int, const struct iovec*, int, off_t);
  if (real == NULL) real = dlsym(RTLD_NEXT, "preadv");
  if (is("stall-read") && is_second_half(fd, offset)) stall();
  return real(fd, parts, n, offset);
}
ssize_t preadv64(int fd, const struct iovec* parts, int n, off_t offset) {
  return preadv(fd, parts, n, offset);
}

static int flush(const char* name, int fd) {
  static int is_done;
  int (*real)(int) = dlsym(RTLD_NEXT, name);
  if (!is("lose") || is_done || !is_copy(fd)) return real(fd);
  is_done = 1;
  for (int i = 0; i < count; ++i) {
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, written[i].offset,
                  written[i].bytes) != 0) {
      abort();
    }
  }
  errno = EIO;
  return -1;
}
int fsync(int fd) {
  return flush("fsync", fd);
}
int fdatasync(int fd) {
  return flush("fdatasync", fd);
}
