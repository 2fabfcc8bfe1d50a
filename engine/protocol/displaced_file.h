// What stood at a file's path before a generation's placeholder: if that was the generation before,
// as a plain file or in what is left of one, it stays beside the path as the beginning of the new
// one's copy, so that writing back (write_back.h) writes only what has changed.
//
// Whatever fails here costs writing all of it. Used by rank 0 of a commit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"
#include "engine/protocol/job_file.h"
#include "store/commit_record.h"
#include "store/real_path.h"
#include "store/written.h"

namespace dedup::engine {

class DisplacedFile {
 public:
  // `changed`: the blocks of the base that `record`'s generation does not have as they were, and
  // those that it has beyond.
  DisplacedFile(const JobFile& file, const store::CommitRecord& record,
                std::vector<std::uint64_t> changed);

  // Just before `before` is replaced. What stands there then: `before`, and nothing else about it
  // but that it may have another name.
  store::PathState keep(const store::PathState& before);
  // It was not replaced.
  void discard();
  // Once the generation is committed: remembers what of it is there already.
  void note();

 private:
  std::vector<ByteRange> unchanged() const;
  // Of a base that is cached; of one whose copy was kept before it. Its ranges, if there is one.
  std::optional<store::WrittenPart> keep_plain(const store::PathState& before) const;
  std::optional<store::WrittenPart> keep_copy() const;

  const JobFile& file_;
  const store::CommitRecord& record_;
  std::vector<std::uint64_t> changed_;
  std::optional<store::WrittenPart> part_;
};

}  // namespace dedup::engine
