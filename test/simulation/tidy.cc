#include "test/simulation/tidy.h"

#include <algorithm>
#include <vector>

#include "store/chunk_check.h"

namespace dedup::simulation {

std::string untidy(const store::Store& store, const Id128& identity) {
  const std::string file = "file " + identity.hex() + " in " + store.directory() + ": ";
  const auto wrong = [&](const std::string& what) { return file + what; };
  const auto generations = store.generations(identity);
  if (!generations.is_ok()) return wrong(generations.status().message());
  if (!generations->damaged.empty()) return wrong(generations->damaged.front());
  if (generations->committed.size() > 1) {
    return wrong(std::to_string(generations->committed.size()) + " generations");
  }
  if (!generations->prepared.empty() || !generations->begun.empty()) return wrong("an attempt");
  const auto logs = store.logs(identity);
  if (!logs.is_ok() || !logs->empty()) return wrong("a log");

  // On a node that has no part of the generation a job that was killed leaves an empty directory.
  const bool has_record = !generations->committed.empty();
  const Id128 attempt = has_record ? generations->committed.front().attempt : Id128{};
  const auto index = store.index(identity, attempt);
  std::vector<std::uint64_t> needed;
  // A store that got the record afterwards has no chunks.
  if (index.is_ok()) {
    for (const auto& use : (*index)->segments()) needed.push_back(use.segment);
  } else if (index.status().code() != Code::kNotFound) {
    return wrong(index.status().message());
  }
  const auto segments = store.segments(identity);
  if (!segments.is_ok()) return wrong(segments.status().message());
  for (const store::SegmentSize& segment : *segments) {
    if (!std::binary_search(needed.begin(), needed.end(), segment.segment)) {
      return wrong("segment " + std::to_string(segment.segment) + ", which nobody needs");
    }
  }
  if (needed.size() > segments->size()) return wrong("a segment that is needed is gone");
  if (!index.is_ok()) return "";
  const auto check = store::check_chunks(store, identity, attempt);
  if (!check.is_ok()) return wrong(check.status().message());
  return check->bad.empty() ? "" : wrong(check->texts.front());
}

}  // namespace dedup::simulation
