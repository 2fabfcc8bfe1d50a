// A System that passes every call on to another: the base of those that change a few.
#pragma once

#include "store/system.h"

namespace dedup::store {

class ForwardingSystem : public System {
 public:
  // It must outlive this.
  explicit ForwardingSystem(System& below) : below_(below) {}

  int open(const char* path, int flags, mode_t mode) override {
    return below_.open(path, flags, mode);
  }
  int close(int fd) override { return below_.close(fd); }
  ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) override {
    return below_.preadv(fd, parts, count, offset);
  }
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override {
    return below_.pwritev(fd, parts, count, offset);
  }
  int ftruncate(int fd, off_t size) override { return below_.ftruncate(fd, size); }
  int fsync(int fd) override { return below_.fsync(fd); }
  int start_write_back(int fd, off_t offset, off_t bytes) override {
    return below_.start_write_back(fd, offset, bytes);
  }
  int fdatasync(int fd) override { return below_.fdatasync(fd); }
  int allocate(int fd, off_t offset, off_t bytes) override {
    return below_.allocate(fd, offset, bytes);
  }
  int reserve(int fd, off_t offset, off_t bytes) override {
    return below_.reserve(fd, offset, bytes);
  }
  int punch(int fd, off_t offset, off_t bytes) override { return below_.punch(fd, offset, bytes); }
  int map(int fd, off_t offset, std::size_t bytes, void*& where) override {
    return below_.map(fd, offset, bytes, where);
  }
  int flock(int fd, int operation) override { return below_.flock(fd, operation); }
  int fstat(int fd, struct stat* about) override { return below_.fstat(fd, about); }
  int fchmod(int fd, mode_t mode) override { return below_.fchmod(fd, mode); }
  int fchown(int fd, uid_t owner, gid_t group) override { return below_.fchown(fd, owner, group); }
  int clone(int fd, int from) override { return below_.clone(fd, from); }
  int set_lease(int fd, int kind) override { return below_.set_lease(fd, kind); }
  int lease(int fd) override { return below_.lease(fd); }
  int stat(const char* path, struct stat* about) override { return below_.stat(path, about); }
  int lstat(const char* path, struct stat* about) override { return below_.lstat(path, about); }
  int eaccess(const char* path, int mode) override { return below_.eaccess(path, mode); }
  int chmod(const char* path, mode_t mode) override { return below_.chmod(path, mode); }
  int mkdir(const char* path, mode_t mode) override { return below_.mkdir(path, mode); }
  int rmdir(const char* path) override { return below_.rmdir(path); }
  int rename(const char* from, const char* to) override { return below_.rename(from, to); }
  int link(const char* from, const char* to) override { return below_.link(from, to); }
  int symlink(const char* target, const char* path) override {
    return below_.symlink(target, path);
  }
  int readlink(const char* path, std::string& target) override {
    return below_.readlink(path, target);
  }
  int unlink(const char* path) override { return below_.unlink(path); }
  int list(const char* path, std::vector<std::string>& names) override {
    return below_.list(path, names);
  }
  int realpath(const char* path, std::string& resolved) override {
    return below_.realpath(path, resolved);
  }
  int getcwd(std::string& directory) override { return below_.getcwd(directory); }
  int statvfs(const char* path, struct statvfs* about) override {
    return below_.statvfs(path, about);
  }
  int statfs(const char* path, struct statfs* about) override { return below_.statfs(path, about); }

 protected:
  System& below_;
};

}  // namespace dedup::store
