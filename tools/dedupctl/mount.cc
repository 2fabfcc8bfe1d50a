// mount: the files of this host's stores as plain ones, for programs that know nothing of MPI.
// umount: takes that down.
#include <fcntl.h>
#include <mntent.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "base/text.h"
#include "base/warn.h"
#include "hints/node.h"
#include "store/fs.h"
#include "tools/dedupctl/mount_session.h"
#include "tools/dedupctl/mount_users.h"
#include "tools/dedupctl/mounted_files.h"
#include "tools/dedupctl/session.h"
#include "tools/mount_in_job.h"

namespace dedup::ctl {
namespace {

constexpr const char* kDevice = "/dev/fuse";
constexpr std::string_view kType = "fuse.dedup";

ExitCode failed(const Status& status, ExitCode code = kFailed) {
  say_error(printable(status.message()));
  return code;
}

// Of the file system that was mounted there last; none if none is.
Result<std::optional<std::string>> type_of_mount(const std::string& directory) {
  const char* const table = "/proc/self/mounts";
  const std::unique_ptr<FILE, int (*)(FILE*)> mounts(::setmntent(table, "r"), ::endmntent);
  if (!mounts) return Status::from_errno(errno, table);
  std::optional<std::string> type;
  while (const mntent* const entry = ::getmntent(mounts.get())) {
    if (directory == entry->mnt_dir) type = entry->mnt_type;
  }
  return type;
}

// Of a mount whose process is gone not even links can be followed.
std::string directory_of(const Options& options) {
  std::string path = options.path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return absolute_path(path);
}

Status check_directory(const std::string& directory) {
  DEDUP_ASSIGN(const auto type, type_of_mount(directory));
  if (type == kType) {
    return {Code::kFileExists, directory +
                                   ": is mounted already; dedupctl umount takes it down, "
                                   "also where its process was killed"};
  }
  const auto info = store::fs::info(directory);
  if (info.status().code() == Code::kNoSuchFile) {
    return {Code::kNoSuchFile, directory + ": there is no such directory; make it first"};
  }
  DEDUP_TRY(info.status());
  if (!info->is_directory) return {Code::kBadFile, directory + ": is no directory"};
  DEDUP_ASSIGN(const auto names, store::fs::list(directory));
  if (names.empty()) return Status::ok();
  return {Code::kFileExists,
          directory + ": is not empty, and what is in it would be hidden; use an empty directory"};
}

Status check_device() {
  const auto device = store::fs::open_file(kDevice, O_RDWR);
  if (device.is_ok()) return Status::ok();
  return {device.status().code(), device.status().message() +
                                      ": mounting takes the kernel's module fuse (modprobe fuse), "
                                      "leave to open the device, and in a container the device "
                                      "itself (docker run --device /dev/fuse --cap-add SYS_ADMIN)"};
}

// Those that a job has on this host so far: of this node or, if it simulates some, of all of them.
LocalStores stores_of_job(const std::vector<std::string>& templates,
                          const std::vector<std::string>& simulated) {
  LocalStores all;
  if (simulated.empty()) all = open_stores(templates, hints::node_of_process(), false);
  for (const std::string& node : simulated) {
    LocalStores found = open_stores(templates, node, true);
    std::ranges::move(found.stores, std::back_inserter(all.stores));
    std::ranges::move(found.troubles, std::back_inserter(all.troubles));
  }
  std::erase_if(all.troubles, [](const Trouble& trouble) { return trouble.is_absent; });
  return all;
}

Result<std::vector<std::string>> templates_of(const Options& options) {
  std::vector<std::string> templates;
  for (const std::string& text : options.stores) {
    DEDUP_ASSIGN(std::string absolute, absolute_template(text));
    templates.push_back(std::move(absolute));
  }
  return templates;
}

// The stores as `options` name them, wherever this process is by then.
Result<std::function<LocalStores()>> store_finder(const Options& options) {
  DEDUP_ASSIGN(const std::vector<std::string> templates, templates_of(options));
  if (options.job.empty()) {
    return std::function([templates, node = hints::node_of_process()] {
      return open_stores(templates, node, false);
    });
  }
  std::vector<std::string> simulated;
  if (hints::simulates_nodes()) {
    DEDUP_ASSIGN(simulated, hints::simulated_nodes());
  }
  return std::function([templates, simulated] { return stores_of_job(templates, simulated); });
}

Result<FindElsewhere> elsewhere_finder(const Options& options, const KnownServices* services) {
  if (services == nullptr) return FindElsewhere();
  DEDUP_ASSIGN(const std::vector<std::string> templates, templates_of(options));
  return FindElsewhere([services, templates](const store::CommitRecord& record) {
    return std::make_unique<Elsewhere>(*services, record, templates_of_nodes(templates));
  });
}

Result<store::fs::File> open_log(const Options& options) {
  if (options.log.empty()) return store::fs::File();
  return store::fs::open_file(options.log, O_WRONLY | O_CREAT | O_APPEND, 0666);
}

// Whoever started this process may wait until it has let go of what it got from there: a launcher
// of MPI does. `kept`: all but this one.
Status close_inherited(int kept = -1) {
  DEDUP_ASSIGN(const auto numbers, store::fs::list("/proc/self/fd"));
  for (const std::string& number : numbers) {
    const int descriptor = std::atoi(number.c_str());
    // One of them was for the list itself, and is closed by now.
    if (descriptor <= STDERR_FILENO || descriptor == kept) continue;
    if (::close(descriptor) != 0 && errno != EBADF) {
      return Status::from_errno(errno, "cannot close descriptor " + number);
    }
  }
  return Status::ok();
}

// Without a lazy one, only if no program uses it.
Status take_down(const std::string& directory, bool lazily) {
  std::vector<const char*> words{"fusermount3", "-u"};
  if (lazily) words.push_back("-z");
  words.insert(words.end(), {"--", directory.c_str(), nullptr});
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, words[0], nullptr, nullptr,
                                   const_cast<char* const*>(words.data()), environ);
  if (error != 0) {
    return Status::from_errno(error, "cannot run fusermount3 (Debian package: fuse3)");
  }
  int result = 0;
  if (store::fs::retried([&] { return ::waitpid(process, &result, 0); }) < 0) {
    return Status::from_errno(errno, "waitpid");
  }
  if (result == 0) return Status::ok();
  return {Code::kFileInUse, directory + ": was not taken down; does a program use it?"};
}

// Puts it up, and answers until it is taken down. `services`: those that ranks of a job tell of, or
// null. `when_up` is called in between.
ExitCode mount_and_serve(const Options& options, const std::string& directory,
                         const KnownServices* services,
                         const std::function<Status(MountSession&)>& when_up) {
  if (const Status status = check_directory(directory); !status.is_ok())
    return failed(status, kUsage);
  if (const Status status = check_device(); !status.is_ok()) return failed(status);
  const auto log = open_log(options);
  if (!log.is_ok()) return failed(log.status());
  const auto find_stores = store_finder(options);
  if (!find_stores.is_ok()) return failed(find_stores.status());
  const auto find_elsewhere = elsewhere_finder(options, services);
  if (!find_elsewhere.is_ok()) return failed(find_elsewhere.status());
  // A job may be the first one, which makes them.
  if (const LocalStores found = (*find_stores)(); options.job.empty() && found.stores.empty()) {
    for (const Trouble& trouble : found.troubles) say_error(printable(trouble.message));
    return kNoStore;
  }
  std::vector<std::string> search;
  for (const std::string& text : options.search) search.push_back(absolute_path(text));
  // What it looks through before it is mounted cannot lead it into itself.
  const OneRank alone;
  MountedFiles files(alone, *find_stores, std::move(search), *find_elsewhere);
  const auto session = MountSession::begin(directory, options.allow_other);
  if (!session.is_ok()) return failed(session.status());
  if (const Status status = when_up(**session); !status.is_ok()) return failed(status);
  if (!options.log.empty() && ::dup2(log->fd(), STDERR_FILENO) < 0) {
    return failed(Status::from_errno(errno, "cannot write to " + options.log));
  }
  const Status status = (*session)->serve(files);
  return status.is_ok() ? kFine : failed(status);
}

// ---- For a job ----------------------------------------------------------------------------------

// In a process and a session of its own, which no signal to the job reaches. It keeps standard
// error: a launcher that passes that on ends when this process has.
Status leave_job() {
  const pid_t process = ::fork();
  if (process < 0) return Status::from_errno(errno, "fork");
  if (process > 0) ::_exit(kFine);
  if (::setsid() < 0) return Status::from_errno(errno, "setsid");
  DEDUP_ASSIGN(const store::fs::File null, store::fs::open_file("/dev/null", O_RDWR));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) {
    if (::dup2(null.fd(), standard) < 0) return Status::from_errno(errno, "/dev/null");
  }
  // A job that was ended may read no messages any more.
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return Status::from_errno(errno, "signal");
  // Other signals, of which the last process's end is one, are heard when it answers.
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0)
    return Status::from_errno(errno, "sigprocmask");
  return ::chdir("/") == 0 ? Status::ok() : Status::from_errno(errno, "/");
}

