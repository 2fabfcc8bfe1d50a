// Tables for people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dedup::ctl {

// Columns as wide as they must be; the first is aligned left, those in `right` right. JSON has
// names as they are, tables as terminals may show them.
class Table {
 public:
  Table(std::vector<std::string> head, std::vector<std::size_t> right)
      : rows_{std::move(head)}, right_(std::move(right)) {}
  void add(std::vector<std::string> row);  // printable() of each
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> right_;
};

}  // namespace dedup::ctl
