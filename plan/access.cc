#include "plan/access.h"

#include <algorithm>
#include <limits>

namespace dedup::plan {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Whether piece `piece` holds all of the type's data and repetitions leave no gap.
bool is_gapless(const FlatType& type, std::size_t piece) {
  return type.lengths[piece] == type.size && type.extent == type.size;
}

}  // namespace

FragmentWalk::Position::Position(const FlatType& type, std::int64_t start) : type_(&type) {
  if (type.size <= 0) return;
  repetition_ = start / type.size;
  within_ = start % type.size;
  while (within_ >= type.lengths[piece_]) within_ -= type.lengths[piece_++];
}

std::int64_t FragmentWalk::Position::offset() const {
  return repetition_ * type_->extent + type_->offsets[piece_] + within_;
}

std::uint64_t FragmentWalk::Position::left() const {
  if (type_->size <= 0) return 0;
  // A gapless type has one endless piece: its repetitions are not walked one by one.
  if (is_gapless(*type_, piece_)) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::uint64_t>(type_->lengths[piece_] - within_);
}

void FragmentWalk::Position::advance(std::uint64_t bytes) {
  within_ += static_cast<std::int64_t>(bytes);
  if (is_gapless(*type_, piece_)) {
    repetition_ += within_ / type_->size;
    within_ %= type_->size;
  } else if (within_ == type_->lengths[piece_]) {
    within_ = 0;
    ++piece_;
    skip_empty();
  }
}

void FragmentWalk::Position::skip_empty() {
  while (true) {
    if (piece_ == type_->lengths.size()) {
      piece_ = 0;
      ++repetition_;
    }
    if (type_->lengths[piece_] > 0) return;
    ++piece_;
  }
}

FragmentWalk::FragmentWalk(const Access& access)
    : access_(&access),
      file_(access.filetype, access.start),
      memory_(access.memtype, 0),
      left_(access.bytes) {}

Fragment FragmentWalk::next() {
  return next(kNoLimit);
}

Fragment FragmentWalk::next(std::uint64_t limit) {
  Fragment out = pending_;
  pending_ = {};
  while (out.length < limit) {
    const Fragment more = step(limit - out.length);
    if (more.length == 0) return out;
    if (out.length == 0) {
      out = more;
    } else if (out.file_offset + out.length == more.file_offset &&
               out.memory + out.length == more.memory) {
      out.length += more.length;
    } else {
      pending_ = more;
      return out;
    }
  }
  if (out.length > limit) {
    pending_ = {out.file_offset + limit, out.memory + limit, out.length - limit};
    out.length = limit;
  }
  return out;
}

// Bytes up to the end of the current piece in the file or in memory.
Fragment FragmentWalk::step(std::uint64_t limit) {
  const std::uint64_t length = std::min({file_.left(), memory_.left(), left_, limit});
  if (length == 0) return {};
  Fragment out;
  out.file_offset = static_cast<std::uint64_t>(access_->displacement + file_.offset());
  out.memory = access_->memory + memory_.offset();
  out.length = length;
  left_ -= length;
  file_.advance(length);
  memory_.advance(length);
  return out;
}

}  // namespace dedup::plan
