#include "tools/dedupctl/mount_session.h"

#define FUSE_USE_VERSION 31
#include <fuse_lowlevel.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <future>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/barrier.h"
#include "base/text.h"
#include "base/warn.h"
#include "base/worker.h"

namespace dedup::ctl {
namespace {

// Directories change seldom; which generation a name stands for is looked up every time. What it is
// then never changes, since another one is another inode.
constexpr double kDirectorySeconds = 1;
constexpr double kFileSeconds = 1;

constexpr ino_t kUnknownInode = 0xffffffff;  // libfuse's

std::string text_of(const char* format, va_list arguments) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::string line = text;
  while (line.ends_with('\n')) line.pop_back();
  return line;
}

// What libfuse says is why it could not mount; later on, that something is wrong.
std::string why_not_mounted;
void hear_why_not(fuse_log_level level, const char* format, va_list arguments) {
  if (level <= FUSE_LOG_WARNING) why_not_mounted = text_of(format, arguments);
}
void say(fuse_log_level level, const char* format, va_list arguments) {
  if (level <= FUSE_LOG_WARNING) say_error(text_of(format, arguments));
}

int errno_of(const Status& status) {
  switch (status.code()) {
    case Code::kNotFound:
    case Code::kNoSuchFile:
      return ENOENT;
    case Code::kAccess:
      return EACCES;
    case Code::kNoMemory:
      return ENOMEM;
    default:
      return EIO;
  }
}

// ---- Inodes -------------------------------------------------------------------------------------

struct Inode {
  std::string path;
  std::optional<ShownFile> file;  // none: a directory
};

// What directories have for a time: when the mount began.
const std::time_t kBegan = std::time(nullptr);

// Each directory, and each generation at a path, has a number of its own for as long as the mount
// is there: so the kernel keeps no page of one generation for another. About 300 bytes each.
class Inodes {
 public:
  Inodes() { number_of({"", std::nullopt}); }

  fuse_ino_t number_of(Inode inode) {
    const Key key(inode.path, inode.file ? inode.file->attempt : Id128());
    const auto [at, is_new] = numbers_.try_emplace(key, inodes_.size() + FUSE_ROOT_ID);
    if (is_new) {
      inodes_.push_back(std::move(inode));
    } else {
      inodes_[at->second - FUSE_ROOT_ID] = std::move(inode);
    }
    return at->second;
  }
  const Inode* find(fuse_ino_t number) const {
    const bool is_known = number >= FUSE_ROOT_ID && number - FUSE_ROOT_ID < inodes_.size();
    return is_known ? &inodes_[number - FUSE_ROOT_ID] : nullptr;
  }

 private:
  using Key = std::pair<std::string, Id128>;
  std::map<Key, fuse_ino_t> numbers_;
  std::vector<Inode> inodes_;
};

struct stat attributes_of(fuse_ino_t number, const Inode& inode) {
  struct stat out = {};
  out.st_ino = number;
  if (!inode.file) {
    out.st_mode = S_IFDIR | 0555;
    out.st_nlink = 2;
    out.st_uid = ::geteuid();
    out.st_gid = ::getegid();
    out.st_mtim.tv_sec = out.st_atim.tv_sec = out.st_ctim.tv_sec = kBegan;
    return out;
  }
  out.st_mode = S_IFREG | inode.file->permissions;
  out.st_nlink = 1;
  out.st_uid = inode.file->owner;
  out.st_gid = inode.file->group;
  out.st_size = static_cast<off_t>(inode.file->size);
  out.st_blksize = 4096;
  out.st_blocks = static_cast<blkcnt_t>((inode.file->size + 511) / 512);
  out.st_mtim.tv_sec = static_cast<time_t>(inode.file->time);
  out.st_atim = out.st_mtim;
  out.st_ctim = out.st_mtim;
  return out;
}

// ---- The session --------------------------------------------------------------------------------

struct EndSession {
  void operator()(fuse_session* session) const {
    fuse_session_unmount(session);
    fuse_session_destroy(session);
  }
};

// A name in a directory, as it was when that was opened.
struct Entry {
  std::string name;
  NameTree::Kind kind = NameTree::Kind::kFile;
};
using OpenDirectory = std::vector<Entry>;

// What is open, by the number that the kernel calls it by; 0 is nothing.
template <typename Open>
class Handles {
 public:
  std::uint64_t add(Open open) {
    open_.emplace(++last_, std::move(open));
    return last_;
  }
  const Open* find(std::uint64_t number) const {
    const auto it = open_.find(number);
    return it == open_.end() ? nullptr : &it->second;
  }
  void remove(std::uint64_t number) { open_.erase(number); }

