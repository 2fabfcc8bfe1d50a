// A cluster in memory: nodes' disks, a shared file system, and jobs of which one program plays all
// ranks. The services, the store, and opening, committing, reading, closing and deleting are the
// product's own code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/ranks.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/job_file.h"
#include "service/client.h"
#include "service/server.h"
#include "test/faults/memory_system.h"
#include "test/hooks/faulty_system.h"

namespace dedup::simulation {

using Random = std::mt19937_64;

inline constexpr NodeIndex kNodes = 6;
inline constexpr std::size_t kJobs = 2;
inline constexpr int kUpkeep = static_cast<int>(kJobs) + 2;  // what dedupctl is as a job

// Ways to break the protocol, to see that the simulation finds it.
enum class Breakage {
  kNone,
  kFenceBeforeRecords,  // Commit is answered at once and carried out after the fence
  kNoParentCheck,       // a job sees the real path as it was when it opened it
  kNoDirectoryFlush,    // fsync of a directory does nothing
  kNoFileFlush,         // likewise of a file
  kNoLocks,             // every job gets every lock
  kNumberTwice,         // a second attempt gets the number of the one that failed
  kNoSecondLook,        // dedupctl sees the records as it saw them first
  kLostLinks,           // a shard's second name is said to be there, and is not
  kLostSegments,        // likewise a segment's
  kMovedSegments,       // a segment that is shared is the new file's alone
  kLostKept,            // a kept generation is said to be committed as a file, and is not
};

// Where all random numbers of the product come from: the same for the same seed.
void seed_product(std::uint64_t seed);

class BrokenSystem;

class Cluster {
 public:
  explicit Cluster(Breakage breakage);
  ~Cluster();

  test::MemorySystem& memory() { return memory_; }
  const test::MemorySystem& memory() const { return memory_; }
  Breakage breakage() const { return breakage_; }
  static std::string disk(NodeIndex node) { return "/n" + std::to_string(node); }
  static std::string path(std::size_t name) { return "/shared/f" + std::to_string(name); }

  // --- Disks ------------------------------------------------------------------------------------
  void wipe(NodeIndex node);
  void remember(NodeIndex node);    // what is on it now
  bool bring_back(NodeIndex node);  // as it was then; false if nothing was remembered
  void lose_power(NodeIndex node, std::uint64_t seed);

  // --- Faults -----------------------------------------------------------------------------------
  // Happens to the n-th call of the system from now on that it can happen to; `at_shared`: of those
  // on the shared file system.
  void plan_fault(store::Fault fault, std::uint64_t n, bool at_shared = false);
  void end_fault();
  bool struck() const { return plan_.struck != 0; }
  bool job_died() const;
  int struck_process() const { return struck_process_; }

  void set_process(int process);
  int process() const { return process_; }
  // What a job sees of the shared file system from now on (kNoParentCheck).
  void freeze_view(int job);
  // The same of dedupctl and the stores' records (kNoSecondLook), and its end.
  void freeze_records();
  void unfreeze_records();
  // Calls `what` before the n-th of dedupctl's calls from now on at which it has no lock that
  // others would wait for. False if there was none by the end.
  void interrupt(std::uint64_t n, std::function<void()> what);
  bool end_interrupt();

 private:
  test::MemorySystem memory_;
  Breakage breakage_;
  store::FaultPlan plan_;
  std::unique_ptr<BrokenSystem> broken_;
  std::unique_ptr<store::FaultySystem> faulty_;
  store::System* before_;
  int process_ = 0;
  int struck_process_ = 0;
  int views_ = 0;
  struct Remembered {
    struct Entry {
      std::string name;  // a directory's ends in '/'
      ino_t inode = 0;
      Bytes content;
    };
    std::vector<Entry> entries;
    bool there = false;
  };
  std::vector<Remembered> remembered_{kNodes};
};

// A job on some of the cluster's nodes: their services, and one open file. All its ranks are one.
class Job {
 public:
  Job(Cluster& cluster, int number, std::vector<NodeIndex> nodes, std::uint64_t seed);
  ~Job();

  const std::vector<NodeIndex>& nodes() const { return nodes_; }
  service::Client& client() { return *client_; }
  const OneRank& ranks() const { return ranks_; }
  Random& random() { return random_; }

  // If set, asked before a request is carried out: a reply that is given instead, if any.
  std::function<std::optional<Result<Bytes>>(NodeIndex node, service::Opcode opcode)> intercept;
  // If set, told of each request that is carried out.
  std::function<void(NodeIndex node, service::Opcode opcode, std::span<const std::byte> body)>
      listen;
  // Set by whoever opens a file.
  std::unique_ptr<engine::JobFile> file;

 private:
  Cluster& cluster_;
  int number_;
  std::vector<NodeIndex> nodes_;
  Random random_;
  OneRank ranks_;
  std::unique_ptr<service::Client> client_;
};

}  // namespace dedup::simulation
