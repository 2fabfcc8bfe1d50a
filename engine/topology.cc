#include "engine/topology.h"

#include <utility>

namespace dedup::engine {

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
