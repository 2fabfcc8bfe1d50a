// Writing: independent writes go to this rank's log, large collective ones through the dump.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/dump/dump.h"
#include "engine/file_handle.h"
#include "plan/access.h"
#include "plan/block.h"

namespace dedup::engine {

// Writes all of `access` to this rank's log and makes it known to the block homes: when this
// returns, every rank that reads sees it. Local: talks to services only.
Status write_independent(FileHandle& file, const plan::Access& access);

// Collective: dumps what all ranks write, or, if that is little, logs it until that is worth a dump
// or the next commit. Synchronises at its end, so that the call has one place in the order of
// writes on all ranks.
Status write_collective(FileHandle& file, const plan::Access& access);

// Tells the block homes what a dump made of this rank's data, about one payload at a time. `below`:
// see service::WriteChunks. Local.
Status publish(FileHandle& file, const DumpResult& result, bool below);

// The recipe's form of a dumped piece.
plan::FilePiece file_piece(const DumpedPiece& piece);

// To be called before dumps, on all ranks with the same base: if another handle has committed since
// this one's last dump, makes the dumper begin anew. Local.
void begin_dumps_on(FileHandle& file, const Id128& base);

}  // namespace dedup::engine
