#include "engine/set_size.h"

#include <vector>

#include "engine/agreement.h"

namespace dedup::engine {
namespace {

// All block homes forget what is beyond `size`.
Status truncate_blocks(const OpenFile& file, std::uint64_t size) {
  std::vector<service::Client::Pending<service::Truncate>> pending;
  for (NodeIndex n = 0; n < file.job->nodes(); ++n) {
    if (file.topology.speaker_for(n) == file.rank()) {
      pending.push_back(file.client().start(n, service::Truncate{file.identity(), size}));
    }
  }
  Status status;
  for (auto& p : pending) {
    const auto reply = p.wait();
    if (!reply.is_ok() && status.is_ok()) status = reply.status();
  }
  return status;
}

}  // namespace

Status set_size(OpenFile& file, std::uint64_t size) {
  file.changed = true;
  std::uint64_t before = 0;
  Status status;
  if (file.rank() == 0) {
    const auto reply = file.client().call(file.home, service::GetSize{file.identity()});
    status = reply.status();
    if (status.is_ok()) before = reply->size;
  }
  DEDUP_TRY(agree(file.comm(), status));
  PMPI_Bcast(&before, 1, MPI_UINT64_T, 0, file.comm());
  if (size < before) DEDUP_TRY(agree(file.comm(), truncate_blocks(file, size)));
  if (file.rank() == 0) {
    status = file.client().call(file.home, service::SetSize{file.identity(), size}).status();
  }
  return agree(file.comm(), status);
}

}  // namespace dedup::engine
