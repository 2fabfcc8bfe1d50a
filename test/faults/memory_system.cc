#include "test/faults/memory_system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>

namespace dedup::test {

namespace {

constexpr int kFirstDescriptor = 1 << 20;  // none of the kernel's
constexpr std::uint64_t kUnit = MemoryContent::kUnit;
constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

int fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

Choose lose_all() {
  return [](std::uint32_t) { return 0U; };
}

Choose keep_all() {
  return [](std::uint32_t) { return 1U; };
}

Choose choose_randomly(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::uint64_t kept = random() % 16;
  return [random, kept](std::uint32_t options) mutable {
    if (options > 2 && random() % 4 == 0) return static_cast<std::uint32_t>(random() % options);
    return random() % 16 < kept ? 1U : 0U;
  };
}

struct MemorySystem::Disk {
  std::uint64_t limit = 0;  // units
  std::uint64_t used = 0;
  dev_t device = 0;
  ino_t last_inode = 0;
  std::shared_ptr<Node> root;

  // A name made, removed, or given to something else, that is not durable yet; in order.
  struct NameChange {
    std::shared_ptr<Node> directory;
    std::string removed;  // empty: none
    std::string added;
    std::shared_ptr<Node> node;  // what `added` names
  };
  std::vector<NameChange> pending;

  std::uint64_t left() const { return limit > used ? limit - used : 0; }
};

// A file or a directory.
struct MemorySystem::Node : std::enable_shared_from_this<Node> {
  Disk* disk = nullptr;
  ino_t inode = 0;
  mode_t mode = 0;
  uid_t owner = ::geteuid();
  gid_t group = ::getegid();
  nlink_t links = 0;
  std::size_t opens = 0;
  std::uint64_t modified = 0;
  std::uint64_t changed = 0;
  MemoryContent content;
  std::string target;  // of a symbolic link
  using Names = std::map<std::string, std::shared_ptr<Node>, std::less<>>;
  Names names;
  Names durable_names;
  std::vector<std::pair<int, bool>> locks;  // descriptor, exclusive

