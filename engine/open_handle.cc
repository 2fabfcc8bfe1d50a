#include "engine/open_handle.h"

#include "base/fields.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/checked_message.h"
#include "engine/protocol/find_and_attach.h"
#include "engine/protocol/leave.h"
#include "service/messages/file_info.h"
#include "service/messages/homes.h"

namespace dedup::engine {
namespace {

struct Asked {
  Id128 job;
  std::string path;
  std::uint32_t mode = 0;
  std::string hints;
  bool operator==(const Asked&) const = default;
};

// What rank 0 tells all.
struct Beginning {
  Id128 handle;
  Asked asked;
};

// For the file's dumper, which goes before it does.
OwnStore own_store(const FileHandle& file) {
  LocalFile* const local = file.local.get();
  return {[local](std::uint64_t number) { return local->create_segment(number); },
          [local](std::uint64_t number) { return local->segment_size(number); },
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

// All ranks must have asked for the same: path, mode, hints, and be of one job. They get the
// handle that rank 0 makes.
Status check_same(FileHandle& file, int amode) {
  if (file.rank() == 0) file.handle = Id128::random();
  const Asked asked{file.job->id(), file.path, static_cast<std::uint32_t>(amode),
                    hints::agreement_text(file.hints)};
  Bytes message;
  if (file.rank() == 0) message = encoded(Beginning{file.handle, asked});
  broadcast(file.comm(), 0, message);
  const Beginning of_rank_0 = decoded<Beginning>(message).value_or(Beginning{});
  file.handle = of_rank_0.handle;
  const Asked& first = of_rank_0.asked;
  Status mine;
  if (first != asked) {
    if (first.job != asked.job) {
      mine = Status(Code::kUnsupported, file.path +
                                            ": the communicator has ranks of another "
                                            "MPI_COMM_WORLD: open the file on ranks of one job");
    } else if (first.path != file.path) {
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

// Every rank reads a plain file itself.
Status open_plain(FileHandle& file) {
  const auto view = file.view();
  const bool has_data =
      view->info.real_path == service::FileInfo::RealPath::kPlain && view->info.plain.size > 0;
  if (!has_data) return Status::ok();
  DEDUP_ASSIGN(file.plain, PlainFile::open(file.path, view->info.plain));
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<FileHandle>> open_handle(MPI_Comm comm, const std::string& path, int amode,
                                                const Status& mine, const hints::Hints& hints,
                                                Purpose purpose) {
  auto job = Job::get();
  Status status = job.is_ok() ? mine : job.status();
  DEDUP_TRY(agree(comm, status));
  auto topology = Topology::build(comm, (*job)->nodes(), (*job)->my_node());
  DEDUP_TRY(agree(comm, topology.status()));
  auto file = std::make_unique<FileHandle>(**job, std::move(*topology));
  file->path = path;
  file->hints = hints;
  file->home = service::file_home(path, file->job->nodes());
  file->writable = (amode & MPI_MODE_RDONLY) == 0;
  file->heals = purpose == Purpose::kHealing;
  file->delete_on_close = (amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
  DEDUP_TRY(check_same(*file, amode));
  bool created = false;
  const OpenMode mode{(amode & MPI_MODE_CREATE) != 0, (amode & MPI_MODE_EXCL) != 0};
  const Status opened = find_and_attach(*file, mode, created);
  if (!opened.is_ok()) {
    const bool named = opened.message().find(path) != std::string::npos;
    return named ? opened : opened.with_context(path);
  }
  file->changed = created;
  const std::string directory = hints::expand_store(file->view()->info.store_template,
                                                    file->job->node_name(file->job->my_node()));
  auto local = LocalFile::get(file->client(), file->identity(), directory);
  if (local.is_ok()) file->local = std::move(*local);
  status = agree(comm, local.is_ok() ? open_plain(*file) : local.status());
  if (!status.is_ok()) {
    (void)leave(*file);
    return status;
  }
  if (file->writable) {
    file->dumper =
        std::make_unique<Dumper>(file->topology, file->client(), own_store(*file), file->identity(),
                                 file->view()->info.key, file->handle, file->hints);
    file->dumper_base = file->view()->base();
  }
  return file;
}

}  // namespace dedup::engine
