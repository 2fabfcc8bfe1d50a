#include "plan/stretches.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "plan/cut.h"

namespace dedup::plan {

std::uint64_t count_stretches(const Access& access, std::uint64_t most) {
  FragmentCursor cursor(access);
  std::uint64_t bytes = 0;
  std::uint64_t stretches = 0;
  for (std::uint64_t i = 0; i < most && cursor.current().length != 0; ++i) {
    bytes += cursor.current().length;
    if (!cursor.goes_on()) ++stretches;
    cursor.consume(cursor.current().length);
  }
  if (bytes == 0) return 0;
  const double share = static_cast<double>(access.bytes) / static_cast<double>(bytes);
  return std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(static_cast<double>(stretches) * share));
}

StretchRounds::StretchRounds(const Access& access, std::uint32_t chunk_size, const Limits& limits)
    : cursor_(access), chunk_size_(chunk_size), limits_(limits) {
  limits_.staging = std::max<std::uint64_t>(chunk_size, std::min(limits.staging, access.bytes));
  staging_.reset(new (std::nothrow) std::byte[limits_.staging]);
}

bool StretchRounds::next(std::vector<MemoryRun>& runs) {
  runs.clear();
  staged_ = 0;
  chunks_ = 0;
  // Each turn begins at the start of a chunk.
  while (cursor_.current().length != 0) {
    if (runs.size() >= limits_.runs || chunks_ >= limits_.chunks) return true;
    const Fragment f = cursor_.current();
    std::uint64_t in_place = f.length;
    if (cursor_.goes_on()) in_place -= in_place % chunk_size_;
    in_place = std::min(in_place, (limits_.chunks - chunks_) * chunk_size_);
    if (in_place != 0) {
      add(runs, {f.file_offset, f.memory, in_place});
      cursor_.consume(in_place);
      continue;
    }
    if (staged_ + chunk_size_ > limits_.staging) return true;
    add(runs, gather());
  }
  return false;
}

void StretchRounds::add(std::vector<MemoryRun>& runs, const MemoryRun& run) {
  chunks_ += chunk_count(run.length, chunk_size_);
  if (!runs.empty()) {
    MemoryRun& last = runs.back();
    // Only the last part of a stretch is no multiple of the chunk size, and nothing follows that.
    if (last.file_offset + last.length == run.file_offset && last.data + last.length == run.data &&
        last.length % chunk_size_ == 0) {
      last.length += run.length;
      return;
    }
  }
  runs.push_back(run);
}

// A chunk of the stretch, or what is left of it, put together from fragments.
MemoryRun StretchRounds::gather() {
  std::byte* const start = staging_.get() + staged_;
  MemoryRun run{cursor_.current().file_offset, start, 0};
  while (run.length < chunk_size_ && cursor_.current().length != 0 &&
         cursor_.current().file_offset == run.file_offset + run.length) {
    const std::uint64_t bytes = std::min(cursor_.current().length, chunk_size_ - run.length);
    std::memcpy(start + run.length, cursor_.current().memory, bytes);
    run.length += bytes;
    cursor_.consume(bytes);
  }
  staged_ += run.length;
  return run;
}

}  // namespace dedup::plan
