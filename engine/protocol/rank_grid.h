// Letters between many ranks, handed on in a grid: from the sender along its row to who is in the
// receiver's column, and from there along the column. So each of n ranks sends and receives some
// 2 √n messages, whoever has something for whom.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/codec.h"
#include "base/fields.h"
#include "base/ranks.h"
#include "base/status.h"

namespace dedup::engine {

// A letter on its way.
struct Post {
  std::uint32_t from = 0;  // ranks
  std::uint32_t to = 0;
  Bytes what;
};

class RankGrid {
 public:
  // `members`: ascending; the same on each of them. `ranks` must outlive it.
  RankGrid(const Ranks& ranks, std::vector<int> members);

  bool is_member() const { return self_ < members_.size(); }
  // Of things that are dealt to the members in turn: whether the `i`-th is this rank's.
  bool takes(std::size_t i) const { return i % members_.size() == self_; }
  // Collective over the members. Returns what came to this rank, its own letters to itself among
  // them, in no order. Whatever happens here, the others' letters arrive.
  Result<std::vector<Post>> deliver(std::vector<Post> posts) const;

 private:
  using Cell = std::size_t;  // row by row; a member's is its position
  // The last row may have fewer cells than the others. Those missing are played by the row before.
  std::size_t player(Cell cell) const { return cell < members_.size() ? cell : cell - columns_; }
  Cell cell_of(std::uint32_t rank) const;
  std::vector<int> row(std::size_t row) const;
  std::vector<int> column(std::size_t column) const;
  // The members at these positions.
  std::vector<int> group_of(std::vector<std::size_t> positions) const;
  // Collective over `group`: the posts for each of its ranks, as `next` says; what came.
  template <typename Next>
  Status exchange(const std::vector<int>& group, std::vector<Post> posts, const Next& next,
                  std::vector<Post>& came) const;

  const Ranks& ranks_;
  std::vector<int> members_;
  std::size_t self_;  // this rank's position; members_.size(): it is none
  std::size_t columns_ = 1;
  std::size_t rows_ = 1;
};

// Letters from one rank, to each of these what it has for it.
template <typename Item>
std::vector<Post> posts_of(int from, const std::map<int, std::vector<Item>>& by_rank) {
  std::vector<Post> posts;
  for (const auto& [to, items] : by_rank) {
    posts.push_back(
        {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), encoded(items)});
  }
  return posts;
}

// The ranks that speak for some node, ascending.
std::vector<int> speakers(const Ranks& ranks, NodeIndex nodes);

}  // namespace dedup::engine
