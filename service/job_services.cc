#include "service/job_services.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fields.h"
#include "base/mount_address.h"
#include "base/retried.h"
#include "service/wire.h"

namespace dedup::service {
namespace {

// 65534 peers, of which each has 64 addresses at most that are 45 characters long.
constexpr off_t kMostBytes = off_t{256} << 20;

Result<Descriptor> in_memory(const Bytes& bytes) {
  Descriptor file(::memfd_create("dedup-services", MFD_CLOEXEC));
  if (!file.is_open()) return Status::from_errno(errno, "memfd_create");
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written =
        retried([&] { return ::write(file.fd(), bytes.data() + at, bytes.size() - at); });
    if (written < 0) return Status::from_errno(errno, "cannot write to memory");
    at += static_cast<std::size_t>(written);
  }
  return file;
}

Status send_descriptor(int connection, char byte, int descriptor) {
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  const ssize_t sent = retried([&] { return ::sendmsg(connection, &message, MSG_NOSIGNAL); });
  return sent == 1 ? Status::ok() : Status::from_errno(errno, "sendmsg");
}

}  // namespace

std::unique_ptr<Client> JobServices::connect() const {
  return std::make_unique<Client>(peers, kNoNode, secret, nullptr, std::chrono::seconds(patience));
}

Result<Descriptor> tell_mount(const std::string& directory, const JobServices& services) {
  Descriptor connection(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection.is_open()) return Status::from_errno(errno, "cannot make a socket");
  sockaddr_un address = {};
  const socklen_t size = ::mount_address(::geteuid(), directory.c_str(), &address);
  const int connected = retried([&] {
    return ::connect(connection.fd(), reinterpret_cast<const sockaddr*>(&address), size);
  });
  if (connected != 0 && errno == ECONNREFUSED) {
    return Status(Code::kNotFound, "nobody looks after a mount at " + directory);
  }
  if (connected != 0) return Status::from_errno(errno, "cannot ask for the mount");
  if (!is_own_user(connection.fd())) {
    return Status(Code::kAccess,
                  "who answers for the mount at " + directory + " is another user's process");
  }
  DEDUP_ASSIGN(const Descriptor file, in_memory(encoded(services)));
  DEDUP_TRY(send_descriptor(connection.fd(), kTellsOfServices, file.fd()));
  return connection;
}

Result<JobServices> read_services(const Descriptor& descriptor) {
  struct stat about = {};
  if (::fstat(descriptor.fd(), &about) != 0) return Status::from_errno(errno, "fstat");
  Status no(Code::kCorrupt, "what was told of a job's services is nothing of the kind");
  if (!S_ISREG(about.st_mode) || about.st_size > kMostBytes) return no;
  Bytes bytes(static_cast<std::size_t>(about.st_size));
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t read = retried([&] {
      return ::pread(descriptor.fd(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    });
    if (read < 0) return Status::from_errno(errno, "cannot read what was told of a job's services");
    if (read == 0) return no;
    at += static_cast<std::size_t>(read);
  }
  auto services = decoded<JobServices>(bytes);
  if (!services) return no;
  return *std::move(services);
}

}  // namespace dedup::service
