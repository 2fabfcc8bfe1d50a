#include "engine/protocol/leave.h"

#include "base/fields.h"
#include "engine/protocol/at_my_nodes.h"
#include "engine/protocol/cached_file.h"
#include "engine/protocol/delete_file.h"
#include "engine/protocol/write_back.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

// The last handle of the job: every node lets go of the file.
Status release_nodes(const JobFile& file, bool drop, const service::FileInfo& info) {
  service::Detach request{info.identity, drop, {}};
  for (std::size_t i = file.nodes(); drop && i < info.stores.size(); ++i) {
    request.stores_left.push_back(info.stores[i].uuid);
  }
  return at_my_nodes(file, request);
}

bool is_to_be_written_back(const service::CloseBeginReply& reply, Leaving leaving) {
  return leaving == Leaving::kWithWriteBack && !reply.deleted &&
         reply.info.write_back != service::WriteBack::kNone &&
         reply.info.real_path == service::FileInfo::RealPath::kPlaceholder;
}

// How a handle is closed.
struct Ending {
  Leaving leaving = Leaving::kWithWriteBack;
  WholeCopy copy;  // that is known; none with a zero id
};

// Collective. Nobody in the job has the file open any more, and nobody can open it meanwhile.
Status end_of_file(JobFile& file, const service::CloseBeginReply& reply, const Ending& ending) {
  Status status;
  bool drop = reply.deleted;
  if (is_to_be_written_back(reply, ending.leaving)) {
    // The same on all ranks, and so is what becomes of it.
    status = file.set_view(reply.info);
    if (status.is_ok()) {
      const auto written = write_back(file, ending.copy, !reply.was_stopped);
      status = written.status();
      // Who writes in the background has it open.
      if (status.is_ok() && !written->is_done) return status;
      // The plain file is the file now.
      drop = status.is_ok() && !(written->plain && note_cached(file, *written->plain));
    }
  }
  file.local.reset();
  const Status released = release_nodes(file, drop, reply.info);
  return file.ranks().agree(status.is_ok() ? released : status);
}

// Of the home's answer to rank 0, what the others need.
enum class Answer : std::uint64_t {
  kOthersHaveIt,  // no more than that
  kLast,          // nor here
  kLastWithMore   // the answer itself
};

Answer answer_of(const service::CloseBeginReply& reply, const Ending& ending) {
  if (!reply.last) return Answer::kOthersHaveIt;
  const bool more = reply.deleted || is_to_be_written_back(reply, ending.leaving);
  return more ? Answer::kLastWithMore : Answer::kLast;
}

Status leave_by(JobFile& file, const Ending& ending) {
  service::CloseBeginReply reply;
  Status status;
  bool has_turn = false;  // on rank 0
  if (file.rank() == 0) {
    if (file.delete_on_close) status = delete_name(file);
    auto begun = file.client().call(file.home, service::CloseBegin{file.identity(), file.handle});
    has_turn = begun.is_ok();
    if (has_turn) {
      reply = std::move(*begun);
    } else {
      status = begun.status();
    }
  }
  // Nobody lets go of the file before all are here. What fails on rank 0 is told at the end.
  auto answer = static_cast<std::uint64_t>(answer_of(reply, ending));
  (void)file.ranks().agree_max(Status::ok(), answer);
  if (answer != static_cast<std::uint64_t>(Answer::kOthersHaveIt)) {
    reply.last = true;
    reply.info.identity = file.identity();
    if (answer == static_cast<std::uint64_t>(Answer::kLastWithMore)) {
      (void)file.ranks().share(Status::ok(), reply);
    }
    const Status ended = end_of_file(file, reply, ending);
    if (status.is_ok()) status = ended;
  }
  file.local.reset();
  Status end;
  if (has_turn) {
    end = file.client().call(file.home, service::CloseEnd{file.identity()}).status();
  }
  // Else all have agreed on it.
  return file.ranks().share(status.is_ok() ? end : status);
}

}  // namespace

Status leave(JobFile& file, Leaving leaving) {
  return leave_by(file, {leaving, {}});
}

Status leave_with_copy(JobFile& file, const Id128& copy, const Id128& attempt) {
  return leave_by(file, {Leaving::kWithWriteBack, {copy, attempt}});
}

}  // namespace dedup::engine
