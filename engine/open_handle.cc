#include "engine/open_handle.h"

#include "base/fields.h"
#include "base/warn.h"
#include "base/xxh3.h"
#include "engine/chunks/timer.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/checked_message.h"
#include "engine/protocol/find_and_attach.h"
#include "engine/protocol/flusher.h"
#include "engine/protocol/lost_nodes.h"
#include "engine/tell.h"
#include "service/messages/file_info.h"
#include "service/messages/homes.h"

namespace dedup::engine {
namespace {

struct Asked {
  std::string path;
  std::uint32_t mode = 0;
  std::string hints;
  bool operator==(const Asked&) const = default;
};

// For the file's dumper, which goes before it does.
OwnStore own_store(const FileHandle& file) {
  LocalFile* const local = file.local.get();
  return {[local](std::uint64_t number, store::SegmentUse use) {
            return local->create_segment(number, use);
          },
          local->has_tiers(), [local](std::uint64_t number) { return local->segment_size(number); },
          [local, &file]() -> Result<OwnIndex> {
            const auto view = file.view();
            Id128 generation = file.dumper_base;
            // The donor's is this file's, too, where it shares the segments: only there do their
            // numbers mean the same.
            if (generation.is_zero() && view->donor) generation = view->donor->record.attempt;
            if (generation.is_zero()) return Status(Code::kNotFound, "nothing is committed yet");
            DEDUP_ASSIGN(auto reader, local->index(generation));
            return OwnIndex{std::move(reader), view->nodes_of(generation)};
          }};
}

// Nodes that the communicator does not reach may be lost without a trace here; but for a rank
// alone, of which a job may have many, it takes some sign.
bool may_miss_nodes(const Topology& topology) {
  const bool is_part = topology.nodes().size() < topology.job_nodes();
  return (is_part && topology.size() > 1) || topology.opening().has_doubt;
}

// All ranks must have asked for the same: path, mode, hints.
Status check_same(const FileHandle& file, const Asked& asked) {
  if (file.topology.opening().is_same) return Status::ok();
  Bytes message;
  if (file.rank() == 0) message = encoded(asked);
  broadcast(file.comm(), 0, message);
  const Asked first = decoded<Asked>(message).value_or(Asked{});
  Status mine;
  if (first != asked) {
    if (first.path != file.path) {
      mine = Status(Code::kNotSame, "rank 0 opens " + first.path + ", rank " +
                                        std::to_string(file.rank()) + " opens " + file.path);
    } else if (first.mode != asked.mode) {
      mine =
          Status(Code::kNotSame, file.path + ": ranks open the file with different access modes");
    } else {
      mine = Status(Code::kNotSame, file.path + ": ranks give different hints: " +
                                        hints::first_difference(first.hints, asked.hints));
    }
  }
  return agree(file.comm(), mine);
}

// Of stripes as many nodes may be lost as they have parities, whatever else has to give way.
Status check_losses(const FileHandle& file) {
  const std::uint32_t losses = file.hints.stripe_parities;
  if (losses < file.nodes()) return Status::ok();
  return {Code::kUnsupported,
          file.path + ": dedup_redundancy=" + hints::find("dedup_redundancy")->print(file.hints) +
              " survives the loss of " + std::to_string(losses) + " nodes, which takes " +
              std::to_string(losses + 1) + " nodes, and this job has " +
              std::to_string(file.nodes()) + ": use more, or another redundancy"};
}

// Every rank reads a plain file itself; one that is cached it need not.
Status open_plain(FileHandle& file) {
  const auto view = file.view();
  const bool has_data =
      view->info.real_path == service::FileInfo::RealPath::kPlain && view->info.plain.size > 0;
  if (!has_data || view->committed) return Status::ok();
  DEDUP_ASSIGN(file.plain, PlainFile::open(file.path, view->info.plain));
  return Status::ok();
}

struct OpenArguments {
  const std::string& path;
  int amode;
  const hints::Hints& hints;
  Purpose purpose;
};

// What a rank says of it to the others. `ready`: whether it can open a file.
Opening opening_of(const Status& ready, const Result<std::shared_ptr<Job>>& job, MPI_Comm comm,
                   const Asked& asked) {
  Opening opening;
  opening.has_failed = !ready.is_ok();
  if (opening.has_failed) return opening;
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  opening.has_doubt = (*job)->may_have_lost(ranks);
  const Bytes bytes = encoded(asked);
  opening.asked = XXH3_64bits(bytes.data(), bytes.size());
  opening.handle = Id128::random();
  return opening;
}

// Collective, of ranks of one job.
Result<std::unique_ptr<FileHandle>> open_in(const std::shared_ptr<Job>& job, Topology topology,
                                            const OpenArguments& arguments, const Asked& asked) {
  const std::string& path = arguments.path;
  auto file = std::make_unique<FileHandle>(job, std::move(topology));
  file->path = path;
  file->handle = file->topology.opening().handle;
  file->may_miss_nodes = may_miss_nodes(file->topology);
  file->flusher = &job->flusher();
  file->hints = arguments.hints;
  file->home = service::file_home(path, job->nodes());
  file->writable = (arguments.amode & MPI_MODE_RDONLY) == 0;
  file->heals = arguments.purpose == Purpose::kHealing;
  file->fetches = arguments.purpose == Purpose::kFetching;
  file->delete_on_close = (arguments.amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
  DEDUP_TRY(check_same(*file, asked));
  // A heal does what can be done with the nodes that are left.
  if (file->writable && !file->heals) DEDUP_TRY(check_losses(*file));
  bool created = false;
  const OpenMode mode{(arguments.amode & MPI_MODE_CREATE) != 0,
                      (arguments.amode & MPI_MODE_EXCL) != 0};
  const auto begin = [&]() -> Status {
    file->flusher->drop_unwanted(file->identity());
    const StorePlace place =
        hints::expand_store(file->view()->info.store_template, job->node_name(job->my_node()));
    DEDUP_ASSIGN(file->local, LocalFile::get(file->client(), file->identity(), place));
    return open_plain(*file);
  };
  const Status opened = find_and_attach(*file, mode, begin, created);
  if (!opened.is_ok()) {
    const bool named = opened.message().find(path) != std::string::npos;
    return named ? opened : opened.with_context(path);
  }
  file->changed = created;
  if (file->writable) {
    file->dumper = std::make_unique<Dumper>(file->topology, job->alone(), file->client(),
                                            own_store(*file), file->identity(),
                                            file->view()->info.key, file->handle, file->hints);
    file->dumper_base = file->view()->base();
  }
  return file;
}

// Collective, after an open that failed on all ranks: whether that is so since a node was lost, or
// since only some of these ranks have gone on without it. Then all have begun a job anew.
Result<bool> begin_anew_without_lost(Job& job, MPI_Comm comm, bool is_apart, const Status& opened) {
  if (all_max(comm, opened.code() == Code::kUnreachable ? 1 : 0) == 0) return false;
  if (!is_apart) {
    const CommRanks ranks(comm);
    const Status nodes = check_nodes(job.client(), ranks);
    if (nodes.is_ok()) return false;
    if (ranks.is_root()) warn(nodes.message() + ": going on with the nodes that open the file");
  }
  DEDUP_TRY(Job::begin_anew(comm));
  return true;
}

}  // namespace

Result<std::unique_ptr<FileHandle>> open_handle(MPI_Comm comm, const std::string& path, int amode,
                                                const Status& mine, const hints::Hints& hints,
                                                Purpose purpose) {
  const Stopwatch began;
  const Asked asked{path, static_cast<std::uint32_t>(amode), hints::agreement_text(hints)};
  // Once: who has just begun anew has no node that could be lost but with ranks of `comm`.
  for (bool is_first = true;; is_first = false) {
    const auto job = Job::get();
    const Status ready = job.is_ok() ? mine : job.status();
    auto topology = Topology::build(comm, job.is_ok() ? (*job)->place() : Place{},
                                    opening_of(ready, job, comm, asked));
    DEDUP_TRY(topology.status());
    if (topology->opening().has_failed) return agree(comm, ready);
    const bool is_apart = !topology->same_job();
    auto opened =
        is_apart ? Status(Code::kUnreachable, path + ": the communicator has ranks of several jobs")
                 : open_in(*job, std::move(*topology), {path, amode, hints, purpose}, asked);
    if (opened.is_ok()) tell_of_open(**opened, began.seconds());
    if (opened.is_ok() || !is_first) return opened;
    DEDUP_ASSIGN(const bool again, begin_anew_without_lost(**job, comm, is_apart, opened.status()));
    if (!again) return opened;
  }
}

}  // namespace dedup::engine
