#include "engine/mpi/pace.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "engine/mpi/agreement.h"
#include "store/paced_system.h"

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

// As long as the process lives: open files may outlast everything else.
const Pace* the_pace = nullptr;

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

}  // namespace

const Pace* pace() {
  return the_pace;
}

Status install_pace(MPI_Comm node, const std::string& rates, const Id128& job, int world_rank) {
  const auto parsed = parse_pace(rates);
  if (!parsed.is_ok()) return parsed.status().with_context("DEDUP_TEST_PACE");
  // Nodes may share the host.
  PMPI_Bcast(&world_rank, 1, MPI_INT, 0, node);
  const std::string name = "/dedup-pace-" + job.hex() + "-" + std::to_string(world_rank);
  DEDUP_ASSIGN(Devices* const devices, share(node, name));
  auto* const made =
      new Pace{device(parsed->store, devices->store), device(parsed->link, devices->sent),
               device(parsed->link, devices->received), device(parsed->hash, devices->hash)};
  store::use_system(*new store::PacedSystem(store::system(), made->store));
  the_pace = made;
  return Status::ok();
}

}  // namespace dedup::engine
