#include "engine/set_size.h"

#include <map>

#include "engine/mpi/agreement.h"
#include "engine/mpi/checked_message.h"
#include "engine/protocol/leases.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"

namespace dedup::engine {
namespace {

// All block homes forget what is beyond `size`. This rank's part of it.
Status truncate_blocks(const FileHandle& file, std::uint64_t size) {
  std::map<NodeIndex, service::Truncate> requests;
  for (NodeIndex n = 0; n < file.job->nodes(); ++n) {
    if (file.topology.speaker_for(n) == file.rank()) requests[n] = {file.identity(), size};
  }
  return send_past_leases(file, requests);
}

}  // namespace

Status set_size(FileHandle& file, std::uint64_t size) {
  file.changed = true;
  std::uint64_t before = 0;
  Status status;
  if (file.rank() == 0) {
    const auto reply = file_size(file);
    status = reply.status();
    if (status.is_ok()) before = *reply;
  }
  DEDUP_TRY(agree(file.comm(), status));
  broadcast_value(file.comm(), 0, before);
  for (;;) {
    if (size < before) DEDUP_TRY(agree(file.comm(), truncate_blocks(file, size)));
    // Who got a lease meanwhile relies on the size as it was.
    std::uint64_t leased = 0;
    if (file.rank() == 0) {
      const auto reply = file.client().call(file.home, service::SetSize{file.identity(), size});
      status = reply.status();
      if (status.is_ok() && !reply->leases.empty()) {
        leased = 1;
        status = recall(file, reply->leases);
      }
    }
    DEDUP_TRY(agree(file.comm(), status));
    if (all_max(file.comm(), leased) == 0) return Status::ok();
  }
}

}  // namespace dedup::engine
