#include "tools/dedupctl/progress_line.h"

#include <fmt/format.h>

#include "base/text.h"
#include "tools/dedupctl/duration.h"

namespace dedup::ctl {
namespace {

constexpr std::uint64_t kWidth = 30;
// Sooner a rate says little.
constexpr double kLeastSeconds = 0.5;

}  // namespace

std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total,
                          double seconds) {
  const std::uint64_t filled = total == 0 ? kWidth : done * kWidth / total;
  std::string line = fmt::format("{} [{}{}] {} of {}", printable(label), std::string(filled, '#'),
                                 std::string(kWidth - filled, '.'), human(done), human(total));
  if (seconds < kLeastSeconds || done == 0) return line;
  const double rate = static_cast<double>(done) / seconds;
  return line + fmt::format(", {}/s, {} left", human(static_cast<std::uint64_t>(rate)),
                            duration_text(static_cast<double>(total - done) / rate));
}

}  // namespace dedup::ctl
