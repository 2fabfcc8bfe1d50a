// A plain file at the real path: read through until the first commit takes it over.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "service/messages/block_home.h"
#include "store/fs.h"
#include "store/real_path.h"

namespace dedup::engine {

// Stays the file that was opened, whatever becomes of its name. Any number of threads.
class PlainFile {
 public:
  // kIo if it is not the file that `stamp` tells of any more.
  static Result<std::unique_ptr<PlainFile>> open(const std::string& path,
                                                 const store::Stamp& stamp);

  std::uint64_t size() const { return stamp_.size; }
  const store::Stamp& stamp() const { return stamp_; }
  // Within its size. kIo if it was cut short meanwhile; other changes show when a commit is to
  // replace it.
  Status read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  PlainFile(store::fs::File file, const store::Stamp& stamp)
      : file_(std::move(file)), stamp_(stamp) {}

  store::fs::File file_;
  store::Stamp stamp_;
};

// Of a range within one block, what nobody has written since the file was opened, as far as a plain
// file of `size` bytes had any: that file's bytes are the file's.
std::vector<ByteRange> untouched(const ByteRange& range, const service::ResolvedRange& resolved,
                                 std::uint64_t size);

}  // namespace dedup::engine