  bool is_directory() const { return S_ISDIR(mode); }
};

struct MemorySystem::OpenFile {
  std::shared_ptr<Node> node;  // null: closed
  std::string path;
  int flags = 0;
  int process = 0;
};

// Where a path leads.
struct MemorySystem::Place {
  Node* directory = nullptr;  // that the last name is in; null with `error`
  std::string_view name;      // empty: the root
  std::shared_ptr<Node> node;
  int error = 0;  // of the way there
};

MemorySystem::MemorySystem() {
  auto disk = std::make_unique<Disk>();
  disk->limit = ~std::uint64_t{0};
  root_ = disk->root = new_node(*disk, S_IFDIR | 0755);
  disks_.emplace("/", std::move(disk));
  for (const char* path : {"/proc", "/proc/sys", "/proc/sys/kernel", "/proc/sys/kernel/random"}) {
    mkdir(path, 0755);
  }
  const std::string id = "one kernel for all of them";
  put_content(kBootId, std::as_bytes(std::span(id)));
}

MemorySystem::~MemorySystem() {
  // Directories and changes of names refer to each other.
  for (auto& [path, disk] : disks_) disk->pending.clear();
}

std::shared_ptr<MemorySystem::Node> MemorySystem::new_node(Disk& disk, mode_t mode) {
  auto node = std::make_shared<Node>();
  node->disk = &disk;
  node->inode = ++disk.last_inode;
  node->mode = mode;
  touch(*node);
  ++disk.used;
  return node;
}

void MemorySystem::touch(Node& node) {
  clock_ += 1000;
  node.modified = node.changed = clock_;
}

void MemorySystem::mount(const std::string& path, std::uint64_t bytes) {
  Place place = find(path.c_str());
  assert(place.error == 0 && place.directory->disk == disks_.at("/").get());
  auto disk = std::make_unique<Disk>();
  disk->limit = bytes / kUnit;
  disk->device = disks_.size();
  disk->root = new_node(*disk, S_IFDIR | 0700);
  disk->root->links = 1;
  place.directory->names.insert_or_assign(std::string(place.name), disk->root);
  disks_.insert_or_assign(path, std::move(disk));
}

MemorySystem::Disk& MemorySystem::disk_at(const std::string& path) const {
  return *disks_.at(path);
}

void MemorySystem::resize_disk(const std::string& path, std::uint64_t bytes) {
  disk_at(path).limit = bytes / kUnit;
}

std::uint64_t MemorySystem::used_bytes(const std::string& path) const {
  return disk_at(path).used * kUnit;
}

// ---- Finding -----------------------------------------------------------------------------------

MemorySystem::Place MemorySystem::find(const char* path) const {
  Place place;
  place.directory = root_.get();
  place.node = root_;
  for (std::string_view rest(path); !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    if (name.empty() || name == ".") continue;
    if (!place.node || !place.node->is_directory()) {
      place.error = place.node ? ENOTDIR : ENOENT;
      place.directory = nullptr;
      place.node.reset();
      return place;
    }
    place.directory = place.node.get();
    place.name = name;
    const auto found = place.directory->names.find(name);
    place.node = found == place.directory->names.end() ? nullptr : found->second;
  }
  return place;
}

MemorySystem::Node* MemorySystem::find_node(const char* path) const {
  const Place place = find(path);
  if (!place.node) errno = place.error != 0 ? place.error : ENOENT;
  return place.node.get();
}

MemorySystem::OpenFile* MemorySystem::file_of(int fd) {
  const auto i = static_cast<std::size_t>(fd - kFirstDescriptor);
  if (fd >= kFirstDescriptor && i < open_.size() && open_[i].node) return &open_[i];
  errno = EBADF;
  return nullptr;
}

// ---- Processes and power -----------------------------------------------------------------------

void MemorySystem::close_file(OpenFile& file) {
  const std::shared_ptr<Node> node = std::move(file.node);
  file.node.reset();
  const int fd = kFirstDescriptor + static_cast<int>(&file - open_.data());
  std::erase_if(node->locks, [&](const auto& lock) { return lock.first == fd; });
  if (--node->opens == 0 && node->links == 0) node->disk->used -= 1 + node->content.units();
}

void MemorySystem::drop_name(Node& node) {
  if (--node.links == 0 && node.opens == 0) node.disk->used -= 1 + node.content.units();
}

void MemorySystem::kill(int process) {
  for (OpenFile& file : open_) {
    if (file.node && file.process == process) close_file(file);
  }
}

std::size_t MemorySystem::open_files(int process) const {
  return static_cast<std::size_t>(std::count_if(open_.begin(), open_.end(), [&](const auto& file) {
    return file.node && file.process == process;
  }));
}

void MemorySystem::crash(const std::string& path, const Choose& choose, Order order) {
  Disk& disk = disk_at(path);
  for (OpenFile& file : open_) {
    if (file.node && file.node->disk == &disk) close_file(file);
  }
  for (const Disk::NameChange& change : disk.pending) {
    if (choose(2) == 0) {
      if (order == Order::kInOrder) break;
      continue;
    }
    Node::Names& names = change.directory->durable_names;
    if (!change.removed.empty()) names.erase(change.removed);
    if (change.added.empty()) continue;
    if (change.node->is_directory()) {
      std::erase_if(names, [&](const auto& entry) { return entry.second == change.node; });
    }
    names.insert_or_assign(change.added, change.node);
  }
  disk.pending.clear();
  disk.used = 0;
  // A file may have several names.
  std::set<Node*> seen;
  const auto restore = [&](const auto& self, Node& node) -> void {
    ++node.links;
    if (!seen.insert(&node).second) return;
    node.links = 1;
    node.content.crash(choose);
    disk.used += 1 + node.content.units();
    node.names = node.durable_names;
    for (const auto& [name, child] : node.names) self(self, *child);
  };
  restore(restore, *disk.root);
}

void MemorySystem::settle(const std::string& path) {
  Disk& disk = disk_at(path);
  disk.pending.clear();
  const auto settle_node = [](const auto& self, Node& node) -> void {
    node.content.sync();
    node.durable_names = node.names;
    for (const auto& [name, child] : node.names) self(self, *child);
  };
  settle_node(settle_node, *disk.root);
}

void MemorySystem::fail_sync(int fd) {
  if (OpenFile* const file = file_of(fd)) file->node->content.fail_sync();
}

// ---- Open files --------------------------------------------------------------------------------

int MemorySystem::open(const char* path, int flags, mode_t mode) {
  Place place = find(path);
  if (place.error != 0) return fail(place.error);
  if (!place.node) {
    if ((flags & O_CREAT) == 0) return fail(ENOENT);
    Disk& disk = *place.directory->disk;
    if (disk.left() == 0) return fail(ENOSPC);
    place.node = new_node(disk, S_IFREG | (mode & 0777));
    change_names(*place.directory, {}, place.name, place.node);
  } else if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) {
    return fail(EEXIST);
  }
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (place.node->is_directory() && (writes || (flags & O_CREAT) != 0)) return fail(EISDIR);
  if (!place.node->is_directory() && (flags & O_DIRECTORY) != 0) return fail(ENOTDIR);
  ++place.node->opens;
  open_.push_back({std::move(place.node), path, flags, process_});
  return kFirstDescriptor + static_cast<int>(open_.size()) - 1;
}

int MemorySystem::close(int fd) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  close_file(*file);
  return 0;
}

