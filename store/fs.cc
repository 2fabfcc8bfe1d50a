#include "store/fs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <limits>
#include <set>

namespace dedup::store::fs {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

Result<File> open_as(const char* action, const std::string& path, int flags, mode_t mode) {
  System& system = store::system();
  const int fd = retried([&] { return system.open(path.c_str(), flags | O_CLOEXEC, mode); });
  if (fd < 0) return failed(action, path);
  return File(system, fd, path);
}

// Whatever the umask.
Result<File> create(const char* action, const std::string& path, int flags) {
  DEDUP_ASSIGN(File file, open_as(action, path, flags | O_RDWR | O_CREAT, kFileMode));
  DEDUP_TRY(set_permissions(file, kFileMode));
  return file;
}

Info to_info(const struct stat& s) {
  Info info;
  info.is_directory = S_ISDIR(s.st_mode);
  info.is_link = S_ISLNK(s.st_mode);
  info.owner = s.st_uid;
  info.group = s.st_gid;
  info.permissions = s.st_mode & 07777;
  info.device = s.st_dev;
  info.inode = s.st_ino;
  info.links = s.st_nlink;
  info.size = static_cast<std::uint64_t>(s.st_size);
  info.allocated = static_cast<std::uint64_t>(s.st_blocks) * 512;
  info.modified = std::int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec;
  info.block_size = s.st_blksize > 0 ? static_cast<std::uint64_t>(s.st_blksize) : 0;
  return info;
}

// Drops the first `done` bytes of `parts`.
void drop_front(std::span<iovec>& parts, std::size_t done) {
  while (!parts.empty() && done >= parts[0].iov_len) {
    done -= parts[0].iov_len;
    parts = parts.subspan(1);
  }
  if (parts.empty()) return;
  parts[0].iov_base = static_cast<char*>(parts[0].iov_base) + done;
  parts[0].iov_len -= done;
}

int parts_at_once(std::span<iovec> parts) {
  return static_cast<int>(std::min<std::size_t>(parts.size(), IOV_MAX));
}

// A write of more is done in several. Kernels that keep files in large folios (ext4 from 6.16 on)
// look for larger ones for a larger write: up to six times slower than twice as many writes, where
// memory is scattered or has to be got from a host. bench/run shows rates for both.
constexpr std::size_t kWriteAtOnce = std::size_t{128} << 10;

// Of the first parts as many bytes as are written at once.
ssize_t write_first(const File& file, std::uint64_t offset, std::span<iovec> parts) {
  int count = 0;
  std::size_t bytes = 0;
  while (count < parts_at_once(parts) && bytes < kWriteAtOnce) {
    bytes += parts[static_cast<std::size_t>(count++)].iov_len;
  }
  iovec& last = parts[static_cast<std::size_t>(count - 1)];
  const std::size_t excess = bytes > kWriteAtOnce ? bytes - kWriteAtOnce : 0;
  last.iov_len -= excess;
  const ssize_t done =
      file.system().pwritev(file.fd(), parts.data(), count, static_cast<off_t>(offset));
  last.iov_len += excess;
  return done;
}

std::size_t total_size(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const auto& part : parts) size += part.iov_len;
  return size;
}

bool fits_off_t(std::uint64_t offset, std::size_t size) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  return offset <= kMax && size <= kMax - offset;
}

Status out_of_range(const File& file, std::uint64_t offset) {
  return {Code::kCorrupt, file.path() + ": no file has a byte " + std::to_string(offset)};
}

}  // namespace

Status failed(const char* action, const std::string& path) {
  return Status::from_errno(errno, std::string("cannot ") + action + " " + path);
}

bool is_out_of_room(const Status& status) {
  return status.code() == Code::kNoSpace || status.code() == Code::kQuota;
}

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

File& File::operator=(File&& other) noexcept {
  std::swap(system_, other.system_);
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  // What must last was flushed before; nothing can be done about an error here.
  if (fd_ >= 0) system_->close(fd_);
}

Result<File> open_file(const std::string& path, int flags, mode_t mode) {
  return open_as("open", path, flags, mode);
}

Result<File> open_read(const std::string& path) {
  return open_file(path, O_RDONLY);
}

Result<File> open_to_write(const std::string& path) {
  return open_file(path, O_RDWR);
}

Result<File> create_new(const std::string& path) {
  return create("create", path, O_EXCL);
}

Result<File> open_or_create(const std::string& path) {
  return create("open", path, O_NOFOLLOW);
}

