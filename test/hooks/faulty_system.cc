#include "test/hooks/faulty_system.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

namespace dedup::store {
namespace {

bool is_lasting(Fault fault) {
  return fault == Fault::kFull || fault == Fault::kReadOnly || fault == Fault::kDead ||
         fault == Fault::kDeadShort;
}

bool is_death(Fault fault) {
  return fault == Fault::kDead || fault == Fault::kDeadShort;
}

int error_of(Fault fault) {
  switch (fault) {
    case Fault::kNoSpace:
    case Fault::kFull:
      return ENOSPC;
    case Fault::kReadOnly:
      return EROFS;
    case Fault::kTooMany:
      return EMFILE;
    case Fault::kInterrupted:
      return EINTR;
    default:
      return EIO;
  }
}

// The first half of what `parts` are, at least a byte.
std::vector<iovec> first_half(const iovec* parts, int count) {
  std::vector<iovec> half(parts, parts + count);
  std::size_t size = 0;
  for (const iovec& part : half) size += part.iov_len;
  std::size_t left = std::max<std::size_t>(size / 2, 1);
  for (iovec& part : half) {
    part.iov_len = std::min(part.iov_len, left);
    left -= part.iov_len;
  }
  return half;
}

}  // namespace

std::string_view name_of(Fault fault) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Fault::kEnd)> kNames = {
      "none",  "EIO",   "EIO though done", "ENOSPC",           "full", "EROFS", "EMFILE",
      "EINTR", "short", "killed",          "killed in a write"};
  return kNames[static_cast<std::size_t>(fault)];
}

void FaultPlan::set(Fault what, std::uint64_t which) {
  fault = Fault::kNone;
  struck = 0;
  calls = 0;
  where[0] = '\0';
  at = which;
  fault = what;
}

bool FaultySystem::can_happen(Fault fault, const Traits& traits) {
  switch (fault) {
    case Fault::kIo:
    case Fault::kDead:
      return true;
    case Fault::kLate:
      return traits.done_at_once;
    case Fault::kNoSpace:
    case Fault::kFull:
      return traits.takes_space;
    case Fault::kReadOnly:
      return traits.changes;
    case Fault::kTooMany:
      return traits.opens;
    case Fault::kInterrupted:
      return traits.waits;
    case Fault::kShort:
      return traits.transfers;
    case Fault::kDeadShort:
      return traits.writes;
    default:
      return false;
  }
}

Fault FaultySystem::next(const Traits& traits, const Where& where) {
  const Fault fault = plan_.fault;
  if (fault == Fault::kNone) return fault;
  // The dead do nothing, whatever kind of call it was that they died of.
  if (is_death(fault) && plan_.struck != 0) return Fault::kDead;
  if (!can_happen(fault, traits)) return Fault::kNone;
  if (is_meant && !is_meant(where.path, where.fd)) return Fault::kNone;
  const std::uint64_t n = ++plan_.calls;
  const std::uint64_t at = plan_.at;
  if (at == 0 || n < at || (n > at && !is_lasting(fault))) return Fault::kNone;
  if (n > at) return fault == Fault::kFull ? Fault::kNoSpace : fault;
  if (where.path != nullptr) {
    std::snprintf(plan_.where, sizeof plan_.where, "%s %s", where.call, where.path);
  } else {
    std::snprintf(plan_.where, sizeof plan_.where, "%s %d", where.call, where.fd);
  }
  plan_.struck = 1;
  return fault;
}

template <typename Call>
auto FaultySystem::pass(const Traits& traits, const Where& where, Call&& call) -> decltype(call()) {
  const Fault fault = next(traits, where);
  if (fault == Fault::kNone) return call();
  if (fault == Fault::kLate) call();
  if (is_death(fault) && on_death) on_death();
  errno = error_of(fault);
  return -1;
}

