#include "plan/grid.h"

#include <algorithm>
#include <limits>

namespace dedup::plan {

Grid::Grid(std::uint32_t nodes, std::uint32_t direct) : nodes_(nodes), columns_(nodes) {
  share_ = std::numeric_limits<std::uint64_t>::max() / std::max(nodes, 1u);
  if (nodes <= std::max(direct, 1u)) return;
  while ((rows_ + 1) * (rows_ + 1) <= nodes) ++rows_;
  columns_ = nodes / rows_;
  share_ = std::numeric_limits<std::uint64_t>::max() / homes();
}

std::vector<std::uint32_t> Grid::row(std::uint32_t row) const {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t column = 0; column < columns_; ++column) {
    nodes.push_back(row * columns_ + column);
  }
  if (homes() + row < nodes_) nodes.push_back(homes() + row);
  return nodes;
}

std::vector<std::uint32_t> Grid::column(std::uint32_t column) const {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t row = 0; row < rows_; ++row) nodes.push_back(row * columns_ + column);
  return nodes;
}

std::uint64_t Grid::begin(std::uint32_t column, std::uint32_t row) const {
  const std::uint64_t home = std::uint64_t{column} * rows_ + row;
  // Behind the last one: nothing is above it but one number, which is the last one's, too.
  if (home >= homes()) return std::numeric_limits<std::uint64_t>::max();
  // Not the exact quotient of 2^64: all homes have the same, and the last one what is left.
  return share_ * home;
}

}  // namespace dedup::plan
