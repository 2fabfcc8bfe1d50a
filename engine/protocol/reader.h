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

// The same for bytes that follow each other.
Result<std::uint64_t> read_range(JobFile& file, std::uint64_t offset, std::span<std::byte> out);

}  // namespace dedup::engine
