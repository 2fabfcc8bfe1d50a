#include "engine/mpi/shared_comms.h"

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "base/warn.h"

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
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<SharedComms>> all;
};

// Never destroyed: files are closed while the process ends.
Registry& registry() {
  static Registry& the_registry = *new Registry;
  return the_registry;
}

bool threads_may_call_at_once() {
  int level = MPI_THREAD_MULTIPLE;
  return PMPI_Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
}

Status failed(const std::string& call) {
  return {Code::kInternal, call +
                               " failed while the file was being opened: if very many files are "
                               "open, MPI may have no more communicators"};
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

std::shared_ptr<SharedComms> SharedComms::find(MPI_Comm comm) {
  MPI_Group ranks;
  if (threads_may_call_at_once() || PMPI_Comm_group(comm, &ranks) != MPI_SUCCESS) return nullptr;
  std::shared_ptr<SharedComms> found;
  {
    const std::lock_guard lock(registry().mutex);
    auto& all = registry().all;
    std::erase_if(all, [](const auto& one) { return one.expired(); });
    for (const auto& one : all) {
      std::shared_ptr<SharedComms> comms = one.lock();
      int result = MPI_UNEQUAL;
      if (comms) PMPI_Group_compare(ranks, comms->ranks_, &result);
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

Result<std::shared_ptr<SharedComms>> SharedComms::make(MPI_Comm comm, NodeIndex my_node,
                                                       std::uint64_t number) {
  std::shared_ptr<SharedComms> comms(new SharedComms(number));
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (PMPI_Comm_group(comm, &comms->ranks_) != MPI_SUCCESS) return failed("MPI_Comm_group");
  if (PMPI_Comm_split(comm, my_node, rank, &comms->node_) != MPI_SUCCESS) {
    return failed("MPI_Comm_split");
  }
  int node_rank = 0;
  PMPI_Comm_rank(comms->node_, &node_rank);
  const int color = node_rank == 0 ? 0 : MPI_UNDEFINED;
  if (PMPI_Comm_split(comm, color, my_node, &comms->leaders_) != MPI_SUCCESS) {
    return failed("MPI_Comm_split");
  }
  end_with_others(comms->node_);
  if (comms->leaders_ != MPI_COMM_NULL) end_with_others(comms->leaders_);
  const std::lock_guard lock(registry().mutex);
  registry().all.push_back(comms);
  return comms;
}

MPI_Comm SharedComms::any_source(MPI_Comm comm) {
  // An error ends the job, as every one on `comm`, and the duplicate takes that over.
  if (any_source_ == MPI_COMM_NULL) PMPI_Comm_dup(comm, &any_source_);
  return any_source_;
}

SharedComms::~SharedComms() {
  if (any_source_ != MPI_COMM_NULL) PMPI_Comm_free(&any_source_);
  if (leaders_ != MPI_COMM_NULL) PMPI_Comm_free(&leaders_);
  if (node_ != MPI_COMM_NULL) PMPI_Comm_free(&node_);
  if (ranks_ != MPI_GROUP_NULL) PMPI_Group_free(&ranks_);
}

}  // namespace dedup::engine
