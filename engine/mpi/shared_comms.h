// What the ranks of a dump need beside their file's own communicator: one of this node's ranks, one
// of the nodes' leaders, one in which a rank receives from anybody.
//
// MPICH has room for some 2,000 communicators in a process, and a program may have as many files
// open. So they are not the files' own: all files that are open on the same ranks in the same order
// share some sets of them (SharedComms), and a dump takes one for itself, for as long as it lasts.
// One set is enough, unless several threads dump at once. They go with the last file that is open
// on these ranks; but those of all ranks, and of this one alone, stay for the files to come.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "base/types.h"

namespace dedup::engine {

// An error of MPI on `comm` ends the job from now on: in the middle of a collective of ours there
// is nobody left to agree with.
void end_with_others(MPI_Comm comm);

// One set. Freed collectively.
class CommSet {
 public:
  // Collective over `comm`. `number`: the same on all ranks, and no other set's.
  static Result<std::shared_ptr<CommSet>> make(MPI_Comm comm, NodeIndex my_node,
                                               std::uint64_t number);
  ~CommSet();

  std::uint64_t number() const { return number_; }
  // Nodes in the order of their numbers, ranks in the order of `comm`.
  MPI_Comm node() const { return node_; }
  MPI_Comm leaders() const { return leaders_; }  // MPI_COMM_NULL on ranks that are not one
  MPI_Comm any_source() const { return any_source_; }

 private:
  explicit CommSet(std::uint64_t number) : number_(number) {}

  std::uint64_t number_;
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Comm leaders_ = MPI_COMM_NULL;
  MPI_Comm any_source_ = MPI_COMM_NULL;
};

// The sets of all files that are open on the same ranks in one job, which numbers their nodes. All
// of it is local; threads may call it at once.
class SharedComms {
 public:
  // What some open file of `job` on the ranks of `comm` has, as far as this rank knows; or nullptr.
  static std::shared_ptr<SharedComms> find(MPI_Comm comm, const Id128& job);
  // A number that no other call on any rank returns, and never 0.
  static std::uint64_t next_number();
  // Called on all ranks, with the same `number`.
  static std::shared_ptr<SharedComms> make(MPI_Comm comm, const Id128& job, std::uint64_t number);
  ~SharedComms();

  std::uint64_t number() const { return number_; }
  // The set with the lowest number that nobody has taken, which the caller then has; or nullptr.
  std::shared_ptr<CommSet> take();
  // One that the caller has taken.
  void give_back(const CommSet& set);
  // One more, which the caller has taken.
  void add(std::shared_ptr<CommSet> set);

 private:
  struct Entry {
    std::shared_ptr<CommSet> set;
    bool taken = false;
  };

  SharedComms(const Id128& job, std::uint64_t number) : job_(job), number_(number) {}

  Id128 job_;
  std::uint64_t number_;
  MPI_Group ranks_ = MPI_GROUP_NULL;
  std::mutex mutex_;
  std::map<std::uint64_t, Entry> sets_;  // by number
};

// An open file's, of which one dump at a time uses it: offer(), a reduction, take(), give_back().
class FileComms {
 public:
  using Offer = std::array<std::uint64_t, 3>;

  // `comm` is the file's.
  FileComms(MPI_Comm comm, NodeIndex my_node, std::shared_ptr<SharedComms> shared);

  // Local. The set that this rank would take, for MPI_MAX over all ranks: whether that is the same
  // one everywhere shows in the result.
  Offer offer();
  // Collective. `all`: the result. Takes the set that all ranks have offered. If they have not,
  // since other threads have taken sets in another order or all of them, takes one that it makes.
  Status take(const Offer& all);
  // Collective. The same with a reduction of its own, for who has none to put the offer into.
  Status take_together();
  // Local, but for a set that was made only for this once.
  void give_back();

  const CommSet& taken() const { return *taken_; }

 private:
  MPI_Comm comm_;
  NodeIndex my_node_;
  std::shared_ptr<SharedComms> shared_;
  std::shared_ptr<CommSet> taken_;
  bool is_shared_ = false;  // taken_ is one of shared_
};

}  // namespace dedup::engine
