#include "engine/topology.h"

#include <cstdio>
#include <utility>

namespace dedup::engine {
namespace {

// What a program makes of MPI's errors (MPI_ERRORS_RETURN) is for its own calls. In the middle of a
// collective of ours an error means that a rank or a link is gone; ranks that came back from it
// would leave others waiting for them, and a step that not all have taken must not count as taken.
void end_this_rank(MPI_Comm*, int* error, ...) {
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  int error_class = MPI_ERR_OTHER;
  PMPI_Error_class(*error, &error_class);
  // Of the class: the whole error's makes MPICH 4.0.2 with ch3:sock loop for ever (its stack of
  // causes may be a ring), as its own fatal handler does.
  PMPI_Error_string(error_class, text, &length);
  std::fprintf(stderr,
               "dedup: error: this rank ends, since MPI lost another one in the middle of a "
               "collective operation on a file; what was committed stands: %s\n",
               text);
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

void end_with_others(MPI_Comm comm) {
  MPI_Errhandler handler;
  if (PMPI_Comm_create_errhandler(end_this_rank, &handler) != MPI_SUCCESS) {
    handler = MPI_ERRORS_ARE_FATAL;
  }
  PMPI_Comm_set_errhandler(comm, handler);
  if (handler != MPI_ERRORS_ARE_FATAL) PMPI_Errhandler_free(&handler);
}

}  // namespace

Result<Topology> Topology::build(MPI_Comm comm, NodeIndex job_nodes, NodeIndex my_node) {
  Topology t;
  t.comm_ = comm;
  t.job_nodes_ = job_nodes;
  t.my_node_ = my_node;
  PMPI_Comm_rank(comm, &t.rank_);
  PMPI_Comm_size(comm, &t.size_);
  t.node_of_.resize(static_cast<std::size_t>(t.size_));
  if (PMPI_Allgather(&my_node, 1, MPI_UINT16_T, t.node_of_.data(), 1, MPI_UINT16_T, comm) !=
      MPI_SUCCESS) {
    return Status(Code::kInternal, "MPI_Allgather failed while the file was being opened");
  }
  t.ranks_on_.resize(job_nodes);
  for (int r = 0; r < t.size_; ++r) {
    const NodeIndex node = t.node_of(r);
    if (node >= job_nodes) {
      return Status(Code::kUnsupported,
                    "the communicator has ranks of another MPI_COMM_WORLD: open the file on ranks "
                    "of one job");
    }
    t.ranks_on_[node].push_back(r);
  }
  for (NodeIndex n = 0; n < job_nodes; ++n) {
    if (t.represented(n)) t.nodes_.push_back(n);
  }
  if (PMPI_Comm_split(comm, my_node, t.rank_, &t.node_comm_) != MPI_SUCCESS) {
    return Status(Code::kInternal, "MPI_Comm_split failed while the file was being opened");
  }
  PMPI_Comm_rank(t.node_comm_, &t.node_rank_);
  const int color = t.is_leader() ? 0 : MPI_UNDEFINED;
  if (PMPI_Comm_split(comm, color, my_node, &t.leader_comm_) != MPI_SUCCESS) {
    return Status(Code::kInternal, "MPI_Comm_split failed while the file was being opened");
  }
  end_with_others(comm);
  end_with_others(t.node_comm_);
  if (t.is_leader()) end_with_others(t.leader_comm_);
  return t;
}

Topology::Topology(Topology&& other) noexcept {
  *this = std::move(other);
}

Topology& Topology::operator=(Topology&& other) noexcept {
  if (this == &other) return *this;
  release();
  comm_ = other.comm_;
  node_comm_ = std::exchange(other.node_comm_, MPI_COMM_NULL);
  leader_comm_ = std::exchange(other.leader_comm_, MPI_COMM_NULL);
  rank_ = other.rank_;
  size_ = other.size_;
  node_rank_ = other.node_rank_;
  job_nodes_ = other.job_nodes_;
  my_node_ = other.my_node_;
  node_of_ = std::move(other.node_of_);
  ranks_on_ = std::move(other.ranks_on_);
  nodes_ = std::move(other.nodes_);
  return *this;
}

Topology::~Topology() {
  release();
}

void Topology::release() {
  if (leader_comm_ != MPI_COMM_NULL) PMPI_Comm_free(&leader_comm_);
  if (node_comm_ != MPI_COMM_NULL) PMPI_Comm_free(&node_comm_);
}

}  // namespace dedup::engine
