#include "engine/mpi/shared_comms.h"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/warn.h"
#include "engine/mpi/agreement.h"

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
  say_error(
      "this rank ends, since MPI lost another one in the middle of a collective operation on a "
      "file; what was committed stands: " +
      std::string(text));
  wait_until_read();
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<SharedComms>> all;
  // What stays: two of the newest job's, which MPI_Finalize frees.
  std::shared_ptr<SharedComms> of_world;
  std::shared_ptr<SharedComms> of_one;
};

// Never destroyed: files are closed while the process ends.
Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

// What cannot be made is an error of the call, and not the end of the job.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(MPI_Comm comm) : comm_(comm) {
    PMPI_Comm_get_errhandler(comm_, &before_);
    PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;
  ~ErrorsReturn() {
    PMPI_Comm_set_errhandler(comm_, before_);
    PMPI_Errhandler_free(&before_);
  }

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRORS_RETURN;
};

Status failed(const std::string& call) {
  return {Code::kInternal, call +
                               " failed: if very many files are open, MPI may have no more "
                               "communicators"};
}

}  // namespace

void end_with_others(MPI_Comm comm) {
  MPI_Errhandler handler;
  if (PMPI_Comm_create_errhandler(end_this_rank, &handler) != MPI_SUCCESS) {
    handler = MPI_ERRORS_ARE_FATAL;
  }
  PMPI_Comm_set_errhandler(comm, handler);
  if (handler != MPI_ERRORS_ARE_FATAL) PMPI_Errhandler_free(&handler);
}

Result<std::shared_ptr<CommSet>> CommSet::make(MPI_Comm comm, NodeIndex my_node,
                                               std::uint64_t number) {
  std::shared_ptr<CommSet> set(new CommSet(number));
  const ErrorsReturn errors(comm);
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (PMPI_Comm_split(comm, my_node, rank, &set->node_) != MPI_SUCCESS) {
    return failed("MPI_Comm_split");
  }
  int node_rank = 0;
  PMPI_Comm_rank(set->node_, &node_rank);
  const int color = node_rank == 0 ? 0 : MPI_UNDEFINED;
  if (PMPI_Comm_split(comm, color, my_node, &set->leaders_) != MPI_SUCCESS) {
    return failed("MPI_Comm_split");
  }
  if (PMPI_Comm_dup(comm, &set->any_source_) != MPI_SUCCESS) return failed("MPI_Comm_dup");
  for (const MPI_Comm made : {set->node_, set->leaders_, set->any_source_}) {
    if (made != MPI_COMM_NULL) end_with_others(made);
  }
  return set;
}

CommSet::~CommSet() {
  for (MPI_Comm* const comm : {&any_source_, &leaders_, &node_}) {
    if (*comm != MPI_COMM_NULL) PMPI_Comm_free(comm);
  }
}

std::shared_ptr<SharedComms> SharedComms::find(MPI_Comm comm, const Id128& job) {
  MPI_Group ranks;
  if (PMPI_Comm_group(comm, &ranks) != MPI_SUCCESS) return nullptr;
  std::shared_ptr<SharedComms> found;
  {
    const std::lock_guard lock(registry().mutex);
    auto& all = registry().all;
    std::erase_if(all, [](const auto& one) { return one.expired(); });
    for (const auto& one : all) {
      std::shared_ptr<SharedComms> comms = one.lock();
      int result = MPI_UNEQUAL;
      const bool may_be = comms && comms->job_ == job && comms->ranks_ != MPI_GROUP_NULL;
      if (may_be) PMPI_Group_compare(ranks, comms->ranks_, &result);
      if (result == MPI_IDENT) found = std::move(comms);
    }
  }
  PMPI_Group_free(&ranks);
  return found;
}

std::uint64_t SharedComms::next_number() {
  static std::atomic<std::uint32_t> made{0};
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return (static_cast<std::uint64_t>(rank) << 32U) | ++made;
}

std::shared_ptr<SharedComms> SharedComms::make(MPI_Comm comm, const Id128& job,
                                               std::uint64_t number) {
  std::shared_ptr<SharedComms> comms(new SharedComms(job, number));
  // Without its ranks it is not found again, and each file has its own.
  if (PMPI_Comm_group(comm, &comms->ranks_) != MPI_SUCCESS) comms->ranks_ = MPI_GROUP_NULL;
  int size = 0;
  int world = 0;
  PMPI_Comm_size(comm, &size);
  PMPI_Comm_size(MPI_COMM_WORLD, &world);
  std::shared_ptr<SharedComms> before;  // goes when the lock is given back
  const std::lock_guard lock(registry().mutex);
  registry().all.push_back(comms);
  if (size == 1) before = std::exchange(registry().of_one, comms);
  if (size == world) before = std::exchange(registry().of_world, comms);
  return comms;
}

SharedComms::~SharedComms() {
  if (ranks_ != MPI_GROUP_NULL) PMPI_Group_free(&ranks_);
}

std::shared_ptr<CommSet> SharedComms::take() {
  const std::lock_guard lock(mutex_);
  for (auto& [number, entry] : sets_) {
    if (!std::exchange(entry.taken, true)) return entry.set;
  }
  return nullptr;
}

void SharedComms::give_back(const CommSet& set) {
  const std::lock_guard lock(mutex_);
  sets_.at(set.number()).taken = false;
}

void SharedComms::add(std::shared_ptr<CommSet> set) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t number = set->number();
  sets_.emplace(number, Entry{std::move(set), true});
}

FileComms::FileComms(MPI_Comm comm, NodeIndex my_node, std::shared_ptr<SharedComms> shared)
    : comm_(comm), my_node_(my_node), shared_(std::move(shared)) {}

FileComms::Offer FileComms::offer() {
  taken_ = shared_->take();
  is_shared_ = taken_ != nullptr;
  int rank = 0;
  PMPI_Comm_rank(comm_, &rank);
  const std::uint64_t number = taken_ ? taken_->number() : 0;
  return {number, ~number, rank == 0 ? SharedComms::next_number() : 0};
}

Status FileComms::take(const Offer& all) {
  const bool same = all[0] == ~all[1];
  if (same && all[0] != 0) return Status::ok();
  give_back();
  auto made = CommSet::make(comm_, my_node_, all[2]);
  DEDUP_TRY(agree(comm_, made.status()));
  taken_ = std::move(*made);
  // Where a rank had none left there were too few for the threads that dump at once; else one more
  // would only be in the way of the next.
  is_shared_ = all[1] == ~std::uint64_t{0};
  if (is_shared_) shared_->add(taken_);
  return Status::ok();
}

Status FileComms::take_together() {
  return take(all_max(comm_, offer()));
}

void FileComms::give_back() {
  if (is_shared_) shared_->give_back(*taken_);
  is_shared_ = false;
  taken_.reset();
}

}  // namespace dedup::engine
