#include "plan/grid_count.h"

#include <numeric>
#include <utility>

#include "base/varint.h"

namespace dedup::plan {
namespace {

void put_frame(Encoder& out, std::span<const std::byte> frame) {
  put_varint(out, frame.size());
  out.put_raw(frame.data(), frame.size());
}

}  // namespace

GridCount::GridCount(const Grid& grid, const std::vector<NodeIndex>& nodes, std::uint32_t place,
                     unsigned copies, NodeIndex job_nodes)
    : grid_(grid),
      nodes_(nodes),
      place_(place),
      copies_(copies),
      job_nodes_(job_nodes),
      row_(grid.row(grid.row_of(place))) {
  if (is_home() && grid.rows() > 1) column_ = grid.column(grid.column_of(place));
}

std::vector<Bytes> GridCount::ask(const Questions& mine) {
  std::vector<Bytes> to(row_.size());
  BitWriter frame;
  std::size_t from = 0;
  for (std::uint32_t c = 0; c < grid_.columns(); ++c) {
    Encoder message;
    message.make_room((mine.size() * 16 + grid_.homes()) / grid_.columns());
    for (std::uint32_t r = 0; r < grid_.rows(); ++r) {
      const std::uint64_t begin = grid_.begin(c, r);
      const std::uint64_t end = grid_.begin(c, r + 1);
      const bool is_last = c + 1 == grid_.columns() && r + 1 == grid_.rows();
      std::size_t behind = from;
      while (behind < mine.size() && (is_last || mine.name(behind).high < end)) ++behind;
      asked_.push_back(static_cast<std::uint32_t>(behind - from));
      if (behind > from) mine.encode(from, behind - from, begin, end, frame);
      put_frame(message, behind > from ? frame.finish() : Frame());
      from = behind;
    }
    to[c] = message.take();
  }
  return to;
}

void GridCount::take_row(std::vector<Bytes> from) {
  if (!is_home()) return;
  if (!column_.empty()) {
    passing_ = std::move(from);
    return;
  }
  const std::uint32_t column = grid_.column_of(place_);
  Gathering gathering(grid_.begin(column), grid_.begin(column + 1));
  for (std::size_t i = 0; i < row_.size(); ++i) {
    const Frame frame = frames(from[i], 1).front();
    is_sound_ = gathering.add(frame, nodes_[row_[i]]) && is_sound_;
  }
  together_ = std::move(gathering).finish();
}

std::vector<Bytes> GridCount::ask_homes() {
  if (column_.empty()) return {};
  return sorted_frames(std::exchange(passing_, {}), grid_.rows());
}

void GridCount::take_column(std::vector<Bytes> from) {
  if (column_.empty()) return;
  const std::uint32_t column = grid_.column_of(place_);
  const std::uint32_t mine = grid_.row_of(place_);
  Gathering gathering(grid_.begin(column, mine), grid_.begin(column, mine + 1));
  for (std::uint32_t r = 0; r < grid_.rows(); ++r) {
    const std::vector<std::uint32_t> row = grid_.row(r);
    const std::vector<Frame> all = frames(from[r], row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      is_sound_ = gathering.add(all[i], nodes_[row[i]]) && is_sound_;
    }
  }
  together_ = std::move(gathering).finish();
}

void GridCount::count(const SettledChunks& settled) {
  count_.emplace(asked(), copies_, settled);
}

std::vector<Bytes> GridCount::answer(const Weights* weights) {
  answers_ = count_->answers(weights);
  count_.reset();
  std::vector<Bytes> to;
  BitWriter frame;
  std::size_t part = 0;
  for (std::uint32_t r = 0; r < column_.size(); ++r) {
    Encoder message;
    const std::size_t end = part + grid_.row(r).size();
    while (part < end) put_answers(message, part++, frame);
    to.push_back(message.take());
  }
  return to;
}

void GridCount::take_answers(std::vector<Bytes> from) {
  passing_ = std::move(from);
}

std::vector<Bytes> GridCount::answer_row() {
  if (!is_home()) return std::vector<Bytes>(row_.size());
  if (!column_.empty()) return sorted_frames(std::exchange(passing_, {}), row_.size());
  std::vector<Bytes> to;
  BitWriter frame;
  for (std::size_t i = 0; i < row_.size(); ++i) {
    Encoder message;
    put_answers(message, i, frame);
    to.push_back(message.take());
  }
  return to;
}

Answers GridCount::take(const std::vector<Bytes>& from) {
  Answers answers;
  const std::size_t all = std::accumulate(asked_.begin(), asked_.end(), std::size_t{0});
  answers.reserve(all, all * copies_);
  auto count = asked_.begin();
  for (std::uint32_t c = 0; c < grid_.columns(); ++c) {
    for (const Frame& frame : frames(from[c], grid_.rows())) {
      is_sound_ = answers.decode(frame, *count++, copies_, job_nodes_) && is_sound_;
    }
  }
  return answers;
}

// Of a message; empty ones if it has others.
std::vector<GridCount::Frame> GridCount::frames(const Bytes& message, std::size_t count) {
  std::vector<Frame> all;
  all.reserve(count);
  Frame left(message);
  while (all.size() < count) {
    Decoder in(left);
    const std::uint32_t size = get_varint_below(in, left.size());
    if (!in.ok() || size > in.left()) break;
    all.push_back(left.subspan(in.position(), size));
    left = left.subspan(in.position() + size);
  }
  if (all.size() == count && left.empty()) return all;
  is_sound_ = false;
  return std::vector<Frame>(count);
}

// The i-th of each message, in order, for the i-th of `count` nodes.
std::vector<Bytes> GridCount::sorted_frames(const std::vector<Bytes>& from, std::size_t count) {
  std::vector<Encoder> to(count);
  std::size_t size = 0;
  for (const Bytes& message : from) size += message.size();
  for (Encoder& out : to) out.make_room(size / count * 5 / 4);
  for (const Bytes& message : from) {
    const std::vector<Frame> all = frames(message, count);
    for (std::size_t i = 0; i < count; ++i) put_frame(to[i], all[i]);
  }
  std::vector<Bytes> out;
  for (Encoder& one : to) out.push_back(one.take());
  return out;
}

// To one of the nodes that asked.
void GridCount::put_answers(Encoder& message, std::size_t part, BitWriter& frame) const {
  answers_.encode(together_.places_of(part), copies_, job_nodes_, frame);
  put_frame(message, frame.finish());
}

}  // namespace dedup::plan
