#include "tools/dedupctl/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace dedup::ctl {

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool right = std::find(right_.begin(), right_.end(), c) != right_.end();
      line += right ? fmt::format("{:>{}}", row[c], widths[c])
                    : fmt::format("{:<{}}", row[c], widths[c]);
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace dedup::ctl