ssize_t MemorySystem::preadv(int fd, const iovec* parts, int count, off_t offset) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  if ((file->flags & O_ACCMODE) == O_WRONLY) return fail(EBADF);
  if (file->node->is_directory()) return fail(EISDIR);
  const MemoryContent& content = file->node->content;
  const auto start = static_cast<std::uint64_t>(offset);
  auto at = start;
  for (int i = 0; i < count && at < content.size(); ++i) {
    const auto size = std::min<std::uint64_t>(parts[i].iov_len, content.size() - at);
    content.read(at, {static_cast<std::byte*>(parts[i].iov_base), size});
    at += size;
  }
  return static_cast<ssize_t>(at - start);
}

ssize_t MemorySystem::pwritev(int fd, const iovec* parts, int count, off_t offset) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  if ((file->flags & O_ACCMODE) == O_RDONLY) return fail(EBADF);
  Node& node = *file->node;
  Bytes data;
  for (int i = 0; i < count; ++i) {
    const auto* const part = static_cast<const std::byte*>(parts[i].iov_base);
    data.insert(data.end(), part, part + parts[i].iov_len);
  }
  const auto start = static_cast<std::uint64_t>(offset);
  std::size_t fits = data.size();
  while (fits > 0 && node.content.units_missing(start, fits) > node.disk->left()) {
    const std::uint64_t last = (start + fits - 1) / kUnit * kUnit;
    fits = last > start ? last - start : 0;
  }
  if (fits == 0 && !data.empty()) return fail(ENOSPC);
  node.disk->used += node.content.units_missing(start, fits);
  node.content.write(start, std::span(data).first(fits));
  touch(node);
  return static_cast<ssize_t>(fits);
}

int MemorySystem::ftruncate(int fd, off_t size) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  if ((file->flags & O_ACCMODE) == O_RDONLY) return fail(EINVAL);
  Node& node = *file->node;
  node.disk->used -= node.content.units();
  node.content.truncate(static_cast<std::uint64_t>(size));
  node.disk->used += node.content.units();
  touch(node);
  return 0;
}

int MemorySystem::sync(int fd) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  Node& node = *file->node;
  node.content.sync();
  if (!node.is_directory()) return 0;
  node.durable_names = node.names;
  std::erase_if(node.disk->pending,
                [&](const auto& change) { return change.directory.get() == &node; });
  return 0;
}

int MemorySystem::fsync(int fd) {
  return sync(fd);
}
int MemorySystem::fdatasync(int fd) {
  return sync(fd);
}

int MemorySystem::allocate(int, off_t, off_t) {
  return fail(EOPNOTSUPP);
}

int MemorySystem::reserve(int fd, off_t offset, off_t bytes) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  Node& node = *file->node;
  const std::uint64_t units = node.content.units_missing(static_cast<std::uint64_t>(offset),
                                                         static_cast<std::uint64_t>(bytes));
  return units <= node.disk->left() ? 0 : fail(ENOSPC);
}

int MemorySystem::punch(int, off_t, off_t) {
  return fail(EOPNOTSUPP);
}

int MemorySystem::map(int, off_t, std::size_t, void*&) {
  return fail(ENODEV);
}

int MemorySystem::flock(int fd, int operation) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  auto& locks = file->node->locks;
  const bool exclusive = (operation & LOCK_EX) != 0;
  const auto is_own = [&](const auto& lock) { return lock.first == fd; };
  if ((operation & LOCK_UN) == 0) {
    for (const auto& lock : locks) {
      if (!is_own(lock) && (exclusive || lock.second)) return fail(EWOULDBLOCK);
    }
  }
  std::erase_if(locks, is_own);
  if ((operation & LOCK_UN) == 0) locks.emplace_back(fd, exclusive);
  return 0;
}

int MemorySystem::fstat(int fd, struct stat* about) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  fill(*file->node, about);
  return 0;
}

int MemorySystem::fchmod(int fd, mode_t mode) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  file->node->mode = (file->node->mode & S_IFMT) | (mode & 07777);
  clock_ += 1000;
  file->node->changed = clock_;
  return 0;
}

