#include "service/job_services.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fields.h"
#include "base/mount_address.h"
#include "base/passed_descriptor.h"
#include "base/retried.h"

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
  char byte = kTellsOfServices;
  const iovec part{&byte, 1};
  if (send_with(connection.fd(), {&part, 1}, MSG_NOSIGNAL, file.fd()) != 1) {
    return Status::from_errno(errno, "sendmsg");
  }
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
