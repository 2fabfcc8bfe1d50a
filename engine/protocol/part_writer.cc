#include "engine/protocol/part_writer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/byte_ranges.h"
#include "engine/protocol/reader.h"
#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

constexpr std::uint64_t kCopiedAtOnce = std::uint64_t{8} << 20;
constexpr std::uint64_t kNotedAtOnce = std::uint64_t{64} << 20;

}  // namespace

PartWriter::PartWriter(JobFile& file, const CopyTarget& target, std::uint32_t writer,
                       std::vector<ByteRange> ranges)
    : file_(file),
      is_new_(target.is_new),
      attempt_(file.view()->base()),
      part_{writer, target.id, {}, {}},
      ranges_(std::move(ranges)) {}

std::uint64_t PartWriter::bytes_left() const {
  return bytes_of(std::span(ranges_).subspan(next_));
}

Result<std::uint64_t> PartWriter::step() {
  if (!copy_) {
    DEDUP_ASSIGN(copy_, store::Replacement::join_copy(file_.view()->info.path, part_.copy));
  }
  ByteRange& range = ranges_[next_];
  buffer_.resize(std::min(kCopiedAtOnce, range.length));
  DEDUP_TRY(read_range(file_, range.offset, buffer_));
  // Who wrote to this copy before may have left anything where there are to be zeros.
  DEDUP_TRY(is_new_ ? copy_->write_sparse(range.offset, buffer_)
                    : copy_->write(range.offset, buffer_));
  const ByteRange written{range.offset, buffer_.size()};
  append(unnoted_, written);
  range = {written.end(), range.length - written.length};
  if (range.length == 0) ++next_;
  return written.length;
}

bool PartWriter::is_to_be_noted() const {
  return is_done() || bytes_of(unnoted_) >= kNotedAtOnce;
}

Status PartWriter::flush() {
  if (!copy_) return Status::ok();
  const Status status = copy_->flush();
  if (status.is_ok()) return status;
  // The kernel may have dropped it, and says so once.
  unnoted_.insert(unnoted_.end(), ranges_.begin() + static_cast<std::ptrdiff_t>(next_),
                  ranges_.end());
  ranges_ = joined(std::exchange(unnoted_, {}));
  next_ = 0;
  is_new_ = false;
  return status;
}

void PartWriter::note() {
  part_.ranges.insert(part_.ranges.end(), unnoted_.begin(), unnoted_.end());
  part_.ranges = joined(std::move(part_.ranges));
  part_.trouble.clear();
  unnoted_.clear();
  put();
}

void PartWriter::note_trouble(std::string trouble) {
  part_.trouble = std::move(trouble);
  put();
}

void PartWriter::close() {
  copy_.reset();
  Bytes().swap(buffer_);
}

void PartWriter::put() const {
  const service::PutWritten request{file_.identity(), attempt_, part_};
  (void)file_.client().call(file_.client().self(), request);
}

}  // namespace dedup::engine
