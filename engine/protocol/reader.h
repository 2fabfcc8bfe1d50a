// Reading: resolve file ranges at their block homes, get the bytes from logs and chunks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/piece.h"
#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "plan/access.h"

namespace dedup::engine {

// Reads what `access` asks for, up to the file's end; returns the bytes of data read. Local: talks
// to services only. Buffers of at most about 8 MiB.
Result<std::uint64_t> read_access(JobFile& file, const plan::Access& access);

// Collective: the same, and one rank asks for the file's size for all. No rank waits for another
// beyond that; each has its own outcome.
Result<std::uint64_t> read_together(JobFile& file, const plan::Access& access);

// Bytes that follow each other, of which the caller knows that they are before the file's end: it
// is not asked for. Local.
Status read_range(JobFile& file, std::uint64_t offset, std::span<std::byte> out);

}  // namespace dedup::engine
