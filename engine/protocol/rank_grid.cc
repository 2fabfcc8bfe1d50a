#include "engine/protocol/rank_grid.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace dedup::engine {
namespace {

Status impossible() {
  return {Code::kInternal, "ranks handed on letters that cannot be"};
}

}  // namespace

RankGrid::RankGrid(const Ranks& ranks, std::vector<int> members)
    : ranks_(ranks), members_(std::move(members)) {
  self_ = cell_of(static_cast<std::uint32_t>(ranks.rank()));
  while (columns_ * columns_ < members_.size()) ++columns_;
  rows_ = (members_.size() + columns_ - 1) / columns_;
}

RankGrid::Cell RankGrid::cell_of(std::uint32_t rank) const {
  const int wanted = static_cast<int>(rank);
  const auto at = std::lower_bound(members_.begin(), members_.end(), wanted);
  if (at == members_.end() || *at != wanted) return members_.size();
  return static_cast<Cell>(at - members_.begin());
}

std::vector<int> RankGrid::group_of(std::vector<std::size_t> positions) const {
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  std::vector<int> group;
  for (const std::size_t position : positions) group.push_back(members_[position]);
  return group;
}

std::vector<int> RankGrid::row(std::size_t row) const {
  std::vector<std::size_t> positions;
  for (std::size_t c = 0; c < columns_; ++c) positions.push_back(player(row * columns_ + c));
  return group_of(std::move(positions));
}

std::vector<int> RankGrid::column(std::size_t column) const {
  std::vector<std::size_t> positions;
  for (std::size_t r = 0; r < rows_; ++r) positions.push_back(player(r * columns_ + column));
  return group_of(std::move(positions));
}

template <typename Next>
Status RankGrid::exchange(const std::vector<int>& group, std::vector<Post> posts, const Next& next,
                          std::vector<Post>& came) const {
  std::map<int, std::vector<Post>> sorted;
  for (Post& post : posts) sorted[next(post)].push_back(std::move(post));
  std::vector<Letter> to;
  for (const int rank : group) {
    Letter& letter = to.emplace_back();
    const auto mine = sorted.find(rank);
    if (mine != sorted.end()) letter.said = encoded(mine->second);
  }
  std::vector<Letter> from;
  ranks_.exchange_letters(group, to, from, [] {});
  Status status;
  for (const Letter& letter : from) {
    if (letter.said.empty()) continue;
    auto told = decoded<std::vector<Post>>(letter.said);
    if (!told) {
      status = impossible();
      continue;
    }
    std::move(told->begin(), told->end(), std::back_inserter(came));
  }
  return status;
}

Result<std::vector<Post>> RankGrid::deliver(std::vector<Post> posts) const {
  const std::size_t my_row = self_ / columns_;
  const std::size_t my_column = self_ % columns_;
  Status status;
  const auto is_unknown = [&](const Post& post) { return cell_of(post.to) == members_.size(); };
  const auto drop_unknown = [&](std::vector<Post>& some) {
    if (std::erase_if(some, is_unknown) != 0) status = impossible();
  };
  drop_unknown(posts);
  std::vector<Post> handed_on;
  const auto along_row = [&](std::size_t row, std::vector<Post> mine) {
    const auto next = [&](const Post& post) {
      return members_[player(row * columns_ + cell_of(post.to) % columns_)];
    };
    const Status exchanged = exchange(this->row(row), std::move(mine), next, handed_on);
    if (status.is_ok()) status = exchanged;
  };
  along_row(my_row, std::move(posts));
  const Cell below = self_ + columns_;
  const bool plays_below = below >= members_.size() && below / columns_ < rows_;
  if (plays_below) along_row(my_row + 1, {});
  drop_unknown(handed_on);
  std::vector<Post> arrived;
  const Status exchanged = exchange(
      column(my_column), std::move(handed_on),
      [](const Post& post) { return static_cast<int>(post.to); }, arrived);
  if (status.is_ok()) status = exchanged;
  DEDUP_TRY(status);
  return arrived;
}

std::vector<int> speakers(const Ranks& ranks, NodeIndex nodes) {
  std::vector<int> out;
  for (NodeIndex n = 0; n < nodes; ++n) out.push_back(ranks.speaker_for(n));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace dedup::engine
