// A System of which one call fails: for tests.
//
// It passes every call on, counts those that the planned fault can happen to, and lets it happen to
// the n-th. Closing never fails, nor does starting to write back, which promises nothing. Any
// number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "test/hooks/forwarding_system.h"

namespace dedup::store {

// What happens to the call. All but kInterrupted and kShort are errors that the caller has to
// report; those two it has to deal with.
enum class Fault : std::uint32_t {
  kNone,
  kIo,           // EIO, any call
  kLate,         // the call is done, and reports EIO: one that changes names or sizes, or flushes
  kNoSpace,      // ENOSPC, a call that may take space
  kFull,         // half of a write is done; from then on ENOSPC for all calls that may take space
  kReadOnly,     // EROFS, a call that changes something, and all later ones
  kTooMany,      // EMFILE, opening
  kInterrupted,  // EINTR, a call that may wait
  kShort,        // half of a read or write is done, and said so
  kDead,         // the process is dead: this and all later calls do nothing
  kDeadShort,    // the same after half of a write was done
  kEnd,
};
std::string_view name_of(Fault fault);

// May be in memory that processes share.
struct FaultPlan {
  std::atomic<Fault> fault{Fault::kNone};
  std::atomic<std::uint32_t> struck{0};  // 1: it has happened
  std::atomic<std::uint64_t> at{0};      // to which call, from 1; 0: to none
  std::atomic<std::uint64_t> calls{0};   // that it could happen to, so far
  char where[232] = {};                  // the call that it happened to, for messages

  // Counts from here.
  void set(Fault what, std::uint64_t which);
};
// programs/faults.c of the integration tests has the same.
static_assert(sizeof(FaultPlan) == 256 && std::atomic<std::uint64_t>::is_always_lock_free);

class FaultySystem final : public ForwardingSystem {
 public:
  // Both must outlive it.
  FaultySystem(System& below, FaultPlan& plan) : ForwardingSystem(below), plan_(plan) {}

  // If set, it happens to calls on these only: `path`, or, if that is null, `fd`. The dead do
  // nothing anywhere.
  std::function<bool(const char* path, int fd)> is_meant;
  // Called when the process dies.
  std::function<void()> on_death;
  // Called before fsync or fdatasync reports a failure.
  std::function<void(int fd)> on_failed_sync;

  int open(const char* path, int flags, mode_t mode) override;
  ssize_t preadv(int fd, const iovec* parts, int count, off_t offset) override;
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override;
  int ftruncate(int fd, off_t size) override;
  int fsync(int fd) override;
  int fdatasync(int fd) override;
  int allocate(int fd, off_t offset, off_t bytes) override;
  int reserve(int fd, off_t offset, off_t bytes) override;
  int punch(int fd, off_t offset, off_t bytes) override;
  int map(int fd, off_t offset, std::size_t bytes, void*& where) override;
  int flock(int fd, int operation) override;
  int fstat(int fd, struct stat* about) override;
  int fchmod(int fd, mode_t mode) override;
  int fchown(int fd, uid_t owner, gid_t group) override;
  int clone(int fd, int from) override;
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
  // What tells which faults can happen to a call.
  struct Traits {
    bool changes = false;  // something on the file system
    bool takes_space = false;
    bool waits = false;
    bool opens = false;
    bool transfers = false;
    bool writes = false;
    bool done_at_once = false;  // names, sizes and flushes
  };
  struct Where {
    const char* call;
    const char* path = nullptr;
    int fd = -1;
  };
  static bool can_happen(Fault fault, const Traits& traits);
  // What is to happen to this call.
  Fault next(const Traits& traits, const Where& where);
  template <typename Call>
  auto pass(const Traits& traits, const Where& where, Call&& call) -> decltype(call());
  template <typename Call>
  int pass_sync(const Where& where, Call&& call);
  template <typename Call>
  ssize_t transfer(const Traits& traits, const Where& where, const iovec* parts, int count,
                   Call&& call);

  FaultPlan& plan_;
};

}  // namespace dedup::store