template <typename Call>
int FaultySystem::pass_sync(const Where& where, Call&& call) {
  const Traits traits{.changes = true, .takes_space = true, .waits = true, .done_at_once = true};
  const int result = pass(traits, where, call);
  // An interrupted one has not failed yet.
  const int error = errno;
  if (result != 0 && error != EINTR && on_failed_sync) on_failed_sync(where.fd);
  errno = error;
  return result;
}

template <typename Call>
ssize_t FaultySystem::transfer(const Traits& traits, const Where& where, const iovec* parts,
                               int count, Call&& call) {
  const bool was_struck = plan_.struck != 0;
  const Fault fault = next(traits, where);
  if (fault == Fault::kNone) return call(parts, count);
  const bool halved = fault == Fault::kShort || fault == Fault::kFull ||
                      (fault == Fault::kDeadShort && !was_struck);
  if (halved && traits.transfers) {
    const auto half = first_half(parts, count);
    const ssize_t result = call(half.data(), count);
    if (fault != Fault::kDeadShort) return result;
  }
  if (is_death(fault) && on_death) on_death();
  errno = error_of(fault);
  return -1;
}

// ---- The calls ---------------------------------------------------------------------------------

int FaultySystem::open(const char* path, int flags, mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0;
  const Traits traits{.changes = creates, .takes_space = creates, .waits = true, .opens = true};
  return pass(traits, {"open", path}, [&] { return below_.open(path, flags, mode); });
}

ssize_t FaultySystem::preadv(int fd, const iovec* parts, int count, off_t offset) {
  const Traits traits{.waits = true, .transfers = true};
  return transfer(traits, {"preadv", nullptr, fd}, parts, count,
                  [&](const iovec* p, int n) { return below_.preadv(fd, p, n, offset); });
}

ssize_t FaultySystem::pwritev(int fd, const iovec* parts, int count, off_t offset) {
  const Traits traits{
      .changes = true, .takes_space = true, .waits = true, .transfers = true, .writes = true};
  return transfer(traits, {"pwritev", nullptr, fd}, parts, count,
                  [&](const iovec* p, int n) { return below_.pwritev(fd, p, n, offset); });
}

int FaultySystem::ftruncate(int fd, off_t size) {
  const Traits traits{.changes = true, .takes_space = true, .waits = true, .done_at_once = true};
  return pass(traits, {"ftruncate", nullptr, fd}, [&] { return below_.ftruncate(fd, size); });
}

int FaultySystem::fsync(int fd) {
  return pass_sync({"fsync", nullptr, fd}, [&] { return below_.fsync(fd); });
}

int FaultySystem::fdatasync(int fd) {
  return pass_sync({"fdatasync", nullptr, fd}, [&] { return below_.fdatasync(fd); });
}

int FaultySystem::allocate(int fd, off_t offset, off_t bytes) {
  const Traits traits{.changes = true, .takes_space = true, .waits = true, .done_at_once = true};
  return pass(traits, {"fallocate", nullptr, fd},
              [&] { return below_.allocate(fd, offset, bytes); });
}

int FaultySystem::reserve(int fd, off_t offset, off_t bytes) {
  const Traits traits{.changes = true, .takes_space = true, .waits = true, .done_at_once = true};
  return pass(traits, {"fallocate", nullptr, fd},
              [&] { return below_.reserve(fd, offset, bytes); });
}

int FaultySystem::punch(int fd, off_t offset, off_t bytes) {
  const Traits traits{.changes = true, .waits = true, .done_at_once = true};
  return pass(traits, {"fallocate", nullptr, fd}, [&] { return below_.punch(fd, offset, bytes); });
}

int FaultySystem::map(int fd, off_t offset, std::size_t bytes, void*& where) {
  return pass({}, {"mmap", nullptr, fd}, [&] { return below_.map(fd, offset, bytes, where); });
}

int FaultySystem::flock(int fd, int operation) {
  return pass({.waits = true}, {"flock", nullptr, fd}, [&] { return below_.flock(fd, operation); });
}

int FaultySystem::fstat(int fd, struct stat* about) {
  return pass({}, {"fstat", nullptr, fd}, [&] { return below_.fstat(fd, about); });
}

