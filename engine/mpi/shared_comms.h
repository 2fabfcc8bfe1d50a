// What a file needs beside its own communicator: one of this node's ranks, one of the nodes'
// leaders, one in which a rank receives from anybody.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/types.h"

namespace dedup::engine {

// An error of MPI on `comm` ends the job from now on: in the middle of a collective of ours there
// is nobody left to agree with.
void end_with_others(MPI_Comm comm);

// MPICH has room for some 2,000 communicators in a process. So files that are open on the same
// ranks in the same order share these: what ranks do with them comes in the same order on all of
// them, and no operation on a file ends before all ranks are through with them. Where several
// threads may call MPI at once that does not hold, and each file has its own.
class SharedComms {
 public:
  // What some open file on the ranks of `comm` has, as far as this rank knows; or nullptr. Local.
  static std::shared_ptr<SharedComms> find(MPI_Comm comm);
  // A number for one that is to be made, of this rank's: no other rank's, and never 0. Local.
  static std::uint64_t next_number();
  // Collective over `comm`. `number`: the same on all ranks, and of no other one.
  static Result<std::shared_ptr<SharedComms>> make(MPI_Comm comm, NodeIndex my_node,
                                                   std::uint64_t number);
  // Collective.
  ~SharedComms();

  std::uint64_t number() const { return number_; }
  // Nodes in the order of their numbers, ranks in the order of `comm`.
  MPI_Comm node() const { return node_; }
  MPI_Comm leaders() const { return leaders_; }  // MPI_COMM_NULL on ranks that are not one
  // All ranks of `comm`; for messages that may come from anybody. Collective when first called.
  MPI_Comm any_source(MPI_Comm comm);

 private:
  explicit SharedComms(std::uint64_t number) : number_(number) {}

  std::uint64_t number_;
  MPI_Group ranks_ = MPI_GROUP_NULL;
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Comm leaders_ = MPI_COMM_NULL;
  MPI_Comm any_source_ = MPI_COMM_NULL;
};

}  // namespace dedup::engine
