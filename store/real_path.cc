#include "store/real_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/hooks.h"

namespace dedup::store {
namespace {

std::uint64_t nanoseconds(const timespec& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(t.tv_nsec);
}

Stamp stamp_of(const struct stat& s) {
  return {s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size), nanoseconds(s.st_mtim),
          nanoseconds(s.st_ctim)};
}

// Links are followed: those in the last part of a name are the user's.
int stat_of(const std::string& path, struct stat& s) {
  return fs::retried([&] { return system().stat(path.c_str(), &s); });
}

int stat_of(const fs::File& file, struct stat& s) {
  return fs::retried([&] { return file.system().fstat(file.fd(), &s); });
}

int access(const std::string& path, int mode) {
  return fs::retried([&] { return system().eaccess(path.c_str(), mode); });
}

// Half of its random id is enough. If it cannot be had, it is no other system's.
Result<Id128> running_kernel() {
  Id128 id = Id128::random();
  const auto file = fs::open_read("/proc/sys/kernel/random/boot_id");
  if (file.status().code() == Code::kNoSuchFile) return id;
  DEDUP_TRY(file.status());
  DEDUP_TRY(fs::read_at(*file, 0, std::as_writable_bytes(std::span(id.bytes))));
  return id;
}

bool has_size_of_placeholder(const std::string& path) {
  struct stat s {};
  return stat_of(path, s) == 0 && S_ISREG(s.st_mode) &&
         s.st_size == static_cast<off_t>(kPlaceholderSize);
}

// Whether the call failed because there is nothing of that name.
bool is_missing() {
  return errno == ENOENT || errno == ENOTDIR;
}

Result<PathState> look_at_plain(const std::string& path, const struct stat& s) {
  PathState state;
  state.kind = PathState::Kind::kPlain;
  state.stamp = stamp_of(s);
  if (s.st_size == 0) return state;
  // O_NONBLOCK: what was a file may have become a pipe meanwhile.
  DEDUP_ASSIGN(const fs::File file, fs::open_file(path, O_RDONLY | O_NONBLOCK));
  struct stat opened {};
  if (stat_of(file, opened) != 0) return fs::failed("look at", path);
  state.stamp = stamp_of(opened);
  // One byte more than a placeholder has, if there is one.
  Bytes begin(std::min<std::uint64_t>(state.stamp.size, kPlaceholderSize + 1));
  const Status read = fs::read_at(file, 0, begin);
  if (read.code() == Code::kCorrupt) return state;  // it was cut meanwhile
  DEDUP_TRY(read);
  if (!looks_like_placeholder(begin)) return state;
  DEDUP_ASSIGN(state.placeholder, decode_placeholder(begin, path));
  state.kind = PathState::Kind::kPlaceholder;
  return state;
}

}  // namespace

Result<Stamp> stamp_of(const fs::File& file) {
  struct stat s {};
  if (stat_of(file, s) != 0) return fs::failed("look at", file.path());
  return stamp_of(s);
}

bool is_unchanged(const Stamp& a, const Stamp& b) {
  Stamp same = a;
  same.device = b.device;
  return same == b;
}

Result<PathState> look_at(const std::string& path) {
  struct stat s {};
  if (stat_of(path, s) == 0) {
    if (S_ISREG(s.st_mode)) return look_at_plain(path, s);
    return Status(Code::kBadFile,
                  path + (S_ISDIR(s.st_mode) ? ": is a directory" : ": is not a regular file"));
  }
  if (errno != ENOENT && errno != ENOTDIR) return fs::failed("look at", path);
  PathState state;
  struct stat directory {};
  const bool is_there =
      stat_of(fs::directory_of(path), directory) == 0 && S_ISDIR(directory.st_mode);
  state.kind = is_there ? PathState::Kind::kNothing : PathState::Kind::kNoDirectory;
  return state;
}

bool is_placeholder_at(const std::string& path) {
  if (!has_size_of_placeholder(path)) return false;
  const auto state = look_at(path);
  if (state.is_ok()) return state->kind == PathState::Kind::kPlaceholder;
  const Code code = state.status().code();
  return code == Code::kCorrupt || code == Code::kVersion;  // one that cannot be used
}

Result<PathState> create_empty(const std::string& path) {
  DEDUP_ASSIGN(const fs::File file, fs::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666));
  struct stat s {};
  if (stat_of(file, s) != 0) return fs::failed("look at", path);
  PathState state;
  state.kind = PathState::Kind::kPlain;
  state.stamp = stamp_of(s);
  return state;
}

Status check_replaceable(const std::string& path) {
  const std::string directory = fs::directory_of(path);
  if (access(directory, W_OK | X_OK) != 0) {
    return fs::failed("write to directory", directory);
  }
  if (access(path, W_OK) != 0 && errno != ENOENT) {
    return fs::failed("write to", path);
  }
  return Status::ok();
}

// ---- One file system or several ---------------------------------------------------------------

Result<DirectoryId> directory_id(const std::string& path) {
  const std::string directory = fs::directory_of(path);
  struct stat s {};
  struct statfs about {};
  const auto look = [&] { return system().statfs(directory.c_str(), &about); };
  if (stat_of(directory, s) != 0 || fs::retried(look) != 0) {
    if (is_missing()) return DirectoryId{};
    return fs::failed("look at", directory);
  }
  DirectoryId id;
  id.type = static_cast<std::uint64_t>(about.f_type);
  static_assert(sizeof about.f_fsid == sizeof id.system);
  std::memcpy(&id.system, &about.f_fsid, sizeof id.system);
  id.inode = s.st_ino;
  return id;
}

Result<Seen> see_directory(const std::string& path) {
  Seen seen;
  if (has_private_paths()) {
    seen.kernel = Id128::random();
    seen.directory.inode = 1;
    return seen;
  }
  DEDUP_ASSIGN(seen.kernel, running_kernel());
  DEDUP_ASSIGN(seen.directory, directory_id(path));
  const std::string directory = fs::directory_of(path);
  struct stat s {};
  if (stat_of(directory, s) == 0) {
    seen.device = s.st_dev;
  } else if (!is_missing()) {
    return fs::failed("look at", directory);
  }
  return seen;
}

bool is_between_systems(const DirectoryId& directory) {
  // By the number that statfs() gives for them.
  constexpr std::array<std::uint64_t, 13> kBetweenSystems = {
      0x6969,      // NFS
      0x0bd00bd0,  // Lustre
      0x47504653,  // GPFS
      0x19830326,  // BeeGFS
      0x00c36400,  // Ceph
      0x20030528,  // OrangeFS
      0xaad7aaea,  // PanFS
      0xff534d42,  // SMB
      0xfe534d42,  // SMB 2
      0x5346414f,  // AFS
      0x65735546,  // FUSE: DAOS, Gluster and others
      0x01161970,  // GFS2
      0x7461636f,  // OCFS2
  };
  return std::find(kBetweenSystems.begin(), kBetweenSystems.end(), directory.type) !=
         kBetweenSystems.end();
}

bool is_shared(const Seen& a, const Seen& b) {
  if (a.directory.inode != b.directory.inode) return false;
  if (a.directory.inode == 0) return true;
  if (a.kernel == b.kernel) return a.device == b.device;
  return a.directory.type == b.directory.type && is_between_systems(a.directory);
}

}  // namespace dedup::store
