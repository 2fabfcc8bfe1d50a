#include "engine/mpi/topology.h"

#include <algorithm>
#include <utility>

namespace dedup::engine {
namespace {

// What each rank says of itself when a file is opened: words, as MPI takes them.
struct Said {
  std::uint64_t shared = 0;  // the number of the SharedComms that it knows, or 0
  std::uint64_t fresh = 0;   // a number for others
  std::uint64_t node = 0;
  Id128 world{};
  Id128 job{};
  std::uint64_t asked = 0;  // the rest: Opening
  Id128 handle{};
  std::uint64_t has_failed = 0;
  std::uint64_t has_doubt = 0;
};
constexpr int kSaidWords = sizeof(Said) / sizeof(std::uint64_t);
static_assert(sizeof(Said) == 12 * sizeof(std::uint64_t));

Opening together(const std::vector<Said>& all) {
  Opening opening;
  opening.asked = all[0].asked;
  opening.handle = all[0].handle;
  for (const Said& one : all) {
    opening.has_failed = opening.has_failed || one.has_failed != 0;
    opening.has_doubt = opening.has_doubt || one.has_doubt != 0;
    opening.is_same = opening.is_same && one.asked == opening.asked;
  }
  return opening;
}

}  // namespace

Result<Topology> Topology::build(MPI_Comm comm, const Place& mine, const Opening& opening) {
  Topology t;
  t.comm_ = comm;
  t.job_nodes_ = mine.nodes;
  t.my_node_ = mine.node;
  PMPI_Comm_rank(comm, &t.rank_);
  PMPI_Comm_size(comm, &t.size_);
  std::shared_ptr<SharedComms> found = SharedComms::find(comm, mine.job);
  const Said said{found ? found->number() : 0,
                  SharedComms::next_number(),
                  mine.node,
                  mine.world,
                  mine.job,
                  opening.asked,
                  opening.handle,
                  opening.has_failed ? std::uint64_t{1} : 0,
                  opening.has_doubt ? std::uint64_t{1} : 0};
  std::vector<Said> all(static_cast<std::size_t>(t.size_));
  if (PMPI_Allgather(&said, kSaidWords, MPI_UINT64_T, all.data(), kSaidWords, MPI_UINT64_T, comm) !=
      MPI_SUCCESS) {
    return Status(Code::kInternal, "MPI_Allgather failed while the file was being opened");
  }
  t.opening_ = together(all);
  if (t.opening_.has_failed) return t;
  const auto same = [&](auto field) {
    return std::ranges::all_of(all, [&](const Said& one) { return one.*field == all[0].*field; });
  };
  if (!same(&Said::world)) {
    return Status(Code::kUnsupported,
                  "the communicator has ranks of another MPI_COMM_WORLD: open the file on ranks of "
                  "one job");
  }
  end_with_others(comm);
  t.same_job_ = same(&Said::job);
  if (!t.same_job_) return t;
  t.ranks_on_.resize(mine.nodes);
  for (int r = 0; r < t.size_; ++r) {
    const auto node = static_cast<NodeIndex>(all[static_cast<std::size_t>(r)].node);
    t.node_of_.push_back(node);
    t.ranks_on_[node].push_back(r);
  }
  for (NodeIndex n = 0; n < mine.nodes; ++n) {
    if (t.represented(n)) t.nodes_.push_back(n);
    t.most_ranks_ = std::max(t.most_ranks_, static_cast<int>(t.ranks_on_[n].size()));
  }
  if (all[0].shared == 0 || !same(&Said::shared)) {
    found = SharedComms::make(comm, mine.job, all[0].fresh);
  }
  t.comms_ = std::make_unique<FileComms>(comm, mine.node, std::move(found));
  const std::vector<int>& here = t.ranks_on_[mine.node];
  t.node_rank_ = static_cast<int>(std::find(here.begin(), here.end(), t.rank_) - here.begin());
  return t;
}

}  // namespace dedup::engine
