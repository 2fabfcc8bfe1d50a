// Several runs as one index.
#pragma once

#include <memory>
#include <vector>

#include "store/index.h"

namespace dedup::store {

// Asks the newest run first. A lookup costs one in each run: those who write indexes see to it that
// there are few (service/node_commit.cc).
class IndexRuns final : public IndexReader {
 public:
  static constexpr std::size_t kMost = 16;

  // Readers of one run each, oldest first; at least one and at most kMost of them.
  explicit IndexRuns(std::vector<std::unique_ptr<IndexReader>> runs);

  std::uint64_t size() const override { return first_.back(); }
  const Id128& attempt() const override { return runs_.back()->attempt(); }
  std::vector<Run> runs() const override;
  std::uint64_t dead_bytes() const override { return runs_.back()->dead_bytes(); }
  Result<IndexEntry> find(const Fingerprint& fingerprint) const override;
  Result<std::uint64_t> position(const Fingerprint& fingerprint) const override;
  Result<IndexEntry> at(std::uint64_t i) const override;
  Result<IndexEntry> find_content(const Fingerprint& content) const override;
  const plan::Placement& placement(std::uint32_t number) const override;
  const std::vector<SegmentUse>& segments() const override { return segments_; }

 private:
  // What the newest run says that knows it; the first error that is not kNotFound.
  template <typename Ask>
  auto ask_newest_first(const Ask& ask) const;
  template <typename Find>
  Result<IndexEntry> find_entry(const Find& find) const;

  std::vector<std::unique_ptr<IndexReader>> runs_;
  std::vector<std::uint64_t> first_;  // place of each run's first entry, and of what would be next
  std::vector<SegmentUse> segments_;
};

}  // namespace dedup::store
