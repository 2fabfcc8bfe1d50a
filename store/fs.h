// Files and directories, for the store and whoever reads its files.
//
// Calls the system through store/system.h. Each function retries what a signal interrupted and
// returns an error that names the path. Files are created 0600 and directories 0700 whatever the
// umask, all descriptors are close-on-exec. Nothing here keeps state: all functions may be called
// by several threads at once.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/retried.h"
#include "base/status.h"
#include "base/types.h"
#include "store/system.h"

namespace dedup::store::fs {

// An open file or directory; closed when destroyed. Knows its path for messages.
class File {
 public:
  File() = default;
  // `fd` was opened by `system`.
  File(System& system, int fd, std::string path)
      : system_(&system), fd_(fd), path_(std::move(path)) {}
  File(File&& other) noexcept
      : system_(other.system_), fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}
  File& operator=(File&& other) noexcept;
  ~File();

  System& system() const { return *system_; }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  // The descriptor, for somebody else to close.
  int release() { return std::exchange(fd_, -1); }

 private:
  System* system_ = nullptr;
  int fd_ = -1;
  std::string path_;
};

struct Info {
  bool is_directory = false;
  bool is_link = false;
  uid_t owner = 0;
  gid_t group = 0;
  mode_t permissions = 0;  // the lower twelve bits
  dev_t device = 0;
  ino_t inode = 0;
  nlink_t links = 0;            // names that it has
  std::uint64_t size = 0;       // bytes, holes counted
  std::uint64_t allocated = 0;  // bytes on disk
  std::int64_t modified = 0;    // when the content changed, in nanoseconds since 1970
  std::uint64_t block_size =
      0;  // that its file system likes to be written in: a stripe, if it has some
};

using dedup::retried;

// The status of a call that has just failed: "cannot ACTION PATH: ERROR".
Status failed(const char* action, const std::string& path);

// Whether it failed for want of space, or of a quota of it.
bool is_out_of_room(const Status& status);

// --- Opening ------------------------------------------------------------------------------------
// With the flags and the mode of open(), and O_CLOEXEC.
Result<File> open_file(const std::string& path, int flags, mode_t mode = 0);
Result<File> open_read(const std::string& path);
// For reading and writing; kFileExists if it is there.
Result<File> create_new(const std::string& path);
// For reading and writing, creating it if missing; nothing is truncated.
Result<File> open_or_create(const std::string& path);
Result<File> open_to_write(const std::string& path);  // and to read
// A directory, never through a symbolic link in the last component.
Result<File> open_directory(const std::string& path);

// --- Reading and writing ------------------------------------------------------------------------
// All of `out`; kCorrupt if the file ends before.
Status read_at(const File& file, std::uint64_t offset, std::span<std::byte> out);
// The same, scattered; `parts` is used up. Any number of parts.
Status readv_at(const File& file, std::uint64_t offset, std::span<iovec> parts);
// The same, as far as the file goes: the bytes that were read.
Result<std::uint64_t> readv_to_end(const File& file, std::uint64_t offset, std::span<iovec> parts);
// Until complete.
Status write_at(const File& file, std::uint64_t offset, std::span<const std::byte> data);
Status writev_at(const File& file, std::uint64_t offset, std::span<iovec> parts);
Status truncate(const File& file, std::uint64_t size);
// Takes space for these bytes, which are zeros if they were not there: writing to them does not
// fail for want of it.
Status allocate(const File& file, std::uint64_t offset, std::uint64_t bytes);
// The same without a change of the file's size, for bytes that will be written.
Status reserve(const File& file, std::uint64_t offset, std::uint64_t bytes);
// Gives back the space of these bytes, as far as they fill pages of the file system: they are zeros
// then. An error where it does not know how.
Status punch(const File& file, std::uint64_t offset, std::uint64_t bytes);

// Bytes of a file as memory, shared with all who map them. They stay when the file is closed or
// removed. To touch bytes that have no space, or that the file is too short for, ends the process.
class Mapping {
 public:
  // `offset`: a multiple of the page size.
  static Result<Mapping> create(const File& file, std::uint64_t offset, std::size_t bytes);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  std::span<std::byte> bytes() const { return bytes_; }
  // Brings these bytes of it into memory, to be read. False if it cannot, or the kernel does not
  // know how (before Linux 5.14).
  bool load(std::size_t offset, std::size_t bytes) const;

