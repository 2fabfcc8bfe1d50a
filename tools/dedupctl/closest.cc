#include "tools/dedupctl/closest.h"

#include <algorithm>
#include <vector>

namespace dedup::ctl {
namespace {

constexpr std::size_t kLettersForEachMistake = 3;

// Mistakes that make `b` of `a`. Rows: how many make the first j letters of `b` of the first i of
// `a`.
std::size_t mistakes(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const std::size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + other});
      const bool are_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (are_swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string closest(const std::string& word, std::span<const std::string> known) {
  std::string best;
  std::size_t fewest = (word.size() + kLettersForEachMistake - 1) / kLettersForEachMistake + 1;
  for (const std::string& one : known) {
    const std::size_t count = mistakes(word, one);
    if (count >= fewest) continue;
    fewest = count;
    best = one;
  }
  return best;
}

}  // namespace dedup::ctl
