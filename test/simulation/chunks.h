// How data gets to the stores here: chunks are put by requests, and named by their SHA-256.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "engine/protocol/job_file.h"
#include "service/messages/block_home.h"
#include "service/messages/homes.h"
#include "service/messages/store_node.h"
#include "store/format.h"

namespace dedup::simulation {

inline Fingerprint name_of(std::span<const std::byte> bytes) {
  Fingerprint out;
  const store::Digest digest = store::format::sha256(bytes);
  std::copy(digest.begin(), digest.end(), out.bytes.begin());
  return out;
}

// Writes `bytes` at `offset`, as one chunk that is on `nodes` of the job. On how many of them it
// was not yet.
inline Result<unsigned> write_chunk(const engine::JobFile& file, std::uint64_t offset,
                                    const Bytes& bytes, const NodeSet& nodes) {
  const Fingerprint name = name_of(bytes);
  const auto placement = plan::Placement::copies_on(nodes);
  const service::PutChunks put{
      file.identity(), {placement}, {service::PutChunk::sealed(name, 0, bytes)}};
  unsigned stored = 0;
  for (const NodeIndex node : placement.nodes()) {
    DEDUP_ASSIGN(const service::PutReply reply, file.client().call(node, put));
    stored += reply.stored;
  }
  const std::uint64_t number = offset / kBlockSpan;
  const auto begin = static_cast<std::uint32_t>(offset % kBlockSpan);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const Block block{{{begin, length, 0, length, 0, name}}, {placement}};
  const NodeIndex home = file.block_home(number);
  const service::WriteChunks write{file.identity(), {{number, block}}, false};
  DEDUP_TRY(file.client().call(home, write).status());
  DEDUP_TRY(engine::extend(file, offset + length));
  return stored;
}

}  // namespace dedup::simulation
