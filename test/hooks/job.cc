// engine/mpi/hooks.h in a test build.
//
// DEDUP_TEST_PACE="store=10M,link=12M,hash=210M" in rank 0's environment: bytes a second of each
// node, whose ranks share its devices (doc/testing.md, "Pacing").
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>

#include "base/codec.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/checked_message.h"
#include "engine/mpi/hooks.h"
#include "engine/mpi/pace.h"
#include "test/hooks/failpoint.h"
#include "test/hooks/faults.h"
#include "test/hooks/paced_system.h"

namespace dedup::engine {
namespace {

// Of one node, in memory that its ranks share.
struct Devices {
  std::atomic<std::int64_t> store{0};
  std::atomic<std::int64_t> sent{0};
  std::atomic<std::int64_t> received{0};
  std::atomic<std::int64_t> hash{0};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

Result<Devices*> map(const std::string& name, int flags) {
  const int fd = ::shm_open(name.c_str(), flags | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return Status::from_errno(errno, "cannot open shared memory " + name);
  void* memory = MAP_FAILED;
  if ((flags & O_CREAT) == 0 || ::ftruncate(fd, sizeof(Devices)) == 0) {
    memory = ::mmap(nullptr, sizeof(Devices), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  ::close(fd);
  if (memory == MAP_FAILED) return Status::from_errno(error, "cannot map shared memory " + name);
  // Fresh memory is zeros, which is what all ranks want to find.
  return static_cast<Devices*>(memory);
}

// The node's lowest rank makes the memory, and takes its name away when all have it.
Result<Devices*> share(MPI_Comm node, const std::string& name) {
  int rank;
  PMPI_Comm_rank(node, &rank);
  Result<Devices*> mine = nullptr;
  if (rank == 0) mine = map(name, O_CREAT | O_EXCL);
  const Status made = agree(node, mine.status());
  if (made.is_ok() && rank != 0) mine = map(name, 0);
  const Status mapped = made.is_ok() ? agree(node, mine.status()) : made;
  if (rank == 0 && mine.is_ok()) ::shm_unlink(name.c_str());
  if (!mapped.is_ok()) return mapped;
  return mine;
}

PacedDevice device(double rate, std::atomic<std::int64_t>& busy_until) {
  return rate == 0 ? PacedDevice() : PacedDevice(rate, busy_until, monotonic_clock());
}

class NodePace final : public Pace {
 public:
  NodePace(const PaceRates& rates, Devices& devices)
      : store_(device(rates.store, devices.store)),
        hash_(device(rates.hash, devices.hash)),
        sent_(device(rates.link, devices.sent)),
        received_(device(rates.link, devices.received)) {}

  std::int64_t now() override { return monotonic_clock().now(); }
  std::int64_t duration(Device device, std::uint64_t bytes) override {
    return of(device).duration(bytes);
  }
  std::int64_t reserve(Device device, std::uint64_t bytes, std::int64_t from) override {
    return of(device).reserve(bytes, from);
  }
  void wait(std::int64_t time) override {
    if (now() < time) monotonic_clock().sleep_until(time);
  }

  const PacedDevice& store() const { return store_; }

 private:
  const PacedDevice& of(Device device) const {
    switch (device) {
      case Device::kHash:
        return hash_;
      case Device::kSent:
        return sent_;
      case Device::kReceived:
        break;
    }
    return received_;
  }

  PacedDevice store_;
  PacedDevice hash_;
  PacedDevice sent_;
  PacedDevice received_;
};

// As long as the process lives: open files may outlast everything else.
NodePace* the_pace = nullptr;

Status begin_pace(MPI_Comm world, MPI_Comm node, const Id128& job) {
  int rank;
  PMPI_Comm_rank(world, &rank);
  Bytes text;
  if (rank == 0) {
    const char* const variable = std::getenv("DEDUP_TEST_PACE");
    Encoder encoder;
    encoder.put(std::string_view(variable == nullptr ? "" : variable));
    text = encoder.take();
  }
  broadcast(world, 0, text);
  Decoder decoder(text);
  const std::string rates = decoder.get_string();
  if (rates.empty()) return Status::ok();
  const auto parsed = parse_pace(rates);
  if (!parsed.is_ok()) return parsed.status().with_context("DEDUP_TEST_PACE");
  // Nodes may share the host.
  PMPI_Bcast(&rank, 1, MPI_INT, 0, node);
  const std::string name = "/dedup-pace-" + job.hex() + "-" + std::to_string(rank);
  DEDUP_ASSIGN(Devices* const devices, share(node, name));
  auto* const made = new NodePace(*parsed, *devices);
  // The clock that file systems take the time of a change from.
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  store::use_system(*new store::PacedSystem(store::system(), made->store(), now));
  the_pace = made;
  return Status::ok();
}

}  // namespace

Pace* pace() {
  return the_pace;
}

Status begin_hooks(MPI_Comm world, MPI_Comm node, const Id128& job) {
  int rank;
  PMPI_Comm_rank(world, &rank);
  set_failpoint_rank(rank);
  const Status faults = install_faults(rank);
  const Status paced = begin_pace(world, node, job);  // collective, whatever became of the faults
  return faults.is_ok() ? paced : faults;
}

}  // namespace dedup::engine
