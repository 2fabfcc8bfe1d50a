#include "tools/dedupctl/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/dedupctl/progress_line.h"

namespace dedup::ctl {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(const Session& session, std::string label, std::uint64_t total)
    : label_(std::move(label)),
      total_(total),
      shown_(session.is_root() && !session.options.quiet &&
             (session.options.progress || isatty(STDERR_FILENO) != 0)) {}

Progress::~Progress() {
  hide();
}

void Progress::hide() {
  if (shown_) std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

void Progress::count(std::uint64_t done) {
  done_ = std::min(done_ + done, total_);
}

void Progress::add(std::uint64_t done) {
  count(done);
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || total_ == 0 || now - last_ < kEvery) return;
  last_ = now;
  const std::chrono::duration<double> passed = now - begun_;
  const std::string line = progress_line(label_, done_, total_, passed.count());
  std::fputs(("\r" + line + "\033[K").c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace dedup::ctl
