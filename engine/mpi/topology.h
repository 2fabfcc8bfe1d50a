// Who is where: the ranks of one communicator and the nodes of the job.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/mpi/shared_comms.h"

namespace dedup::engine {

// Where a rank is (job.h).
struct Place {
  Id128 world{};  // the same for all jobs of one MPI_COMM_WORLD
  Id128 job{};
  NodeIndex nodes = 0;  // of the job
  NodeIndex node = 0;   // this rank's
};

// What a rank says of the opening of a file; together, what all ranks have said of it.
struct Opening {
  bool has_failed = false;  // of any rank: it cannot
  bool has_doubt = false;   // of any rank: a node may be lost
  bool is_same = true;      // all are asked for the same
  std::uint64_t asked = 0;  // a hash of what it is asked for
  Id128 handle{};           // an id for the handle; together, rank 0's
};

// The ranks of a communicator by node. Nodes are numbered as in the job's node table; a
// communicator may reach only some of them ("represented"). Built collectively, then immutable, but
// for the communicators that a dump takes (shared_comms.h).
class Topology {
 public:
  // Collective over `comm`, which stays the caller's, and on which from now on an error of MPI ends
  // the job, as on the others. kUnsupported on all ranks if they are not of one MPI_COMM_WORLD.
  static Result<Topology> build(MPI_Comm comm, const Place& mine, const Opening& opening = {});
  // If some rank has failed, nothing else is there.
  const Opening& opening() const { return opening_; }
  // Whether all ranks are of one job; if not, nothing below is there but the communicator.
  bool same_job() const { return same_job_; }
  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  NodeIndex job_nodes() const { return job_nodes_; }
  NodeIndex my_node() const { return my_node_; }
  NodeIndex node_of(int rank) const { return node_of_[static_cast<std::size_t>(rank)]; }
  // Ranks of `comm` on a node, ascending; empty if the communicator has none there.
  const std::vector<int>& ranks_on(NodeIndex node) const { return ranks_on_[node]; }
  bool represented(NodeIndex node) const { return !ranks_on_[node].empty(); }
  // Represented nodes, ascending: position in this list = rank in leader_comm.
  const std::vector<NodeIndex>& nodes() const { return nodes_; }

  // This node's ranks of `comm`; rank 0 of it is the node's leader.
  MPI_Comm node_comm() const { return comms_->taken().node(); }
  int node_rank() const { return node_rank_; }
  int node_size() const { return static_cast<int>(ranks_on_[my_node_].size()); }
  // Of the node with most.
  int most_ranks_a_node() const { return most_ranks_; }
  bool is_leader() const { return node_rank_ == 0; }
  // One leader a node; MPI_COMM_NULL on other ranks.
  MPI_Comm leader_comm() const { return comms_->taken().leaders(); }
  // All ranks, for messages that may come from anybody.
  MPI_Comm any_source_comm() const { return comms_->taken().any_source(); }
  // These three are there while a dump has taken them.
  FileComms& comms() const { return *comms_; }

  // The rank that speaks to a node's service when one rank must do so for all: the node's leader,
  // or, for nodes the communicator does not reach, ranks dealt in turn.
  int speaker_for(NodeIndex node) const {
    return represented(node) ? ranks_on_[node].front() : node % size_;
  }

 private:
  Topology() = default;

  MPI_Comm comm_ = MPI_COMM_NULL;
  Opening opening_;
  bool same_job_ = true;
  std::unique_ptr<FileComms> comms_;
  int rank_ = 0;
  int size_ = 0;
  int node_rank_ = 0;
  int most_ranks_ = 1;
  NodeIndex job_nodes_ = 0;
  NodeIndex my_node_ = 0;
  std::vector<NodeIndex> node_of_;
  std::vector<std::vector<int>> ranks_on_;
  std::vector<NodeIndex> nodes_;
};

}  // namespace dedup::engine