 private:
  std::map<std::uint64_t, Open> open_;
  std::uint64_t last_ = 0;
};

volatile std::sig_atomic_t was_told_to_end = 0;
void note_end(int) {
  was_told_to_end = 1;
}

class FuseSession final : public MountSession {
 public:
  Status begin(const std::string& directory, bool for_all);
  Status go_to_background() override;
  Status serve(MountedFiles& files) override;

 private:
  static FuseSession& of(fuse_req_t request) {
    return *static_cast<FuseSession*>(fuse_req_userdata(request));
  }
  // Has `work`, which replies to the request or returns an error, done in its turn. What the worker
  // itself asks for is replied to at once by `to_itself`: to it, the mount is an empty directory.
  template <typename ToItself, typename Work>
  static void in_turn(fuse_req_t request, ToItself to_itself, Work work);

  static void look_up(fuse_req_t request, fuse_ino_t parent, const char* name);
  static void get_attributes(fuse_req_t request, fuse_ino_t number, fuse_file_info* info);
  static void open_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* info);
  static void read(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset,
                   fuse_file_info* info);
  static void close_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* info);
  static void open_directory(fuse_req_t request, fuse_ino_t number, fuse_file_info* info);
  static void read_directory(fuse_req_t request, fuse_ino_t number, std::size_t size, off_t offset,
                             fuse_file_info* info);
  static void close_directory(fuse_req_t request, fuse_ino_t number, fuse_file_info* info);

  Result<fuse_entry_param> entry_of(fuse_ino_t parent, const std::string& name);
  Status answer_requests();

  std::unique_ptr<fuse_session, EndSession> session_;
  // The worker's alone, while it works.
  MountedFiles* files_ = nullptr;
  Inodes inodes_;
  Handles<std::shared_ptr<OpenFile>> open_files_;
  Handles<OpenDirectory> open_directories_;
  // It ends before what it works with.
  std::unique_ptr<Worker> worker_;
  std::atomic<pid_t> worker_id_ = 0;
};

template <typename ToItself, typename Work>
void FuseSession::in_turn(fuse_req_t request, ToItself to_itself, Work work) {
  FuseSession& self = of(request);
  if (fuse_req_ctx(request)->pid == self.worker_id_) {
    to_itself(request);
    return;
  }
  (void)self.worker_->post([request, &self, work = std::move(work)]() mutable {
    int error = EIO;
    const Status thrown = no_exceptions([&] { error = work(self); });
    if (!thrown.is_ok()) say_error(thrown.message());
    if (error != 0) fuse_reply_err(request, thrown.is_ok() ? error : errno_of(thrown));
    return Status::ok();
  });
}

Result<fuse_entry_param> FuseSession::entry_of(fuse_ino_t parent, const std::string& name) {
  const Inode* const directory = inodes_.find(parent);
  if (directory == nullptr) return Status(Code::kNotFound, "no such directory");
  Inode inode{directory->path + "/" + name, std::nullopt};
  DEDUP_ASSIGN(inode.file, files_->look(inode.path));
  fuse_entry_param entry = {};
  entry.entry_timeout = inode.file ? 0 : kDirectorySeconds;
  entry.attr_timeout = inode.file ? kFileSeconds : kDirectorySeconds;
  entry.ino = inodes_.number_of(inode);
  entry.attr = attributes_of(entry.ino, inode);
  return entry;
}

void nothing_there(fuse_req_t request) {
  fuse_reply_err(request, ENOENT);
}

// An error, which the program that asked sees as its number alone.
int said(const Status& status) {
  const int error = errno_of(status);
  if (error == EIO) say_error(printable(status.message()));
  return error;
}

void FuseSession::look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  in_turn(request, nothing_there, [request, parent, name = std::string(name)](FuseSession& self) {
    const auto entry = self.entry_of(parent, name);
    if (!entry.is_ok()) return said(entry.status());
    fuse_reply_entry(request, &*entry);
    return 0;
  });
}

