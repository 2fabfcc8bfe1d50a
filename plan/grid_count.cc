#include "plan/grid_count.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/varint.h"

namespace dedup::plan {
namespace {

// What comes of so many bytes: at least as many names as that, as a rule (a name takes about 14).
constexpr std::size_t kNameBytes = 13;

std::size_t size_of(const std::vector<Bytes>& messages) {
  std::size_t size = 0;
  for (const Bytes& message : messages) size += message.size();
  return size;
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
  asked_.reserve(grid_.homes());
  BitWriter message;
  std::size_t from = 0;
  for (std::uint32_t c = 0; c < grid_.columns(); ++c) {
    message.reserve((mine.size() * 16 + grid_.homes() * 2) / grid_.columns());
    for (std::uint32_t r = 0; r < grid_.rows(); ++r) {
      const std::uint64_t begin = grid_.begin(c, r);
      const std::uint64_t end = grid_.begin(c, r + 1);
      const bool is_last = c + 1 == grid_.columns() && r + 1 == grid_.rows();
      std::size_t behind = from;
      while (behind < mine.size() && (is_last || mine.name(behind).high < end)) ++behind;
      asked_.push_back(static_cast<std::uint32_t>(behind - from));
      message.begin_frame();
      if (behind > from) mine.encode(from, behind - from, begin, end, message);
      message.end_frame();
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
  gathering.reserve(size_of(from) / kNameBytes);
  for (std::size_t i = 0; i < row_.size(); ++i) {
    const Frame frame = frames(from[i], 1).front();
    is_sound_ = gathering.add(frame.content, nodes_[row_[i]]) && is_sound_;
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
  gathering.reserve(size_of(from) / kNameBytes);
  for (std::uint32_t r = 0; r < grid_.rows(); ++r) {
    const std::vector<std::uint32_t> row = grid_.row(r);
    const std::vector<Frame> all = frames(from[r], row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      is_sound_ = gathering.add(all[i].content, nodes_[row[i]]) && is_sound_;
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
  BitWriter message;
  std::size_t part = 0;
  for (std::uint32_t r = 0; r < column_.size(); ++r) {
    const std::size_t end = part + grid_.row(r).size();
    message.reserve((end - part) * 32);
    while (part < end) put_answers(message, part++);
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
  BitWriter message;
  for (std::size_t i = 0; i < row_.size(); ++i) {
    put_answers(message, i);
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
      is_sound_ = answers.decode(frame.content, *count++, copies_, job_nodes_) && is_sound_;
    }
  }
  return answers;
}

// Of a message; empty ones if it has others.
std::vector<GridCount::Frame> GridCount::frames(const Bytes& message, std::size_t count) {
  std::vector<Frame> all;
  all.reserve(count);
  std::span<const std::byte> left(message);
  while (all.size() < count) {
    Decoder in(left);
    const std::uint32_t size = get_varint_below(in, left.size());
    if (!in.ok() || size > in.left()) break;
    const std::size_t end = in.position() + size;
    all.push_back({left.first(end), left.subspan(in.position(), size)});
    left = left.subspan(end);
  }
  if (all.size() == count && left.empty()) return all;
  is_sound_ = false;
  static constexpr std::byte kEmpty{0};
  return std::vector<Frame>(count, {{&kEmpty, 1}, {}});
}

// The i-th of each message, in order, for the i-th of `count` nodes.
std::vector<Bytes> GridCount::sorted_frames(const std::vector<Bytes>& from, std::size_t count) {
  std::vector<Frame> all;
  all.reserve(from.size() * count);
  std::vector<std::size_t> sizes(count);
  for (const Bytes& message : from) {
    for (const Frame& frame : frames(message, count)) {
      sizes[all.size() % count] += frame.whole.size();
      all.push_back(frame);
    }
  }
  std::vector<Bytes> out;
  for (std::size_t i = 0; i < count; ++i) {
    Bytes& message = out.emplace_back(sizes[i]);
    std::byte* at = message.data();
    for (std::size_t f = i; f < all.size(); f += count) {
      at = std::copy(all[f].whole.begin(), all[f].whole.end(), at);
    }
  }
  return out;
}

// To one of the nodes that asked.
void GridCount::put_answers(BitWriter& message, std::size_t part) const {
  message.begin_frame();
  answers_.encode(together_.places_of(part), copies_, job_nodes_, message);
  message.end_frame();
}

}  // namespace dedup::plan
