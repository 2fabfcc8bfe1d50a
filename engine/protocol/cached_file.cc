#include "engine/protocol/cached_file.h"

#include "service/messages/store_node.h"

namespace dedup::engine {

bool note_cached(const JobFile& file, const store::Stamp& plain) {
  const service::PutCached request{file.identity(), {file.view()->base(), plain}};
  std::uint64_t remembered = 0;
  for (NodeIndex n = 0; n < file.nodes(); ++n) {
    if (!file.ranks().speaks_for(n)) continue;
    if (file.client().call(n, request).is_ok()) remembered = 1;
  }
  return file.ranks().largest(remembered) != 0;
}

}  // namespace dedup::engine
