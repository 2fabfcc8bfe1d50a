#include "store/real_path.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace dedup::store {
namespace {

constexpr std::string_view kTemporarySuffix = ".dedup-tmp";
constexpr std::size_t kHole = std::size_t{64} << 10;

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::string temporary_for(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return fs::directory_of(path) + "/." + name.substr(0, NAME_MAX - 1 - kTemporarySuffix.size()) +
         std::string(kTemporarySuffix);
}

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

// A link itself.
int stat_of_link(const std::string& path, struct stat& s) {
  return fs::retried([&] { return system().lstat(path.c_str(), &s); });
}

int change_owner(const fs::File& file, uid_t owner, gid_t group) {
  return fs::retried([&] { return file.system().fchown(file.fd(), owner, group); });
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

void Stamp::encode(Encoder& e) const {
  for (const std::uint64_t field : {device, inode, size, modified, changed}) e.put(field);
}

Stamp Stamp::decode(Decoder& d) {
  Stamp s;
  for (std::uint64_t* field : {&s.device, &s.inode, &s.size, &s.modified, &s.changed}) {
    *field = d.get<std::uint64_t>();
  }
  return s;
}

Result<Stamp> stamp_of(const fs::File& file) {
  struct stat s {};
  if (stat_of(file, s) != 0) return fs::failed("look at", file.path());
  return stamp_of(s);
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

// ---- Replacing --------------------------------------------------------------------------------

Result<std::unique_ptr<Replacement>> Replacement::begin(const std::string& path,
                                                        mode_t permissions) {
  const std::string temporary = temporary_for(path);
  DEDUP_ASSIGN(fs::File file, fs::open_file(temporary, O_RDWR | O_CREAT | O_NOFOLLOW, permissions));
  // Where there are no locks, nobody can be told from a killed job.
  const auto locked = fs::try_lock(file, true);
  struct stat held {};
  struct stat named {};
  if (stat_of(file, held) != 0) return fs::failed("look at", temporary);
  const bool is_ours = (!locked.is_ok() || *locked) && stat_of_link(temporary, named) == 0 &&
                       named.st_ino == held.st_ino && named.st_dev == held.st_dev;
  if (!is_ours) {
    return Status(Code::kFileInUse, path + ": another job is just replacing the file");
  }
  std::unique_ptr<Replacement> replacement(new Replacement(std::move(file), path, true));
  DEDUP_TRY(replacement->resize(0));
  struct stat old {};
  if (stat_of(path, old) == 0) {
    // Only root, or somebody in that group, may give files away.
    if (change_owner(replacement->file_, old.st_uid, old.st_gid) != 0) {
      (void)change_owner(replacement->file_, static_cast<uid_t>(-1), old.st_gid);
    }
    DEDUP_TRY(fs::set_permissions(replacement->file_, old.st_mode & 07777));
  }
  return replacement;
}

Result<std::unique_ptr<Replacement>> Replacement::join(const std::string& path) {
  DEDUP_ASSIGN(fs::File file, fs::open_file(temporary_for(path), O_WRONLY | O_NOFOLLOW));
  return std::unique_ptr<Replacement>(new Replacement(std::move(file), path, false));
}

Replacement::~Replacement() {
  if (is_mine_) (void)fs::remove_file(file_.path());
}

Result<std::uint64_t> Replacement::inode() const {
  DEDUP_ASSIGN(const fs::Info about, fs::info(file_));
  return std::uint64_t{about.inode};
}

Status Replacement::write(std::uint64_t offset, std::span<const std::byte> data) {
  return fs::write_at(file_, offset, data);
}

Status Replacement::write_sparse(std::uint64_t offset, std::span<const std::byte> data) {
  std::size_t begin = 0;  // of what is not zero, up to `at`
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t end = std::min(data.size(), at + kHole);
    if (is_zero(data.subspan(at, end - at))) {
      if (begin < at) DEDUP_TRY(write(offset + begin, data.subspan(begin, at - begin)));
      begin = end;
    }
    at = end;
  }
  return begin == data.size() ? Status::ok() : write(offset + begin, data.subspan(begin));
}

Status Replacement::resize(std::uint64_t size) {
  return fs::truncate(file_, size);
}

Status Replacement::flush() {
  return fs::sync(file_);
}

Status Replacement::put() {
  // What a link names is replaced, not the link.
  std::string target;
  if (system().realpath(path_.c_str(), target) != 0) target = path_;
  const Status renamed = fs::rename(file_.path(), target);
  if (!renamed.is_ok()) {
    // Network file systems may have lost no more than the answer.
    struct stat held {};
    struct stat named {};
    const bool is_done = stat_of(file_, held) == 0 && stat_of(target, named) == 0 &&
                         named.st_ino == held.st_ino && named.st_dev == held.st_dev;
    if (!is_done) return renamed;
  }
  is_mine_ = false;
  return fs::sync_directory(fs::directory_of(target));
}

Status Replacement::put_new() {
  const Status linked = fs::link(file_.path(), path_);
  if (linked.is_ok()) {
    DEDUP_TRY(fs::remove_file(file_.path()));
    is_mine_ = false;
    return fs::sync_directory(fs::directory_of(path_));
  }
  if (linked.code() == Code::kFileExists) return {Code::kFileExists, path_ + ": is there already"};
  // Some file systems have no second names for a file.
  DEDUP_ASSIGN(const bool is_there, fs::exists(path_));
  if (is_there) return {Code::kFileExists, path_ + ": is there already"};
  return put();
}

void remove_leftover(const std::string& path) {
  const std::string temporary = temporary_for(path);
  const auto file = fs::open_file(temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.is_ok()) return;
  const auto locked = fs::try_lock(*file, true);
  if (locked.is_ok() && *locked) (void)fs::remove_file(temporary);
}

// ---- One file system or several ---------------------------------------------------------------

void Seen::encode(Encoder& e) const {
  e.put(kernel);
  for (const std::uint64_t field : {directory.type, directory.system, directory.inode, device}) {
    e.put(field);
  }
}

Seen Seen::decode(Decoder& d) {
  Seen s;
  s.kernel = d.get_id();
  for (std::uint64_t* field :
       {&s.directory.type, &s.directory.system, &s.directory.inode, &s.device}) {
    *field = d.get<std::uint64_t>();
  }
  return s;
}

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
  if (std::getenv("DEDUP_TEST_PRIVATE_PATHS") != nullptr) {
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

bool is_shared(const Seen& a, const Seen& b) {
  if (a.directory.inode != b.directory.inode) return false;
  if (a.directory.inode == 0) return true;
  if (a.kernel == b.kernel) return a.device == b.device;
  // File systems that several systems use at once, by the number that statfs() gives for them.
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
  return a.directory.type == b.directory.type &&
         std::find(kBetweenSystems.begin(), kBetweenSystems.end(), a.directory.type) !=
             kBetweenSystems.end();
}

}  // namespace dedup::store
