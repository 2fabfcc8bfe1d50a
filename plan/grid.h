// Who asks whom where every node has something for every other: directly if they are few, else
// through a grid, in two steps of about √nodes messages each.
//
// Names are divided among homes by their first 64 bits, in equal ranges. A question goes along the
// asker's row to the column that has the home, and along the column to it; the answer comes back
// the same way. Homes are numbered down the columns, so that what goes to a column, and in it to a
// home, is a range of names. Nodes that do not fill a row are guests, at most one in a row: they
// ask its members, and are no homes. Few nodes are one row.
#pragma once

#include <cstdint>
#include <vector>

namespace dedup::plan {

class Grid {
 public:
  // Up to so many nodes ask each other directly: a node has few messages, and each
  // byte travels once.
  static constexpr std::uint32_t kDirect = 16;

  explicit Grid(std::uint32_t nodes, std::uint32_t direct = kDirect);

  std::uint32_t rows() const { return rows_; }
  std::uint32_t columns() const { return columns_; }
  std::uint32_t homes() const { return rows_ * columns_; }
  bool is_home(std::uint32_t node) const { return node < homes(); }
  std::uint32_t row_of(std::uint32_t node) const {
    return is_home(node) ? node / columns_ : node - homes();
  }
  // Of a home.
  std::uint32_t column_of(std::uint32_t node) const { return node % columns_; }

  // The nodes of a row, one in each column, and then its guest, if there is one.
  std::vector<std::uint32_t> row(std::uint32_t row) const;
  // One in each row.
  std::vector<std::uint32_t> column(std::uint32_t column) const;

  // Where the names begin, by their first 64 bits, whose home is in that column, and there in that
  // row; up to where the next ones begin. `row` may be rows(): those of the next column.
  std::uint64_t begin(std::uint32_t column, std::uint32_t row = 0) const;

 private:
  std::uint32_t nodes_;
  std::uint32_t rows_ = 1;
  std::uint32_t columns_;
  std::uint64_t share_;  // of names, of each home
};

}  // namespace dedup::plan
