// One writer of a write-back: its part of the file.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/job_file.h"
#include "store/replacement.h"
#include "store/written.h"

namespace dedup::engine {

// What writers write to: a file beside the path (store::Replacement::begin_copy).
struct CopyTarget {
  Id128 id;
  bool is_new = false;  // what nobody has written is zeros
};

// Reads what the file is, which is its committed generation as long as nobody writes to it. One
// thread at a time.
class PartWriter {
 public:
  // `ranges`: of the file, ascending. `file` must outlive it.
  PartWriter(JobFile& file, const CopyTarget& target, std::uint32_t writer,
             std::vector<ByteRange> ranges);

  std::uint32_t writer() const { return part_.writer; }
  std::uint64_t bytes_left() const;
  bool is_done() const { return next_ == ranges_.size(); }

  // Writes some of the part, at most 8 MiB; how much. After an error it can be called again. Not
  // once it is done.
  Result<std::uint64_t> step();
  // Whether flush() and note() are due: all is written, or much since the last time.
  bool is_to_be_noted() const;
  // Until what was written is on the target's disk. After an error it is to be written again:
  // nobody knows what became of it.
  Status flush();
  // Tells this node's store so. One that cannot remember it costs writing this again, if somebody
  // has to go on.
  void note();
  // Tells it why there is no more; empty: no reason.
  void note_trouble(std::string trouble);
  // Lets go of the copy, and of memory. Nothing else may be called then but writer().
  void close();

 private:
  void put() const;

  JobFile& file_;
  bool is_new_;  // the copy; see CopyTarget
  Id128 attempt_;
  store::WrittenPart part_;
  std::vector<ByteRange> ranges_;  // what is left is from next_ on
  std::size_t next_ = 0;
  std::vector<ByteRange> unnoted_;
  std::unique_ptr<store::Replacement> copy_;
  Bytes buffer_;
};

}  // namespace dedup::engine
