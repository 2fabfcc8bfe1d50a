// A sequence of steps: what users, jobs and disks do, drawn from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/simulation/cluster.h"

namespace dedup::simulation {

inline constexpr std::size_t kNames = 3;

struct Step {
  enum class Kind {
    kOpen,    // a job on `nodes` opens `name`, and reads it
    kWrite,   // the job writes `cells` and reads
    kCommit,  // and commits
    kClose,   // commits, and closes
    kKill,    // the job is killed
    kDelete,  // a job on `nodes` deletes `name`
    kRemove,  // rm
    kRename,  // mv, to `other`
    kCopy,    // cp, to `other`
    kLose,    // a disk is empty now
    kRemember,
    kBringBack,  // and is as it was when last remembered
    kPress,      // the job's nodes are told that there is no room
    kGc,         // dedupctl gc on the stores of `nodes`
    kGcUnnamed,  // the same with --unnamed
    kRm,         // dedupctl rm `name`
    kRmOn,       // dedupctl rm --on `node`
    kEnd,
  };
  Kind kind = Kind::kOpen;
  std::uint64_t seed = 0;  // of everything that the step leaves open
  std::size_t job = 0;
  std::size_t name = 0;
  std::size_t other = 0;
  std::vector<NodeIndex> nodes;
  NodeIndex node = 0;
  bool writable = false;
  bool create = false;
  unsigned copies = 1;   // K
  bool striped = false;  // in stripes with K - 1 parities, of what is not on K nodes
  unsigned keep = 1;     // generations
  unsigned cells = 0;    // one bit for each
  // Something fails in this step, at the n-th call; and those nodes of the job that lose power if
  // it dies.
  store::Fault fault = store::Fault::kNone;
  std::uint64_t fault_at = 0;
  bool fault_at_shared = false;  // of the calls on the shared file system
  unsigned powerless = 0;
  // What others do while dedupctl is at its n-th call.
  std::vector<Step> inside;
  std::uint64_t inside_at = 0;

  bool is_upkeep() const { return kind >= Kind::kGc && kind <= Kind::kRmOn; }
  std::string text() const;
};

// Of jobs, users and disks.
std::vector<Step> draw_jobs(std::uint64_t seed);
// And of dedupctl, between them and around some of them.
std::vector<Step> draw_sequence(std::uint64_t seed);

}  // namespace dedup::simulation
