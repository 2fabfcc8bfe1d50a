// The calls of the operating system that the store makes: the kernel's, or, in tests, somebody
// else's.
//
// store/fs.h and store/real_path.h call the system through this and in no other way; whoever uses
// files of a store goes through them. Each function is the system call of its name: what it takes,
// what it returns and what it leaves in errno. A call costs one jump more than without.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <cstddef>
#include <string>
#include <vector>

namespace dedup::store {

class System {
 public:
  System() = default;
  virtual ~System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  // Whether calls from several threads may go on at once. Not in tests that count calls, or fail
  // the n-th.
  virtual bool takes_calls_at_once() const { return false; }

  // --- Open files -------------------------------------------------------------------------------
  virtual int open(const char* path, int flags, mode_t mode) = 0;
  virtual int close(int fd) = 0;
  virtual ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) = 0;
  virtual ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) = 0;
  virtual int ftruncate(int fd, off_t size) = 0;
  virtual int fsync(int fd) = 0;
  // sync_file_range() with SYNC_FILE_RANGE_WRITE: starts what fsync would do, and promises nothing.
  virtual int start_write_back(int fd, off_t offset, off_t bytes) = 0;
  virtual int fdatasync(int fd) = 0;
  // fallocate() without flags: takes space for these bytes.
  virtual int allocate(int fd, off_t offset, off_t bytes) = 0;
  // fallocate() that keeps the file's size: takes space for what is written there later.
  virtual int reserve(int fd, off_t offset, off_t bytes) = 0;
  // fallocate() that makes a hole: these bytes are zeros, and take no space.
  virtual int punch(int fd, off_t offset, off_t bytes) = 0;
  // mmap(), shared, for reading and writing; 0 and where, or -1 and errno. munmap() ends it.
  virtual int map(int fd, off_t offset, std::size_t bytes, void*& where) = 0;
  virtual int flock(int fd, int operation) = 0;
  virtual int fstat(int fd, struct stat* about) = 0;
  virtual int fchmod(int fd, mode_t mode) = 0;
  virtual int fchown(int fd, uid_t owner, gid_t group) = 0;
  // ioctl() with FICLONE: the file gets the bytes of `from`, which both then share.
  virtual int clone(int fd, int from) = 0;
  // fcntl() with F_SETLEASE: F_WRLCK, F_RDLCK or F_UNLCK. Whoever opens the file meanwhile (with
  // F_RDLCK: to write to it, or cuts it) waits, and does not end this process.
  virtual int set_lease(int fd, int kind) = 0;
  // With F_GETLEASE: what is left of it once those who wait have been let in, so F_UNLCK or F_RDLCK
  // if somebody waits.
  virtual int lease(int fd) = 0;

  // --- Names ------------------------------------------------------------------------------------
  virtual int stat(const char* path, struct stat* about) = 0;
  virtual int lstat(const char* path, struct stat* about) = 0;
  // access() for the effective user.
  virtual int eaccess(const char* path, int mode) = 0;
  virtual int chmod(const char* path, mode_t mode) = 0;
  virtual int mkdir(const char* path, mode_t mode) = 0;
  virtual int rmdir(const char* path) = 0;
  virtual int rename(const char* from, const char* to) = 0;
  virtual int link(const char* from, const char* to) = 0;
  virtual int symlink(const char* target, const char* path) = 0;
  // readlink(): 0 and the whole target, or -1 and errno.
  virtual int readlink(const char* path, std::string& target) = 0;
  virtual int unlink(const char* path) = 0;
  // opendir() and readdir() to the end: the names in a directory, in any order; -1 and errno.
  virtual int list(const char* path, std::vector<std::string>& names) = 0;
  virtual int realpath(const char* path, std::string& resolved) = 0;
  virtual int getcwd(std::string& directory) = 0;
  virtual int statvfs(const char* path, struct statvfs* about) = 0;
  virtual int statfs(const char* path, struct statfs* about) = 0;
};

// The kernel.
System& kernel();

// What this process uses: the kernel if nothing else was set. An open file stays with the one that
// opened it.
System& system();
// For tests; `other` must outlive its use. Returns what was in use before.
System& use_system(System& other);

}  // namespace dedup::store