int FaultySystem::fchmod(int fd, mode_t mode) {
  const Traits traits{.changes = true, .waits = true};
  return pass(traits, {"fchmod", nullptr, fd}, [&] { return below_.fchmod(fd, mode); });
}

int FaultySystem::fchown(int fd, uid_t owner, gid_t group) {
  const Traits traits{.changes = true, .waits = true};
  return pass(traits, {"fchown", nullptr, fd}, [&] { return below_.fchown(fd, owner, group); });
}

int FaultySystem::clone(int fd, int from) {
  const Traits traits{.changes = true, .takes_space = true, .waits = true, .done_at_once = true};
  return pass(traits, {"clone", nullptr, fd}, [&] { return below_.clone(fd, from); });
}

int FaultySystem::set_lease(int fd, int kind) {
  return pass({.waits = true}, {"lease", nullptr, fd}, [&] { return below_.set_lease(fd, kind); });
}

int FaultySystem::lease(int fd) {
  return pass({.waits = true}, {"lease", nullptr, fd}, [&] { return below_.lease(fd); });
}

int FaultySystem::stat(const char* path, struct stat* about) {
  return pass({}, {"stat", path}, [&] { return below_.stat(path, about); });
}

int FaultySystem::lstat(const char* path, struct stat* about) {
  return pass({}, {"lstat", path}, [&] { return below_.lstat(path, about); });
}

int FaultySystem::eaccess(const char* path, int mode) {
  return pass({}, {"eaccess", path}, [&] { return below_.eaccess(path, mode); });
}

int FaultySystem::chmod(const char* path, mode_t mode) {
  return pass({.changes = true}, {"chmod", path}, [&] { return below_.chmod(path, mode); });
}

int FaultySystem::mkdir(const char* path, mode_t mode) {
  const Traits traits{.changes = true, .takes_space = true, .done_at_once = true};
  return pass(traits, {"mkdir", path}, [&] { return below_.mkdir(path, mode); });
}

int FaultySystem::rmdir(const char* path) {
  const Traits traits{.changes = true, .done_at_once = true};
  return pass(traits, {"rmdir", path}, [&] { return below_.rmdir(path); });
}

int FaultySystem::rename(const char* from, const char* to) {
  const Traits traits{.changes = true, .takes_space = true, .done_at_once = true};
  return pass(traits, {"rename", from}, [&] { return below_.rename(from, to); });
}

int FaultySystem::link(const char* from, const char* to) {
  const Traits traits{.changes = true, .takes_space = true, .done_at_once = true};
  return pass(traits, {"link", to}, [&] { return below_.link(from, to); });
}

int FaultySystem::symlink(const char* target, const char* path) {
  const Traits traits{.changes = true, .takes_space = true, .done_at_once = true};
  return pass(traits, {"symlink", path}, [&] { return below_.symlink(target, path); });
}

int FaultySystem::readlink(const char* path, std::string& target) {
  return pass({}, {"readlink", path}, [&] { return below_.readlink(path, target); });
}

int FaultySystem::unlink(const char* path) {
  const Traits traits{.changes = true, .done_at_once = true};
  return pass(traits, {"unlink", path}, [&] { return below_.unlink(path); });
}

int FaultySystem::list(const char* path, std::vector<std::string>& names) {
  const Traits traits{.opens = true};
  return pass(traits, {"list", path}, [&] { return below_.list(path, names); });
}

int FaultySystem::realpath(const char* path, std::string& resolved) {
  return pass({}, {"realpath", path}, [&] { return below_.realpath(path, resolved); });
}

int FaultySystem::getcwd(std::string& directory) {
  return pass({}, {"getcwd"}, [&] { return below_.getcwd(directory); });
}

int FaultySystem::statvfs(const char* path, struct statvfs* about) {
  return pass({}, {"statvfs", path}, [&] { return below_.statvfs(path, about); });
}

int FaultySystem::statfs(const char* path, struct statfs* about) {
  return pass({}, {"statfs", path}, [&] { return below_.statfs(path, about); });
}

}  // namespace dedup::store
