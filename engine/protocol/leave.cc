#include "engine/protocol/leave.h"

#include "base/fields.h"
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
  Status status;
  for (NodeIndex n = 0; n < file.nodes(); ++n) {
    if (!file.ranks().speaks_for(n)) continue;
    const Status one = file.client().call(n, request).status();
    if (status.is_ok()) status = one;
  }
  return status;
}

bool is_to_be_written_back(const service::CloseBeginReply& reply, Leaving leaving) {
  return leaving == Leaving::kWithWriteBack && !reply.deleted &&
         reply.info.write_back != service::WriteBack::kNone &&
         reply.info.real_path == service::FileInfo::RealPath::kPlaceholder;
}

// Collective. Nobody in the job has the file open any more, and nobody can open it meanwhile.
Status end_of_file(JobFile& file, const service::CloseBeginReply& reply, Leaving leaving) {
  Status status;
  bool drop = reply.deleted;
  if (is_to_be_written_back(reply, leaving)) {
    // The same on all ranks, and so is what becomes of it.
    status = file.set_view(reply.info);
    if (status.is_ok()) {
      const Result<bool> written = write_back(file);
      status = written.status();
      // Who writes in the background has it open.
      if (status.is_ok() && !*written) return status;
    }
    // The plain file is the file now.
    drop = status.is_ok();
  }
  const Status released = file.ranks().agree(release_nodes(file, drop, reply.info));
  status = file.ranks().agree(status);
  return status.is_ok() ? released : status;
}

}  // namespace

Status leave(JobFile& file, Leaving leaving) {
  service::CloseBeginReply reply;
  Status status;
  if (file.rank() == 0) {
    if (file.delete_on_close) status = delete_name(file);
    auto begun = file.client().call(file.home, service::CloseBegin{file.identity(), file.handle});
    if (begun.is_ok()) {
      reply = std::move(*begun);
    } else {
      status = begun.status();
    }
  }
  status = file.ranks().agree(status);
  Bytes bytes = encoded(reply);
  file.ranks().broadcast(bytes, 0);
  reply = decoded<service::CloseBeginReply>(bytes).value_or(service::CloseBeginReply{});
  if (reply.last) {
    const Status ended = end_of_file(file, reply, leaving);
    if (status.is_ok()) status = ended;
  }
  file.local.reset();
  Status end;
  if (file.rank() == 0) {
    end = file.client().call(file.home, service::CloseEnd{file.identity()}).status();
  }
  // All have let go of the file when one returns.
  end = file.ranks().agree(end);
  return status.is_ok() ? end : status;
}

}  // namespace dedup::engine
