// A generation's bytes, brought from the stores that have them to the ranks that write them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "tools/dedupctl/generation.h"

namespace dedup::ctl {

struct Moved {
  std::uint64_t lost_bytes = 0;  // that no store here has: they are zeros
};

// Collective. Goes through the file in ascending order, a batch of blocks at a time; each is put
// together on one of the ranks in `writers`, which has write() called with the block's first byte
// and its bytes up to the block's or the file's end. Blocks that were never written are left out.
// Every chunk is checked against its checksum and its name; a bad copy is replaced by another
// store's. Bytes that are lost are an error, unless `incomplete`. `done` is called on all ranks
// with the bytes of each batch. Memory: a batch, and what goes to others of it.
Result<Moved> move_content(
    Generation& generation, const std::vector<int>& writers, bool incomplete,
    const std::function<Status(std::uint64_t offset, std::span<const std::byte>)>& write,
    const std::function<void(std::uint64_t bytes)>& done);

// Of one block.
struct ReadBlock {
  Bytes content;  // up to the block's or the file's end; what is lost is zeros; on rank 0
  std::uint64_t lost_bytes = 0;
};

// Collective, with the same block on all ranks, as walk() has it. Reads it as move_content() does.
ReadBlock read_block(Generation& generation, const NumberedBlock& block);

// Of a generation that this process has opened alone (OneRank). The whole chunks that these pieces
// of the block are parts of, read as move_content() does; without bytes what no store has. Memory:
// all of them.
std::vector<Bytes> read_chunks(Generation& generation, const NumberedBlock& block,
                               std::span<const Piece> pieces);

}  // namespace dedup::ctl
