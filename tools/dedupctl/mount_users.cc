#include "tools/dedupctl/mount_users.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/mount_address.h"
#include "base/passed_descriptor.h"
#include "base/thread.h"
#include "base/warn.h"
#include "store/fs.h"
#include "tools/mount_in_job.h"

namespace dedup::ctl {
namespace {

// A job's processes on a host begin at about the same time. Milliseconds.
constexpr int kLingers = 3000;

// Of who is gone by now, nothing need be known.
void tell(const Descriptor& connection, char answer) {
  (void)::send(connection.fd(), &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<std::unique_ptr<MountUsers>> MountUsers::begin(const std::string& directory, std::string job,
                                                      Descriptor first, KnownServices& services) {
  std::unique_ptr<MountUsers> users(new MountUsers(std::move(job), services));
  users->users_.push_back({std::move(first)});
  users->listener_ =
      Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  users->wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!users->listener_.is_open() || !users->wake_.is_open()) {
    return Status::from_errno(errno, "cannot make a socket");
  }
  sockaddr_un address = {};
  const socklen_t size = ::mount_address(::geteuid(), directory.c_str(), &address);
  if (::bind(users->listener_.fd(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    const int error = errno;
    if (error != EADDRINUSE) return Status::from_errno(error, "bind");
    tell(users->users_.front().connection, MOUNT_IS_BEING_MADE);
    return Status(Code::kFileInUse, "another process mounts " + directory);
  }
  if (::listen(users->listener_.fd(), SOMAXCONN) != 0) return Status::from_errno(errno, "listen");
  return users;
}

MountUsers::~MountUsers() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  (void)store::fs::retried([&] { return ::write(wake_.fd(), &one, sizeof one); });
  thread_.join();
}

Status MountUsers::welcome() {
  DEDUP_ASSIGN(thread_, start_thread("dedup-users", [this] {
                 const Status status = attend(MOUNT_IS_UP, 0);
                 if (!status.is_ok()) say_error(status.message());
                 ::kill(::getpid(), SIGTERM);
               }));
  return Status::ok();
}

void MountUsers::refuse() {
  (void)attend(MOUNT_FAILED, kLingers);
}

bool MountUsers::is_used() const {
  return std::any_of(users_.begin(), users_.end(), [](const User& user) {
    return user.kind == User::kNew || user.kind == User::kOurs;
  });
}

// Who is of another user is let go at once.
Status MountUsers::let_in() {
  for (;;) {
    Descriptor connection(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.is_open()) {
      if (is_own_user(connection.fd())) users_.push_back({std::move(connection)});
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Status::ok();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return Status::from_errno(errno, "accept");
    }
  }
}

bool MountUsers::hear(User& user, const Descriptor& told) {
  user.kind = User::kTeller;
  if (!told.is_open()) return false;
  const auto services = service::read_services(told);
  if (services.is_ok()) services_.add(user.connection.fd(), *services);
  return services.is_ok();
}

bool MountUsers::has_ended(User& user, char answer) {
  std::array<char, MOUNT_JOB_BYTES> message{};
  Descriptor told;
  const ssize_t size = receive_with(user.connection.fd(),
                                    std::as_writable_bytes(std::span(message)), MSG_DONTWAIT, told);
  if (size < 0) return errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK;
  if (size == 0 || user.kind != User::kNew) return size == 0;
  const std::string_view text(message.data(), static_cast<std::size_t>(size));
  if (text.front() == service::kTellsOfServices) return !hear(user, told);
  const bool is_ours = text == job_;
  user.kind = is_ours ? User::kOurs : User::kOthers;
  tell(user.connection, is_ours ? answer : static_cast<char>(MOUNT_IS_OTHERS));
  return false;
}

Status MountUsers::attend(char answer, int lingers) {
  std::vector<pollfd> ready;
  while (is_used() || lingers > 0) {
    ready = {{wake_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
    for (const User& user : users_) ready.push_back({user.connection.fd(), POLLIN, 0});
    const int timeout = is_used() ? -1 : lingers;
    const int count =
        store::fs::retried([&] { return ::poll(ready.data(), ready.size(), timeout); });
    if (count < 0) return Status::from_errno(errno, "poll");
    if (count == 0 || ready[0].revents != 0) return Status::ok();
    std::vector<User> before;
    std::swap(before, users_);
    if (ready[1].revents != 0) DEDUP_TRY(let_in());
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (ready[i + 2].revents == 0 || !has_ended(before[i], answer)) {
        users_.push_back(std::move(before[i]));
      } else if (before[i].kind == User::kOurs) {
        last_ = std::move(before[i].connection);
      } else if (before[i].kind == User::kTeller) {
        services_.remove(before[i].connection.fd());
      }
    }
    if (is_used()) last_ = Descriptor();
  }
  return Status::ok();
}

}  // namespace dedup::ctl
