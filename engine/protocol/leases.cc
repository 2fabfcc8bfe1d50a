#include "engine/protocol/leases.h"

#include <algorithm>

#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

Status recall(const JobFile& file, std::span<const service::Lease> leases) {
  for (const service::Lease& lease : leases) {
    DEDUP_ASSIGN(service::RecallReply reply,
                 file.client().call(lease.node, service::RecallLease{file.identity(), lease}));
    if (reply.here) DEDUP_TRY(return_lease(file, lease, std::move(reply.pieces), true));
  }
  return Status::ok();
}

Status return_lease(const JobFile& file, const service::Lease& lease, std::vector<LogPiece> pieces,
                    bool recalled) {
  std::uint64_t end = 0;
  for (const LogPiece& piece : pieces) {
    end = std::max(end, lease.block * kBlockSpan + piece.end());
  }
  const NodeIndex home = file.block_home(lease.block);
  auto size =
      file.client().start(file.home, service::ExtendSize{file.identity(), end, lease, true});
  auto content = file.client().start(
      home, service::ReturnLease{file.identity(), lease, std::move(pieces), recalled});
  const Status extended = size.wait().status();
  const Status returned = content.wait().status();
  return extended.is_ok() ? returned : extended;
}

Result<std::uint64_t> file_size(const JobFile& file) {
  const service::GetSize request{file.identity()};
  DEDUP_ASSIGN(service::SizeReply reply, file.client().call(file.home, request));
  if (reply.leases.empty()) return reply.size;
  DEDUP_TRY(recall(file, reply.leases));
  // What others write from here on is not asked for.
  DEDUP_ASSIGN(reply, file.client().call(file.home, request));
  return reply.size;
}

}  // namespace dedup::engine
