#include "engine/take_over.h"

#include <algorithm>
#include <vector>

#include "engine/mpi/agreement.h"
#include "engine/protocol/plain_file.h"
#include "engine/writer.h"
#include "plan/block.h"
#include "service/messages/block_home.h"
#include "service/messages/file_info.h"

namespace dedup::engine {
namespace {

// Reads this rank's part of the plain file round by round.
class TakeOver {
 public:
  explicit TakeOver(FileHandle& file)
      : file_(file),
        blocks_((file.plain->size() + kBlockSpan - 1) / kBlockSpan),
        ranks_(static_cast<std::uint64_t>(file.topology.size())),
        at_once_(std::max<std::uint64_t>(1, file.hints.buffer / 4 / kBlockSpan)) {}

  Status run() {
    // Whole blocks, a stretch of them for each rank, the same number of rounds for all.
    const std::uint64_t each = (blocks_ + ranks_ - 1) / ranks_;
    const std::uint64_t first = static_cast<std::uint64_t>(file_.rank()) * each;
    for (std::uint64_t done = 0; done < each; done += at_once_) {
      const std::uint64_t begin = std::min(blocks_, first + done);
      const std::uint64_t end = std::min(blocks_, first + std::min(each, done + at_once_));
      DEDUP_TRY(agree(file_.comm(), load(begin, end), Waiting::kPatient));
      auto result = file_.dumper->dump(runs_);
      DEDUP_TRY(result.status());
      file_.since_commit += result->stats;
      DEDUP_TRY(agree(file_.comm(), publish(file_, *result, true), Waiting::kPatient));
    }
    return Status::ok();
  }

 private:
  Status load(std::uint64_t begin, std::uint64_t end) {
    runs_.clear();
    if (begin >= end) return Status::ok();
    DEDUP_ASSIGN(const std::vector<ByteRange> ranges, find_untouched(begin, end));
    std::uint64_t bytes = 0;
    for (const ByteRange& range : ranges) bytes += range.length;
    buffer_.resize(bytes);
    std::byte* out = buffer_.data();
    for (const ByteRange& range : ranges) {
      DEDUP_TRY(file_.plain->read(range.offset, {out, range.length}));
      // Ranges that touch are one run: it is cut into chunks from its start.
      if (!runs_.empty() && runs_.back().file_offset + runs_.back().length == range.offset) {
        runs_.back().length += range.length;
      } else {
        runs_.push_back({range.offset, out, range.length});
      }
      out += range.length;
    }
    return Status::ok();
  }

  Result<std::vector<ByteRange>> find_untouched(std::uint64_t begin, std::uint64_t end) {
    std::vector<ByteRange> out;
    for (std::uint64_t block = begin; block < end; ++block) {
      const std::uint64_t offset = block * kBlockSpan;
      const ByteRange range{offset, std::min(kBlockSpan, file_.plain->size() - offset)};
      const NodeIndex home = file_.block_home(block);
      // One at a time: of a block with millions of small pieces the reply is large.
      DEDUP_ASSIGN(const service::ResolveReply reply,
                   file_.client().call(home, service::Resolve{file_.identity(), {range}}));
      if (reply.ranges.size() != 1) {
        return Status(Code::kInternal, "a block home answered for other ranges");
      }
      const auto ranges = untouched(range, reply.ranges[0], file_.plain->size());
      out.insert(out.end(), ranges.begin(), ranges.end());
    }
    return out;
  }

  FileHandle& file_;
  std::uint64_t blocks_;
  std::uint64_t ranks_;
  std::uint64_t at_once_;  // blocks
  Bytes buffer_;
  std::vector<DumpRun> runs_;
};

}  // namespace

Status take_over(FileHandle& file) {
  const bool is_plain = file.view()->info.real_path == service::FileInfo::RealPath::kPlain;
  if (!is_plain || file.plain == nullptr) return Status::ok();
  return TakeOver(file).run();
}

}  // namespace dedup::engine