void FuseSession::get_attributes(fuse_req_t request, fuse_ino_t number, fuse_file_info*) {
  in_turn(
      request,
      [number](fuse_req_t own) {
        const struct stat attributes = attributes_of(number, {});
        fuse_reply_attr(own, &attributes, 0);
      },
      [request, number](FuseSession& self) {
        const Inode* const inode = self.inodes_.find(number);
        if (inode == nullptr) return ENOENT;
        const struct stat attributes = attributes_of(number, *inode);
        fuse_reply_attr(request, &attributes, inode->file ? kFileSeconds : kDirectorySeconds);
        return 0;
      });
}

void FuseSession::open_file(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  in_turn(request, nothing_there, [request, number, open = *info](FuseSession& self) mutable {
    const Inode* const inode = self.inodes_.find(number);
    if (inode == nullptr || !inode->file) return ENOENT;
    auto opened = self.files_->open(inode->path, *inode->file);
    // The kernel looks the name up again, and opens what it stands for by now.
    if (opened.status().code() == Code::kNotFound) return ESTALE;
    if (!opened.is_ok()) return said(opened.status());
    open.fh = self.open_files_.add(*std::move(opened));
    open.keep_cache = 1;
    // If the program was interrupted meanwhile, nobody will close it.
    if (fuse_reply_open(request, &open) != 0) self.open_files_.remove(open.fh);
    return 0;
  });
}

void FuseSession::read(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
                       fuse_file_info* info) {
  in_turn(request, nothing_there, [=, handle = info->fh](FuseSession& self) {
    const std::shared_ptr<OpenFile>* const file = self.open_files_.find(handle);
    if (file == nullptr) return EBADF;
    const std::uint64_t end = (*file)->size();
    const auto begin = std::min(static_cast<std::uint64_t>(offset), end);
    Bytes bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, end - begin)));
    const Status status = (*file)->read(begin, bytes);
    if (!status.is_ok()) return errno_of(status);
    fuse_reply_buf(request, reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return 0;
  });
}

void FuseSession::close_file(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  in_turn(request, nothing_there, [request, handle = info->fh](FuseSession& self) {
    self.open_files_.remove(handle);
    fuse_reply_err(request, 0);
    return 0;
  });
}

void FuseSession::open_directory(fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
  in_turn(
      request,
      [open = *info](fuse_req_t own) {
        fuse_file_info nothing = open;
        nothing.fh = 0;
        fuse_reply_open(own, &nothing);
      },
      [request, number, open = *info](FuseSession& self) mutable {
        const Inode* const inode = self.inodes_.find(number);
        if (inode == nullptr || inode->file) return ENOTDIR;
        const auto listed = self.files_->list(inode->path);
        if (!listed.is_ok()) return said(listed.status());
        OpenDirectory entries;
        for (const char* const name : {".", ".."}) {
          entries.push_back({name, NameTree::Kind::kDirectory});
        }
        for (const auto& [name, kind] : *listed) entries.push_back({name, kind});
        open.fh = self.open_directories_.add(std::move(entries));
        if (fuse_reply_open(request, &open) != 0) self.open_directories_.remove(open.fh);
        return 0;
      });
}

void FuseSession::read_directory(fuse_req_t request, fuse_ino_t, std::size_t size, off_t offset,
                                 fuse_file_info* info) {
  in_turn(
      request, [](fuse_req_t own) { fuse_reply_buf(own, nullptr, 0); },
      [request, size, offset, handle = info->fh](FuseSession& self) {
        const OpenDirectory* const directory = self.open_directories_.find(handle);
        if (directory == nullptr) return EBADF;
        const OpenDirectory& entries = *directory;
        std::vector<char> buffer(size);
        std::size_t used = 0;
        for (std::size_t i = static_cast<std::size_t>(offset); i < entries.size(); ++i) {
          struct stat about = {};
          about.st_ino = kUnknownInode;
          about.st_mode = entries[i].kind == NameTree::Kind::kDirectory ? S_IFDIR : S_IFREG;
          const std::size_t length =
              fuse_add_direntry(request, buffer.data() + used, size - used, entries[i].name.c_str(),
                                &about, static_cast<off_t>(i + 1));
          if (length > size - used) break;
          used += length;
        }
        fuse_reply_buf(request, buffer.data(), used);
        return 0;
      });
}

