// A run of an index as a file: checksummed per page of entries. The newest one names the others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/index.h"

namespace dedup::store {

// Another run of the same index.
struct OlderRun {
  Id128 attempt;               // which wrote it
  std::uint64_t checksum = 0;  // of its tables, by which it is known again
};

class IndexFileWriter final : public IndexWriter {
 public:
  // `older`: the other runs of the index, oldest first; `dead`: see IndexBase. kFileExists if there
  // is a file.
  static Result<std::unique_ptr<IndexFileWriter>> create(const std::string& path,
                                                         const Id128& identity,
                                                         const Id128& attempt,
                                                         std::vector<OlderRun> older = {},
                                                         std::uint64_t dead = 0);
  ~IndexFileWriter() override;
  std::uint32_t number(const plan::Placement& placement) override;
  Status add(const IndexEntry& entry) override;
  Status finish(bool flush) override;

 private:
  struct Private;
  explicit IndexFileWriter(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// Each page's first fingerprint stands in memory, pages are read and checked when used, and up to
// 4 MiB of them kept. (Read, not mapped: a bad sector is an error here, and would be a SIGBUS
// there.)
class IndexFileReader final : public IndexReader {
 public:
  // That file alone, whatever other runs it names.
  static Result<std::unique_ptr<IndexFileReader>> open(const std::string& path);
  ~IndexFileReader() override;

  // Oldest first.
  const std::vector<OlderRun>& older() const;
  std::uint64_t checksum() const;  // of its tables

  std::uint64_t size() const override;
  const Id128& attempt() const override;
  std::vector<Run> runs() const override;
  std::uint64_t dead_bytes() const override;
  Result<IndexEntry> find(const Fingerprint& fingerprint) const override;
  Result<std::uint64_t> position(const Fingerprint& fingerprint) const override;
  Result<IndexEntry> at(std::uint64_t i) const override;
  Result<IndexEntry> find_content(const Fingerprint& content) const override;
  const plan::Placement& placement(std::uint32_t number) const override;
  const std::vector<SegmentUse>& segments() const override;

 private:
  struct Private;
  explicit IndexFileReader(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

}  // namespace dedup::store