 private:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

// sync_file_range: these bytes are on their way to the disk, if they can be. Says nothing of
// whether they get there: sync_data() does.
void start_write_back(const File& file, std::uint64_t offset, std::uint64_t bytes);
// fdatasync: the data and what is needed to read it. Never call it again on a file where it failed.
Status sync_data(const File& file);
// fsync: all of it, permissions and owner too. As above.
Status sync(const File& file);

// A whole small file (at most kMaxSmallFile bytes, else kCorrupt).
inline constexpr std::uint64_t kMaxSmallFile = std::uint64_t{256} << 20;
Result<Bytes> read_file(const std::string& path);
// A new file with `data`, flushed if asked; removed again if that fails.
Status write_new_file(const std::string& path, std::span<const std::byte> data, bool flush);
// Replaces or creates `path` so that it is there whole or not at all, and durable on return:
// temporary file beside it, flush, rename, flush of the directory. By one caller at a time; a
// temporary file that a dead one left is replaced.
Status write_file_atomically(const std::string& path, std::span<const std::byte> data);
// The same without the flushes: after a loss of power it may be there with anything in it.
Status replace_file(const std::string& path, std::span<const std::byte> data);
std::string temporary_for(const std::string& path);

// --- Directories and names ----------------------------------------------------------------------
Result<Info> info(const std::string& path);  // of a link itself
Result<Info> info(const File& file);
Result<bool> exists(const std::string& path);
// The directory that `path` is in.
std::string directory_of(const std::string& path);
// True if it was made, false if something of that name is there.
Result<bool> make_directory(const std::string& path);
Status set_permissions(const File& file, mode_t permissions);
// Names in a directory without "." and "..", sorted.
Result<std::vector<std::string>> list(const std::string& path);
// None if it is missing.
Result<std::vector<std::string>> list_if_there(const std::string& path);
Status rename(const std::string& from, const std::string& to);
// A second name for a file; kFileExists if `to` is there.
Status link(const std::string& from, const std::string& to);
// A symbolic link; kFileExists if `path` is there.
Status make_link(const std::string& target, const std::string& path);
// Where one leads; kNoSuchFile if there is none, kCorrupt if it is something else.
Result<std::string> read_link(const std::string& path);
// Harmless if there is no such file.
Status remove_file(const std::string& path);
Status remove_directory(const std::string& path);
// A directory and all below it, links not followed; adds the disk space to `freed` if given, of a
// file that has other names none.
Status remove_tree(const std::string& path, std::uint64_t* freed = nullptr);
// The disk space of a directory and all below it, links not followed; 0 if there is none. A file
// with several names there counts once. What is removed meanwhile may count or not.
Result<std::uint64_t> allocated_below(const std::string& path);
// fsync of a directory: makes names in it durable.
Status sync_directory(const std::string& path);
Result<std::string> current_directory();
// Of the file system that `path` is on: what an unprivileged user may still write, and how large it
// is.
Result<std::uint64_t> free_bytes(const std::string& path);
Result<std::uint64_t> file_system_bytes(const std::string& path);

// --- Locks --------------------------------------------------------------------------------------
// flock, freed when the file is closed or the process ends. False if somebody else has it.
Result<bool> try_lock(const File& file, bool exclusive);
// Waits for it.
Status lock_exclusively(const File& file);

Status unlock(const File& file);

// Makes an empty file one of the same bytes as another, which both share until one is changed.
// kUnsupported where the file system has no such thing.
Status clone(const File& file, const File& from);
// Whether somebody else has a file open, which this process has open once. An error where the file
// system does not know.
Result<bool> is_open_elsewhere(const File& file);
// Has whoever would open a file for writing from now on, or cut it, wait until it is closed here,
// where it was opened for reading: less than a minute. False if somebody has it open for writing;
// an error where the file system has no such thing, or for somebody else's file.
Result<bool> keep_writers_waiting(const File& file);
// Whether somebody waits so.
Result<bool> has_waiting_writers(const File& file);

}  // namespace dedup::store::fs