int MemorySystem::fchown(int fd, uid_t owner, gid_t group) {
  OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  if (owner != static_cast<uid_t>(-1)) file->node->owner = owner;
  if (group != static_cast<gid_t>(-1)) file->node->group = group;
  return 0;
}

int MemorySystem::clone(int, int) {
  return fail(EOPNOTSUPP);
}

int MemorySystem::set_lease(int fd, int kind) {
  const OpenFile* const file = file_of(fd);
  if (file == nullptr) return -1;
  const auto is_in_the_way = [&](const OpenFile& other) {
    const bool writes = (other.flags & O_ACCMODE) != O_RDONLY;
    return &other != file && other.node == file->node && (kind == F_WRLCK || writes);
  };
  const bool is_open = std::any_of(open_.begin(), open_.end(), is_in_the_way);
  return kind != F_UNLCK && is_open ? fail(EAGAIN) : 0;
}

// Nobody waits: only one at a time does anything here.
int MemorySystem::lease(int fd) {
  return file_of(fd) == nullptr ? -1 : F_RDLCK;
}

// ---- Names -------------------------------------------------------------------------------------

void MemorySystem::change_names(Node& directory, std::string_view removed, std::string_view added,
                                const std::shared_ptr<Node>& node) {
  Disk::NameChange change{directory.shared_from_this(), std::string(removed), std::string(added),
                          node};
  // Counted up first: renamed, it is the same file.
  if (node) ++node->links;
  if (!removed.empty()) {
    const auto old = directory.names.find(removed);
    drop_name(*old->second);
    directory.names.erase(old);
  }
  if (!added.empty()) {
    std::shared_ptr<Node>& name = directory.names[change.added];
    if (name) drop_name(*name);
    name = node;
  }
  touch(directory);
  directory.disk->pending.push_back(std::move(change));
}

