#include "engine/mpi/topology.h"

#include <algorithm>
#include <utility>

namespace dedup::engine {
namespace {

// What each rank says of itself when a file is opened.
struct Place {
  std::uint64_t shared = 0;  // the number of the SharedComms that it knows, or 0
  std::uint64_t fresh = 0;   // a number for others
  std::uint64_t node = 0;
};
constexpr int kPlaceWords = sizeof(Place) / sizeof(std::uint64_t);

}  // namespace

Result<Topology> Topology::build(MPI_Comm comm, NodeIndex job_nodes, NodeIndex my_node) {
  Topology t;
  t.comm_ = comm;
  t.job_nodes_ = job_nodes;
  t.my_node_ = my_node;
  PMPI_Comm_rank(comm, &t.rank_);
  PMPI_Comm_size(comm, &t.size_);
  std::shared_ptr<SharedComms> found = SharedComms::find(comm);
  const Place mine{found ? found->number() : 0, SharedComms::next_number(), my_node};
  std::vector<Place> places(static_cast<std::size_t>(t.size_));
  if (PMPI_Allgather(&mine, kPlaceWords, MPI_UINT64_T, places.data(), kPlaceWords, MPI_UINT64_T,
                     comm) != MPI_SUCCESS) {
    return Status(Code::kInternal, "MPI_Allgather failed while the file was being opened");
  }
  t.ranks_on_.resize(job_nodes);
  for (int r = 0; r < t.size_; ++r) {
    const auto node = static_cast<NodeIndex>(places[static_cast<std::size_t>(r)].node);
    t.node_of_.push_back(node);
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
  const bool all_found = std::all_of(places.begin(), places.end(), [&](const Place& place) {
    return place.shared != 0 && place.shared == places[0].shared;
  });
  if (!all_found) {
    DEDUP_ASSIGN(found, SharedComms::make(comm, places[0].fresh));
  }
  t.comms_ = std::make_unique<FileComms>(comm, my_node, std::move(found));
  const std::vector<int>& here = t.ranks_on_[my_node];
  t.node_rank_ = static_cast<int>(std::find(here.begin(), here.end(), t.rank_) - here.begin());
  end_with_others(comm);
  return t;
}

}  // namespace dedup::engine
