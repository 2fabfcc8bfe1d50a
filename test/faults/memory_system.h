// File systems in memory, with a model of what is durable: for tests that lose power.
//
// One MemorySystem is a cluster's disks in one tree of names: any number of disks, each mounted at
// a directory, each with a size. Nothing of it touches the kernel; a call takes a fraction of a
// microsecond. Use it with store::use_system(). One thread.
//
// What it models
//   - Files with holes, directories, several names of a file; a file lives on while it is open.
//   - flock: locks belong to the open file. Descriptors are never used twice.
//   - Processes: open() gives the descriptor to the process that set_process() named; kill() closes
//     all of one. What a killed process wrote stays: that is the kernel's.
//   - Space: data in units of 512 bytes, and as much for each file and directory. A write that does
//     not fit is cut short, then ENOSPC.
//   - Durability, as POSIX promises it and no more. fsync or fdatasync makes a file's content
//     durable, fsync of a directory the names in it. Not so the name of a new file by fsync of the
//     file, nor the names above. crash() takes a disk's power: of what was not covered, any part
//     may be lost: single writes, single sectors of a write (also with the size kept: zeros),
//     truncations, names made, renamed and removed. In order (names are lost from some point on, as
//     on a journaling file system) or not (any of them).
//   - After a failed fsync (fail_sync()) nothing that was written before ever becomes durable by a
//     later one: as on Linux, which takes the pages for clean.
//
// What it does not
//   - Following symbolic links: they can be made and read; renaming between directories (EXDEV);
//   permissions are kept, not checked.
//   - Mode, owner and times are durable at once.
//   - Blocks of other files or old content in what a crash leaves: it is zeros.
//   - A lock that somebody else has is EWOULDBLOCK also without LOCK_NB: there is nobody to wait
//   for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "store/system.h"
#include "test/faults/memory_content.h"

namespace dedup::test {

// What becomes of that which no fsync covered.
Choose lose_all();
Choose keep_all();
// Keeps from few to nearly all of it: how much depends on the seed, too.
Choose choose_randomly(std::uint64_t seed);

class MemorySystem final : public store::System {
 public:
  // An empty "/" without a limit, which no crash touches, and /proc/sys/kernel/random/boot_id: all
  // nodes run on one kernel.
  MemorySystem();
  ~MemorySystem() override;

  // Mounts an empty disk at `path`, made if it is missing. `bytes`: its size.
  void mount(const std::string& path, std::uint64_t bytes = ~std::uint64_t{0});
  void resize_disk(const std::string& path, std::uint64_t bytes);
  std::uint64_t used_bytes(const std::string& path) const;
  // Whether what a call is about is on the disk mounted there: `path`, or, if that is null, `fd`.
  bool is_on(const std::string& disk, const char* path, int fd);

  // Whose calls come next; 0 at first.
  void set_process(int process) { process_ = process; }
  void kill(int process);
  std::size_t open_files(int process) const;

  // The disk mounted at `path` loses power, with whatever was open on it; it is there again on
  // return.
  enum class Order { kInOrder, kAny };
  void crash(const std::string& path, const Choose& choose, Order order);
  // Makes everything on it durable.
  void settle(const std::string& path);
  // As a failed fsync of the file behind `fd`.
  void fail_sync(int fd);

  // For tests: a file's content, and all files below a directory with their sizes.
  Bytes content(const std::string& path) const;
  void put_content(const std::string& path, std::span<const std::byte> bytes);
  std::map<std::string, std::uint64_t> tree(const std::string& path) const;

  int open(const char* path, int flags, mode_t mode) override;
  int close(int fd) override;
  ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) override;
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override;
  int ftruncate(int fd, off_t size) override;
  int fsync(int fd) override;
  int start_write_back(int, off_t, off_t) override { return 0; }  // nothing is safe for it
  int fdatasync(int fd) override;
  // As file systems that cannot: leases are not to be had on it.
  int allocate(int fd, off_t offset, off_t bytes) override;
  // Says whether there is space, and keeps none: what is written next finds it.
  int reserve(int fd, off_t offset, off_t bytes) override;
  int punch(int fd, off_t offset, off_t bytes) override;
  int map(int fd, off_t offset, std::size_t bytes, void*& where) override;
  int flock(int fd, int operation) override;
  int fstat(int fd, struct stat* about) override;
  int fchmod(int fd, mode_t mode) override;
  int fchown(int fd, uid_t owner, gid_t group) override;
  int clone(int fd, int from) override;  // there is no such thing
  int set_lease(int fd, int kind) override;
  int lease(int fd) override;
  int stat(const char* path, struct stat* about) override;
  int lstat(const char* path, struct stat* about) override;
  int eaccess(const char* path, int mode) override;
  int chmod(const char* path, mode_t mode) override;
  int mkdir(const char* path, mode_t mode) override;
  int rmdir(const char* path) override;
  int rename(const char* from, const char* to) override;
  int link(const char* from, const char* to) override;
  int symlink(const char* target, const char* path) override;
  int readlink(const char* path, std::string& target) override;
  int unlink(const char* path) override;
  int list(const char* path, std::vector<std::string>& names) override;
  int realpath(const char* path, std::string& resolved) override;
  int getcwd(std::string& directory) override;
  int statvfs(const char* path, struct statvfs* about) override;
  int statfs(const char* path, struct statfs* about) override;

 private:
  struct Node;
  struct Disk;
  struct OpenFile;
  struct Place;

  Place find(const char* path) const;
  Node* find_node(const char* path) const;
  OpenFile* file_of(int fd);
  Disk& disk_at(const std::string& path) const;
  std::shared_ptr<Node> new_node(Disk& disk, mode_t mode);
  void change_names(Node& directory, std::string_view removed, std::string_view added,
                    const std::shared_ptr<Node>& node);
  void touch(Node& node);
  void close_file(OpenFile& file);
  void drop_name(Node& node);
  int sync(int fd);
  void fill(const Node& node, struct stat* about) const;

  std::map<std::string, std::unique_ptr<Disk>> disks_;  // by where they are mounted
  std::shared_ptr<Node> root_;
  std::vector<OpenFile> open_;
  int process_ = 0;
  std::uint64_t clock_ = 1'700'000'000'000'000'000;  // ns
};

}  // namespace dedup::test