// Whether there was none. What is left of a mount whose process was killed, as Slurm does, goes.
Result<bool> prepare_directory(const std::string& directory) {
  struct stat about = {};
  if (::stat(directory.c_str(), &about) != 0 && errno == ENOTCONN) {
    DEDUP_TRY(take_down(directory, true));
  }
  return store::fs::make_directory(directory);
}

ExitCode mount_for_job(const Options& options) {
  Descriptor first(MOUNT_DESCRIPTOR);
  if (::fcntl(first.fd(), F_SETFD, FD_CLOEXEC) != 0) {
    return failed(Status::from_errno(errno, "--for-job"), kUsage);
  }
  if (const Status status = leave_job(); !status.is_ok()) return failed(status);
  if (const Status status = close_inherited(first.fd()); !status.is_ok()) return failed(status);
  const std::string directory = directory_of(options);
  KnownServices services;
  auto users = MountUsers::begin(directory, options.job, std::move(first), services);
  if (users.status().code() == Code::kFileInUse) return kInUse;
  if (!users.is_ok()) return failed(users.status());
  bool is_up = false;
  ExitCode code = kFailed;
  const auto is_new = prepare_directory(directory);
  if (is_new.is_ok()) {
    code = mount_and_serve(options, directory, &services, [&](MountSession&) {
      is_up = true;
      return (*users)->welcome();
    });
  } else {
    failed(is_new.status());
  }
  if (is_new.is_ok() && *is_new) (void)store::fs::remove_directory(directory);
  if (is_up) return code;
  // All that is to be said is said, and a launcher is not to wait for more.
  wait_until_read();
  (void)::dup2(STDOUT_FILENO, STDERR_FILENO);
  (*users)->refuse();
  return code;
}

}  // namespace

ExitCode mount(const Options& options) {
  if (!options.job.empty()) return mount_for_job(options);
  if (!options.foreground) {
    if (const Status status = close_inherited(); !status.is_ok()) return failed(status);
  }
  return mount_and_serve(options, directory_of(options), nullptr, [&](MountSession& session) {
    return options.foreground ? Status::ok() : session.go_to_background();
  });
}

ExitCode umount(const Options& options) {
  const std::string directory = directory_of(options);
  const auto type = type_of_mount(directory);
  if (!type.is_ok()) return failed(type.status());
  if (*type != kType) {
    return failed({Code::kArgument, directory + ": dedupctl has not mounted anything there"},
                  kUsage);
  }
  const Status status = take_down(directory, false);
  if (status.is_ok()) return kFine;
  return failed(status, status.code() == Code::kFileInUse ? kInUse : kFailed);
}

}  // namespace dedup::ctl
