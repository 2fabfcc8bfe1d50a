// How a process is told of a job's services that is none of its ranks.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <span>
#include <string>

#include "base/fields.h"
#include "base/mount_address.h"
#include "base/passed_descriptor.h"
#include "service/job_services.h"

namespace dedup::service {
namespace {

JobServices some_services() {
  JobServices services;
  services.job.bytes[3] = 9;
  services.secret[31] = 5;
  services.patience = 60;
  services.peers = {{"n0", {"10.0.0.1", "192.168.1.7"}, 4711, "rack", 4712},
                    {"n1", {"10.0.0.2"}, 815, "", 0}};
  return services;
}

// Who looks after the mount at `directory`.
class Mount {
 public:
  explicit Mount(const std::string& directory)
      : listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    const socklen_t size = ::mount_address(::geteuid(), directory.c_str(), &address);
    EXPECT_EQ(::bind(listener_.fd(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.fd(), 1), 0);
  }
  // The byte that the next one sends, and what comes with it.
  char receive(Descriptor& with_it) {
    const Descriptor connection(::accept(listener_.fd(), nullptr, nullptr));
    char byte = 'x';
    EXPECT_EQ(
        receive_with(connection.fd(), std::as_writable_bytes(std::span(&byte, 1)), 0, with_it), 1);
    return byte;
  }

 private:
  Descriptor listener_;
};

std::string unique_name() {
  return "/no directory, of process " + std::to_string(::getpid());
}

Descriptor memory_with(const Bytes& bytes) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.fd(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return file;
}

TEST(JobServicesTest, AreWhatTheMountIsTold) {
  Mount mount(unique_name());
  const auto told = tell_mount(unique_name(), some_services());
  ASSERT_TRUE(told.is_ok()) << told.status().message();
  Descriptor with_it;
  EXPECT_EQ(mount.receive(with_it), kTellsOfServices);
  const auto services = read_services(with_it);
  ASSERT_TRUE(services.is_ok()) << services.status().message();
  EXPECT_EQ(encoded(*services), encoded(some_services()));
  const auto client = services->connect();
  EXPECT_EQ(client->nodes(), 2);
  EXPECT_EQ(client->self(), kNoNode);
  EXPECT_EQ(client->node_name(1), "n1");
}

TEST(JobServicesTest, NobodyIsToldWhereThereIsNoMount) {
  EXPECT_EQ(tell_mount(unique_name(), some_services()).status().code(), Code::kNotFound);
}

TEST(JobServicesTest, SomethingElseIsNotTakenForThem) {
  Bytes bytes = encoded(some_services());
  EXPECT_TRUE(read_services(memory_with(bytes)).is_ok());
  Bytes longer = bytes;
  longer.push_back({});
  EXPECT_EQ(read_services(memory_with(longer)).status().code(), Code::kCorrupt);
  bytes.pop_back();
  EXPECT_EQ(read_services(memory_with(bytes)).status().code(), Code::kCorrupt);
  EXPECT_EQ(read_services(memory_with({})).status().code(), Code::kCorrupt);
  JobServices none = some_services();
  none.peers.clear();
  EXPECT_EQ(read_services(memory_with(encoded(none))).status().code(), Code::kCorrupt);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor reads(ends[0]), writes(ends[1]);
  EXPECT_EQ(read_services(reads).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace dedup::service