void FuseSession::close_directory(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  in_turn(
      request, [](fuse_req_t own) { fuse_reply_err(own, 0); },
      [request, handle = info->fh](FuseSession& self) {
        self.open_directories_.remove(handle);
        fuse_reply_err(request, 0);
        return 0;
      });
}

Status FuseSession::begin(const std::string& directory, bool for_all) {
  fuse_set_log_func(hear_why_not);
  std::string options = "ro,nosuid,nodev,default_permissions,fsname=dedup,subtype=dedup";
  if (for_all) options += ",allow_other";
  std::vector<std::string> words{"dedupctl", "-o", options};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());
  fuse_lowlevel_ops operations = {};
  operations.lookup = look_up;
  operations.getattr = get_attributes;
  operations.open = open_file;
  operations.read = read;
  operations.release = close_file;
  operations.opendir = open_directory;
  operations.readdir = read_directory;
  operations.releasedir = close_directory;
  session_.reset(fuse_session_new(&arguments, &operations, sizeof operations, this));
  fuse_opt_free_args(&arguments);
  const bool is_up = session_ && fuse_session_mount(session_.get(), directory.c_str()) == 0;
  fuse_set_log_func(say);
  if (is_up) return Status::ok();
  return {Code::kIo, directory + ": cannot mount there" +
                         (why_not_mounted.empty() ? "" : ": " + why_not_mounted)};
}

Status FuseSession::go_to_background() {
  if (fuse_daemonize(0) == 0) return Status::ok();
  return Status::from_errno(errno, "cannot go on in the background");
}

// Signals come in ppoll() alone: none is missed between a look and the wait.
Status FuseSession::answer_requests() {
  sigset_t waiting;
  if (::sigprocmask(SIG_SETMASK, nullptr, &waiting) != 0) {
    return Status::from_errno(errno, "sigprocmask");
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigdelset(&waiting, signal);
  fuse_buf request = {};
  std::future<Status> last;
  Status status;
  // What was asked before the end is answered, and so is what that work asks for itself.
  const timespec soon{0, 10'000'000};
  while (fuse_session_exited(session_.get()) == 0) {
    if (was_told_to_end != 0 && !last.valid()) last = worker_->post([] { return Status::ok(); });
    if (last.valid() && last.wait_for(std::chrono::seconds(0)) == std::future_status::ready) break;
    pollfd ready{fuse_session_fd(session_.get()), POLLIN, 0};
    const int count = ::ppoll(&ready, 1, last.valid() ? &soon : nullptr, &waiting);
    if (count < 0 && errno != EINTR) status = Status::from_errno(errno, "ppoll");
    if (!status.is_ok()) break;
    if (count <= 0) continue;
    const int bytes = fuse_session_receive_buf(session_.get(), &request);
    if (bytes == -EINTR) continue;
    if (bytes < 0) status = Status::from_errno(-bytes, "the kernel's requests cannot be read");
    if (bytes <= 0) break;
    fuse_session_process_buf(session_.get(), &request);
  }
  std::free(request.mem);
  return status;
}

Status FuseSession::serve(MountedFiles& files) {
  files_ = &files;
  sigset_t signals;
  ::sigemptyset(&signals);
  struct sigaction action = {};
  action.sa_handler = note_end;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ::sigaddset(&signals, signal);
    if (::sigaction(signal, &action, nullptr) != 0) return Status::from_errno(errno, "sigaction");
  }
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return Status::from_errno(errno, "sigprocmask");
  }
  worker_ = std::make_unique<Worker>();
  DEDUP_TRY(worker_
                ->post([this] {
                  worker_id_ = ::gettid();
                  return Status::ok();
                })
                .get());
  if (worker_id_ == ::getpid()) return {Code::kIo, "cannot start a thread"};
  const Status status = answer_requests();
  worker_.reset();
  session_.reset();
  return status;
}

}  // namespace

Result<std::unique_ptr<MountSession>> MountSession::begin(const std::string& directory,
                                                          bool for_all) {
  auto session = std::make_unique<FuseSession>();
  DEDUP_TRY(session->begin(directory, for_all));
  return std::unique_ptr<MountSession>(std::move(session));
}

}  // namespace dedup::ctl
