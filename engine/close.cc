#include <cstdio>

#include "engine/agreement.h"
#include "engine/commit.h"
#include "engine/failpoint.h"
#include "engine/open_close.h"
#include "engine/write_back.h"
#include "plan/choose.h"

namespace dedup::engine {
namespace {

// The last handle of the job: every node lets go of the file.
Status release_nodes(const OpenFile& file, bool drop, const service::FileInfo& info) {
  service::Detach request{info.identity, drop, {}};
  for (std::size_t i = file.job->nodes(); drop && i < info.stores.size(); ++i) {
    request.stores_left.push_back(info.stores[i].uuid);
  }
  Status status;
  for (NodeIndex n = 0; n < file.job->nodes(); ++n) {
    if (file.topology.speaker_for(n) != file.rank()) continue;
    const Status one = file.client().call(n, request).status();
    if (status.is_ok()) status = one;
  }
  return status;
}

// Collective. Nobody in the job has the file open any more, and nobody can open it meanwhile.
Status end_of_file(OpenFile& file, const service::CloseBeginReply& reply) {
  Status status;
  bool drop = reply.deleted;
  if (!reply.deleted && reply.info.write_back &&
      reply.info.real_path == service::FileInfo::RealPath::kPlaceholder) {
    status = write_back(file);
    // The plain file is the file now.
    drop = status.is_ok();
  }
  const Status released = agree(file.comm(), release_nodes(file, drop, reply.info));
  status = agree(file.comm(), status);
  return status.is_ok() ? released : status;
}

std::string standing_generation(const OpenFile& file) {
  const auto view = file.view();
  if (!view->committed) return "no generation of it was committed";
  return plan::describe(view->record) + " stands";
}

}  // namespace

Status leave(OpenFile& file) {
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
  status = agree(file.comm(), status);
  Encoder encoder;
  reply.encode(encoder);
  Bytes bytes = encoder.take();
  broadcast(file.comm(), 0, bytes);
  Decoder decoder(bytes);
  reply = service::CloseBeginReply::decode(decoder);
  if (reply.last) {
    const Status ended = end_of_file(file, reply);
    if (status.is_ok()) status = ended;
  }
  file.local.reset();
  Status end;
  if (file.rank() == 0) {
    end = file.client().call(file.home, service::CloseEnd{file.identity()}).status();
  }
  end = agree(file.comm(), end);
  return status.is_ok() ? end : status;
}

Status close_file(std::unique_ptr<OpenFile> file) {
  Status status;
  if (file->writable && !file->delete_on_close) {
    status = commit(*file);
    if (!status.is_ok() && file->rank() == 0) {
      std::fprintf(stderr, "dedup: error: %s: close could not commit: %s; %s\n", file->path.c_str(),
                   status.message().c_str(), standing_generation(*file).c_str());
    }
  }
  failpoint("close.committed");
  const Status left = leave(*file);
  if (status.is_ok() && !left.is_ok() && file->rank() == 0) {
    std::fprintf(stderr, "dedup: error: %s\n", left.message().c_str());
  }
  return status.is_ok() ? left : status;
}

}  // namespace dedup::engine
