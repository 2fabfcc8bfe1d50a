#include "store/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace dedup::store {
namespace {

class Kernel final : public System {
 public:
  bool takes_calls_at_once() const override { return true; }
  int open(const char* path, int flags, mode_t mode) override { return ::open(path, flags, mode); }
  int close(int fd) override { return ::close(fd); }
  ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) override {
    return ::preadv(fd, parts, count, offset);
  }
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override {
    return ::pwritev(fd, parts, count, offset);
  }
  int ftruncate(int fd, off_t size) override { return ::ftruncate(fd, size); }
  int fsync(int fd) override { return ::fsync(fd); }
  int start_write_back(int fd, off_t offset, off_t bytes) override {
    return ::sync_file_range(fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
  }
  int fdatasync(int fd) override { return ::fdatasync(fd); }
  int allocate(int fd, off_t offset, off_t bytes) override {
    return ::fallocate(fd, 0, offset, bytes);
  }
  int reserve(int fd, off_t offset, off_t bytes) override {
    return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, bytes);
  }
  int punch(int fd, off_t offset, off_t bytes) override {
    return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  }
  int map(int fd, off_t offset, std::size_t bytes, void*& where) override {
    where = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
    return where == MAP_FAILED ? -1 : 0;
  }
  int flock(int fd, int operation) override { return ::flock(fd, operation); }
  int fstat(int fd, struct stat* about) override { return ::fstat(fd, about); }
  int fchmod(int fd, mode_t mode) override { return ::fchmod(fd, mode); }
  int fchown(int fd, uid_t owner, gid_t group) override { return ::fchown(fd, owner, group); }
  int clone(int fd, int from) override { return ::ioctl(fd, FICLONE, from); }
  int set_lease(int fd, int kind) override {
    // Who opens the file meanwhile has a signal sent here. The one that it is by default ends the
    // process; this one is ignored.
    if (kind != F_UNLCK && ::fcntl(fd, F_SETSIG, SIGURG) != 0) return -1;
    return ::fcntl(fd, F_SETLEASE, kind);
  }
  int lease(int fd) override { return ::fcntl(fd, F_GETLEASE); }

  int stat(const char* path, struct stat* about) override { return ::stat(path, about); }
  int lstat(const char* path, struct stat* about) override { return ::lstat(path, about); }
  int eaccess(const char* path, int mode) override {
    return ::faccessat(AT_FDCWD, path, mode, AT_EACCESS);
  }
  int chmod(const char* path, mode_t mode) override { return ::chmod(path, mode); }
  int mkdir(const char* path, mode_t mode) override { return ::mkdir(path, mode); }
  int rmdir(const char* path) override { return ::rmdir(path); }
  int rename(const char* from, const char* to) override { return ::rename(from, to); }
  int link(const char* from, const char* to) override { return ::link(from, to); }
  int symlink(const char* target, const char* path) override { return ::symlink(target, path); }
  int readlink(const char* path, std::string& target) override;
  int unlink(const char* path) override { return ::unlink(path); }
  int list(const char* path, std::vector<std::string>& names) override;
  int realpath(const char* path, std::string& resolved) override;
  int getcwd(std::string& directory) override;
  int statvfs(const char* path, struct statvfs* about) override { return ::statvfs(path, about); }
  int statfs(const char* path, struct statfs* about) override { return ::statfs(path, about); }
};

int Kernel::list(const char* path, std::vector<std::string>& names) {
  const auto close = [](DIR* d) { ::closedir(d); };
  const std::unique_ptr<DIR, decltype(close)> directory(::opendir(path), close);
  if (!directory) return -1;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) return errno == 0 ? 0 : -1;
    names.emplace_back(entry->d_name);
  }
}

int Kernel::realpath(const char* path, std::string& resolved) {
  const std::unique_ptr<char, decltype(&std::free)> found(::realpath(path, nullptr), &std::free);
  if (!found) return -1;
  resolved = found.get();
  return 0;
}

int Kernel::readlink(const char* path, std::string& target) {
  char buffer[PATH_MAX];
  const ssize_t size = ::readlink(path, buffer, sizeof buffer);
  if (size < 0) return -1;
  target.assign(buffer, static_cast<std::size_t>(size));
  return 0;
}

int Kernel::getcwd(std::string& directory) {
  char buffer[PATH_MAX];
  if (::getcwd(buffer, sizeof buffer) == nullptr) return -1;
  directory = buffer;
  return 0;
}

std::atomic<System*> in_use{&kernel()};

}  // namespace

System& kernel() {
  // Files are closed by destructors of every age: it must outlive them all.
  static Kernel& the_kernel = *new Kernel;
  return the_kernel;
}

System& system() {
  return *in_use.load(std::memory_order_relaxed);
}

System& use_system(System& other) {
  return *in_use.exchange(&other);
}

}  // namespace dedup::store
