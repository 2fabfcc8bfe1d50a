// A rank's log as a commit sees it: which bytes of it are still that rank's newest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace dedup::plan {

// `runs` in the order of writing, later ones overwriting earlier ones; Run has file_offset, length,
// log_offset. Returns what is left of them, sorted by file offset, disjoint, runs that continue
// each other both in the file and in the log joined. O(n log n).
template <typename Run>
std::vector<Run> newest_runs(const std::vector<Run>& runs) {
  std::map<std::uint64_t, Run> kept;  // by file offset, disjoint
  for (const Run& run : runs) {
    if (run.length == 0) continue;
    const std::uint64_t begin = run.file_offset;
    const std::uint64_t end = begin + run.length;
    auto it = kept.lower_bound(begin);
    if (it != kept.begin()) {
      auto before = std::prev(it);
      Run& old = before->second;
      const std::uint64_t old_end = old.file_offset + old.length;
      if (old_end > begin) {
        if (old_end > end) {
          Run tail = old;
          tail.file_offset = end;
          tail.length = old_end - end;
          tail.log_offset += end - old.file_offset;
          it = kept.emplace(end, tail).first;
        }
        old.length = begin - old.file_offset;
      }
    }
    while (it != kept.end() && it->first < end) {
      const Run old = it->second;
      const std::uint64_t old_end = old.file_offset + old.length;
      it = kept.erase(it);
      if (old_end > end) {
        Run tail = old;
        tail.file_offset = end;
        tail.length = old_end - end;
        tail.log_offset += end - old.file_offset;
        kept.emplace_hint(it, end, tail);
        break;
      }
    }
    kept.emplace(begin, run);
  }
  std::vector<Run> out;
  for (const auto& [offset, run] : kept) {
    if (!out.empty()) {
      Run& last = out.back();
      if (last.file_offset + last.length == offset &&
          last.log_offset + last.length == run.log_offset) {
        last.length += run.length;
        continue;
      }
    }
    out.push_back(run);
  }
  return out;
}

}  // namespace dedup::plan