void MemorySystem::fill(const Node& node, struct stat* about) const {
  *about = {};
  about->st_dev = node.disk->device;
  about->st_ino = node.inode;
  about->st_mode = node.mode;
  about->st_nlink = node.links;
  about->st_uid = node.owner;
  about->st_gid = node.group;
  about->st_size = static_cast<off_t>(node.content.size());
  about->st_blksize = kUnit;
  about->st_blocks = static_cast<blkcnt_t>(node.content.units());
  const auto time = [](std::uint64_t ns) {
    return timespec{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  };
  about->st_mtim = about->st_atim = time(node.modified);
  about->st_ctim = time(node.changed);
}

int MemorySystem::stat(const char* path, struct stat* about) {
  const Node* const node = find_node(path);
  if (node == nullptr) return -1;
  fill(*node, about);
  return 0;
}

int MemorySystem::lstat(const char* path, struct stat* about) {
  return stat(path, about);
}

int MemorySystem::eaccess(const char* path, int) {
  return find_node(path) == nullptr ? -1 : 0;
}

int MemorySystem::chmod(const char* path, mode_t mode) {
  Node* const node = find_node(path);
  if (node == nullptr) return -1;
  node->mode = (node->mode & S_IFMT) | (mode & 07777);
  return 0;
}

int MemorySystem::mkdir(const char* path, mode_t mode) {
  const Place place = find(path);
  if (place.error != 0) return fail(place.error);
  if (place.node) return fail(EEXIST);
  Disk& disk = *place.directory->disk;
  if (disk.left() == 0) return fail(ENOSPC);
  change_names(*place.directory, {}, place.name, new_node(disk, S_IFDIR | (mode & 0777)));
  return 0;
}

int MemorySystem::rmdir(const char* path) {
  const Place place = find(path);
  if (!place.node) return fail(place.error != 0 ? place.error : ENOENT);
  if (!place.node->is_directory()) return fail(ENOTDIR);
  if (place.node->disk != place.directory->disk || place.name.empty()) return fail(EBUSY);
  if (!place.node->names.empty()) return fail(ENOTEMPTY);
  change_names(*place.directory, place.name, {}, nullptr);
  return 0;
}

int MemorySystem::rename(const char* from, const char* to) {
  const Place source = find(from);
  const Place target = find(to);
  if (!source.node) return fail(source.error != 0 ? source.error : ENOENT);
  if (target.error != 0) return fail(target.error);
  if (source.directory != target.directory) return fail(EXDEV);
  if (source.node == target.node) return 0;
  if (target.node) {
    if (source.node->is_directory() && !target.node->is_directory()) return fail(ENOTDIR);
    if (!source.node->is_directory() && target.node->is_directory()) return fail(EISDIR);
    if (!target.node->names.empty()) return fail(ENOTEMPTY);
  }
  change_names(*source.directory, source.name, target.name, source.node);
  source.node->changed = clock_;
  return 0;
}

int MemorySystem::link(const char* from, const char* to) {
  const Place source = find(from);
  const Place target = find(to);
  if (!source.node) return fail(source.error != 0 ? source.error : ENOENT);
  if (target.error != 0) return fail(target.error);
  if (target.node) return fail(EEXIST);
  if (source.node->is_directory()) return fail(EPERM);
  if (source.node->disk != target.directory->disk) return fail(EXDEV);
  change_names(*target.directory, {}, target.name, source.node);
  source.node->changed = clock_;
  return 0;
}

int MemorySystem::symlink(const char* target, const char* path) {
  const Place place = find(path);
  if (place.error != 0) return fail(place.error);
  if (place.node) return fail(EEXIST);
  Disk& disk = *place.directory->disk;
  if (disk.left() == 0) return fail(ENOSPC);
  const std::shared_ptr<Node> node = new_node(disk, S_IFLNK | 0777);
  node->target = target;
  change_names(*place.directory, {}, place.name, node);
  return 0;
}

int MemorySystem::readlink(const char* path, std::string& target) {
  const Node* const node = find_node(path);
  if (node == nullptr) return -1;
  if (!S_ISLNK(node->mode)) return fail(EINVAL);
  target = node->target;
  return 0;
}

int MemorySystem::unlink(const char* path) {
  const Place place = find(path);
  if (!place.node) return fail(place.error != 0 ? place.error : ENOENT);
  if (place.node->is_directory()) return fail(EISDIR);
  change_names(*place.directory, place.name, {}, nullptr);
  return 0;
}

int MemorySystem::list(const char* path, std::vector<std::string>& names) {
  const Node* const node = find_node(path);
  if (node == nullptr) return -1;
  if (!node->is_directory()) return fail(ENOTDIR);
  for (const auto& entry : node->names) names.push_back(entry.first);
  return 0;
}

int MemorySystem::realpath(const char* path, std::string& resolved) {
  if (find_node(path) == nullptr) return -1;
  resolved = path;
  return 0;
}

int MemorySystem::getcwd(std::string& directory) {
  directory = "/";
  return 0;
}

bool MemorySystem::is_on(const std::string& disk, const char* path, int fd) {
  if (path != nullptr) return (std::string(path) + "/").starts_with(disk + "/");
  const OpenFile* const file = file_of(fd);
  return file != nullptr && file->node->disk == &disk_at(disk);
}

int MemorySystem::statvfs(const char* path, struct statvfs* about) {
  const Node* const node = find_node(path);
  if (node == nullptr) return -1;
  *about = {};
  about->f_bsize = about->f_frsize = kUnit;
  about->f_blocks = node->disk->limit;
  about->f_bfree = about->f_bavail = node->disk->left();
  return 0;
}

int MemorySystem::statfs(const char* path, struct statfs* about) {
  const Node* const node = find_node(path);
  if (node == nullptr) return -1;
  *about = {};
  about->f_type = TMPFS_MAGIC;
  const dev_t device = node->disk->device;
  static_assert(sizeof device == sizeof about->f_fsid);
  std::memcpy(&about->f_fsid, &device, sizeof device);
  return 0;
}

// ---- For tests ---------------------------------------------------------------------------------

Bytes MemorySystem::content(const std::string& path) const {
  const Node* const node = find_node(path.c_str());
  if (node == nullptr) return {};
  Bytes bytes(node->content.size());
  node->content.read(0, bytes);
  return bytes;
}

void MemorySystem::put_content(const std::string& path, std::span<const std::byte> bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  [[maybe_unused]] const bool done =
      fd >= 0 && ftruncate(fd, 0) == 0 &&
      pwritev(fd, &part, 1, 0) == static_cast<ssize_t>(bytes.size()) && close(fd) == 0;
  assert(done);
}

std::map<std::string, std::uint64_t> MemorySystem::tree(const std::string& path) const {
  std::map<std::string, std::uint64_t> found;
  const auto walk = [&](const auto& self, const Node& node, const std::string& at) -> void {
    for (const auto& [name, child] : node.names) {
      const std::string child_path = at.empty() ? name : at + "/" + name;
      found[child->is_directory() ? child_path + "/" : child_path] = child->content.size();
      self(self, *child, child_path);
    }
  };
  if (const Node* const node = find_node(path.c_str())) walk(walk, *node, "");
  return found;
}

}  // namespace dedup::test