Result<File> open_directory(const std::string& path) {
  return open_as("open directory", path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

Status read_at(const File& file, std::uint64_t offset, std::span<std::byte> out) {
  iovec part{out.data(), out.size()};
  return readv_at(file, offset, {&part, 1});
}

Status readv_at(const File& file, std::uint64_t offset, std::span<iovec> parts) {
  const std::uint64_t wanted = total_size(parts);
  DEDUP_ASSIGN(const std::uint64_t got, readv_to_end(file, offset, parts));
  if (got == wanted) return Status::ok();
  return {Code::kCorrupt,
          file.path() + ": ends at byte " + std::to_string(offset + got) + ", more was expected"};
}

Result<std::uint64_t> readv_to_end(const File& file, std::uint64_t offset, std::span<iovec> parts) {
  if (!fits_off_t(offset, total_size(parts))) return out_of_range(file, offset);
  const std::uint64_t begin = offset;
  drop_front(parts, 0);
  while (!parts.empty()) {
    const auto n = retried([&] {
      return file.system().preadv(file.fd(), parts.data(), parts_at_once(parts),
                                  static_cast<off_t>(offset));
    });
    if (n < 0) return failed("read", file.path());
    if (n == 0) break;
    offset += static_cast<std::uint64_t>(n);
    drop_front(parts, static_cast<std::size_t>(n));
  }
  return offset - begin;
}

Status write_at(const File& file, std::uint64_t offset, std::span<const std::byte> data) {
  iovec part{const_cast<std::byte*>(data.data()), data.size()};
  return writev_at(file, offset, {&part, 1});
}

Status writev_at(const File& file, std::uint64_t offset, std::span<iovec> parts) {
  if (!fits_off_t(offset, total_size(parts))) return out_of_range(file, offset);
  drop_front(parts, 0);
  while (!parts.empty()) {
    const auto n = retried([&] { return write_first(file, offset, parts); });
    if (n < 0) return failed("write", file.path());
    if (n == 0) return {Code::kIo, "cannot write " + file.path() + ": no byte was taken"};
    offset += static_cast<std::uint64_t>(n);
    drop_front(parts, static_cast<std::size_t>(n));
  }
  return Status::ok();
}

Status truncate(const File& file, std::uint64_t size) {
  if (!fits_off_t(size, 0)) return out_of_range(file, size);
  if (retried([&] { return file.system().ftruncate(file.fd(), static_cast<off_t>(size)); }) != 0) {
    return failed("truncate", file.path());
  }
  return Status::ok();
}

Status allocate(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  if (!fits_off_t(offset, bytes)) return out_of_range(file, offset);
  const int result = retried([&] {
    return file.system().allocate(file.fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  });
  return result == 0 ? Status::ok() : failed("take space for", file.path());
}

Status reserve(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  if (!fits_off_t(offset, bytes)) return out_of_range(file, offset);
  const int result = retried([&] {
    return file.system().reserve(file.fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  });
  return result == 0 ? Status::ok() : failed("take space for", file.path());
}

Status punch(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  if (!fits_off_t(offset, bytes)) return out_of_range(file, offset);
  const int result = retried([&] {
    return file.system().punch(file.fd(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  });
  return result == 0 ? Status::ok() : failed("make a hole in", file.path());
}

Result<Mapping> Mapping::create(const File& file, std::uint64_t offset, std::size_t bytes) {
  if (!fits_off_t(offset, bytes)) return out_of_range(file, offset);
  void* where = nullptr;
  if (file.system().map(file.fd(), static_cast<off_t>(offset), bytes, where) != 0) {
    return failed("map", file.path());
  }
  return Mapping({static_cast<std::byte*>(where), bytes});
}

bool Mapping::load(std::size_t offset, std::size_t bytes) const {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset / page * page;
  return retried([&] {
           return ::madvise(bytes_.data() + begin, offset + bytes - begin, MADV_POPULATE_READ);
         }) == 0;
}

Mapping::~Mapping() {
  // Fails only for what was not mapped.
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

void start_write_back(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  if (!fits_off_t(offset, bytes)) return;
  static_cast<void>(file.system().start_write_back(file.fd(), static_cast<off_t>(offset),
                                                   static_cast<off_t>(bytes)));
}

Status sync_data(const File& file) {
  if (retried([&] { return file.system().fdatasync(file.fd()); }) == 0) return Status::ok();
  return failed("flush", file.path());
}

Status sync(const File& file) {
  if (retried([&] { return file.system().fsync(file.fd()); }) == 0) return Status::ok();
  return failed("flush", file.path());
}

Result<Bytes> read_file(const std::string& path) {
  DEDUP_ASSIGN(const File file, open_read(path));
  DEDUP_ASSIGN(const Info about, info(file));
  if (about.is_directory || about.size > kMaxSmallFile) {
    return Status(Code::kCorrupt, path + ": not a small file");
  }
  Bytes bytes(about.size);
  DEDUP_TRY(read_at(file, 0, bytes));
  return bytes;
}

Status write_new_file(const std::string& path, std::span<const std::byte> data, bool flush) {
  DEDUP_ASSIGN(const File file, create_new(path));
  Status status = write_at(file, 0, data);
  if (status.is_ok() && flush) status = sync_data(file);
  if (!status.is_ok()) static_cast<void>(remove_file(path));
  return status;
}

std::string temporary_for(const std::string& path) {
  return path + ".tmp";
}

namespace {

Status put_in_place(const std::string& path, std::span<const std::byte> data, bool flush) {
  const std::string temporary = temporary_for(path);
  DEDUP_TRY(remove_file(temporary));
  DEDUP_TRY(write_new_file(temporary, data, flush));
  if (const Status status = rename(temporary, path); !status.is_ok()) {
    static_cast<void>(remove_file(temporary));
    return status;
  }
  return Status::ok();
}

}  // namespace

Status write_file_atomically(const std::string& path, std::span<const std::byte> data) {
  DEDUP_TRY(put_in_place(path, data, true));
  return sync_directory(directory_of(path));
}

Status replace_file(const std::string& path, std::span<const std::byte> data) {
  return put_in_place(path, data, false);
}

Result<Info> info(const std::string& path) {
  struct stat s;
  if (retried([&] { return system().lstat(path.c_str(), &s); }) != 0)
    return failed("look at", path);
  return to_info(s);
}

Result<Info> info(const File& file) {
  struct stat s;
  if (retried([&] { return file.system().fstat(file.fd(), &s); }) != 0)
    return failed("look at", file.path());
  return to_info(s);
}

Result<bool> exists(const std::string& path) {
  const auto about = info(path);
  if (about.is_ok()) return true;
  if (about.status().code() == Code::kNoSuchFile) return false;
  return about.status();
}

Result<bool> make_directory(const std::string& path) {
  if (retried([&] { return system().mkdir(path.c_str(), kDirectoryMode); }) != 0) {
    if (errno == EEXIST) return false;
    return failed("create directory", path);
  }
  // The umask may have taken the owner's bits away.
  if (retried([&] { return system().chmod(path.c_str(), kDirectoryMode); }) != 0) {
    return failed("set permissions of", path);
  }
  return true;
}

Status set_permissions(const File& file, mode_t permissions) {
  if (retried([&] { return file.system().fchmod(file.fd(), permissions); }) != 0) {
    return failed("set permissions of", file.path());
  }
  return Status::ok();
}

Result<std::vector<std::string>> list(const std::string& path) {
  std::vector<std::string> names;
  const auto read = [&] {
    names.clear();
    return system().list(path.c_str(), names);
  };
  if (retried(read) != 0) return failed("list directory", path);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> list_if_there(const std::string& path) {
  auto names = list(path);
  if (names.status().code() == Code::kNoSuchFile) return std::vector<std::string>{};
  return names;
}

Status rename(const std::string& from, const std::string& to) {
  if (retried([&] { return system().rename(from.c_str(), to.c_str()); }) != 0) {
    return failed("rename", from + " to " + to);
  }
  return Status::ok();
}

Status link(const std::string& from, const std::string& to) {
  if (retried([&] { return system().link(from.c_str(), to.c_str()); }) != 0) {
    return failed("create", to);
  }
  return Status::ok();
}

Status make_link(const std::string& target, const std::string& path) {
  if (retried([&] { return system().symlink(target.c_str(), path.c_str()); }) != 0) {
    return failed("create", path);
  }
  return Status::ok();
}

Result<std::string> read_link(const std::string& path) {
  std::string target;
  if (retried([&] { return system().readlink(path.c_str(), target); }) == 0) return target;
  if (errno == EINVAL) return Status(Code::kCorrupt, path + ": is no symbolic link");
  return failed("read", path);
}

Status remove_file(const std::string& path) {
  if (retried([&] { return system().unlink(path.c_str()); }) != 0 && errno != ENOENT) {
    return failed("remove", path);
  }
  return Status::ok();
}

Status remove_directory(const std::string& path) {
  if (retried([&] { return system().rmdir(path.c_str()); }) != 0 && errno != ENOENT) {
    return failed("remove directory", path);
  }
  return Status::ok();
}

Status remove_tree(const std::string& path, std::uint64_t* freed) {
  auto names = list(path);
  if (!names.is_ok()) {
    return names.status().code() == Code::kNoSuchFile ? Status::ok() : names.status();
  }
  for (const auto& name : *names) {
    const std::string child = path + "/" + name;
    const auto about = info(child);
    if (!about.is_ok()) {
      if (about.status().code() == Code::kNoSuchFile) continue;
      return about.status();
    }
    if (about->is_directory) {
      DEDUP_TRY(remove_tree(child, freed));
    } else {
      DEDUP_TRY(remove_file(child));
      if (freed != nullptr && about->links == 1) *freed += about->allocated;
    }
  }
  return remove_directory(path);
}

namespace {

using Inodes = std::set<std::pair<dev_t, ino_t>>;

// `counted`: files with several names that were.
Result<std::uint64_t> allocated_below(const std::string& path, Inodes& counted) {
  const auto about = info(path);
  if (about.status().code() == Code::kNoSuchFile) return std::uint64_t{0};
  DEDUP_TRY(about.status());
  std::uint64_t bytes = about->allocated;
  const bool has_others = !about->is_directory && about->links > 1;
  if (has_others && !counted.emplace(about->device, about->inode).second) return std::uint64_t{0};
  if (!about->is_directory) return bytes;
  const auto names = list(path);
  if (names.status().code() == Code::kNoSuchFile) return std::uint64_t{0};
  DEDUP_TRY(names.status());
  for (const std::string& name : *names) {
    DEDUP_ASSIGN(const std::uint64_t below, allocated_below(path + "/" + name, counted));
    bytes += below;
  }
  return bytes;
}

}  // namespace

Result<std::uint64_t> allocated_below(const std::string& path) {
  Inodes counted;
  return allocated_below(path, counted);
}

Status sync_directory(const std::string& path) {
  DEDUP_ASSIGN(const File directory, open_directory(path));
  return sync(directory);
}

Result<std::string> current_directory() {
  std::string directory;
  if (system().getcwd(directory) != 0) return failed("find", "the current directory");
  return directory;
}

Result<std::uint64_t> free_bytes(const std::string& path) {
  struct statvfs s;
  if (retried([&] { return system().statvfs(path.c_str(), &s); }) != 0) {
    return failed("find the free space of", path);
  }
  return static_cast<std::uint64_t>(s.f_bavail) * s.f_frsize;
}

Result<std::uint64_t> file_system_bytes(const std::string& path) {
  struct statvfs s;
  if (retried([&] { return system().statvfs(path.c_str(), &s); }) != 0) {
    return failed("find the size of the file system of", path);
  }
  return static_cast<std::uint64_t>(s.f_blocks) * s.f_frsize;
}

Result<bool> try_lock(const File& file, bool exclusive) {
  const int operation = (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
  if (retried([&] { return file.system().flock(file.fd(), operation); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return failed("lock", file.path());
}

Status unlock(const File& file) {
  if (retried([&] { return file.system().flock(file.fd(), LOCK_UN); }) == 0) return Status::ok();
  return failed("unlock", file.path());
}

Status clone(const File& file, const File& from) {
  if (retried([&] { return file.system().clone(file.fd(), from.fd()); }) == 0) return Status::ok();
  return failed("clone", from.path());
}

namespace {

// F_WRLCK is to be had only if nobody else has the file open, F_RDLCK if nobody has it for writing.
Result<bool> take_lease(const File& file, int kind) {
  if (retried([&] { return file.system().set_lease(file.fd(), kind); }) == 0) return true;
  if (errno == EAGAIN) return false;
  return failed("find out who has open", file.path());
}

}  // namespace

Result<bool> is_open_elsewhere(const File& file) {
  DEDUP_ASSIGN(const bool is_alone, take_lease(file, F_WRLCK));
  if (!is_alone) return true;
  if (retried([&] { return file.system().set_lease(file.fd(), F_UNLCK); }) != 0) {
    return failed("let go of", file.path());
  }
  return false;
}

Result<bool> keep_writers_waiting(const File& file) {
  return take_lease(file, F_RDLCK);
}

Result<bool> has_waiting_writers(const File& file) {
  const int left = retried([&] { return file.system().lease(file.fd()); });
  if (left < 0) return failed("find out who waits for", file.path());
  return left != F_RDLCK;
}

Status lock_exclusively(const File& file) {
  if (retried([&] { return file.system().flock(file.fd(), LOCK_EX); }) != 0) {
    return failed("lock", file.path());
  }
  return Status::ok();
}

}  // namespace dedup::store::fs
