#include "tools/dedupctl/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace dedup::ctl {
namespace {

// Another screen, without a cursor, on which long lines are cut off.
constexpr const char* kBegin = "\033[?1049h\033[?25l\033[?7l";
constexpr const char* kEnd = "\033[?7h\033[?25h\033[?1049l";
constexpr const char* kHome = "\033[H";
constexpr const char* kRestOfLine = "\033[K";
constexpr const char* kRestOfScreen = "\033[J";
constexpr char kControlC = 3;

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::size_t lines_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return 24;
  return size.ws_row;
}

}  // namespace

Result<std::unique_ptr<Screen>> Screen::open() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return std::unique_ptr<Screen>();
  std::unique_ptr<Screen> screen(new Screen);
  DEDUP_TRY(screen->begin());
  return screen;
}

Status Screen::begin() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, &signals_before_); error != 0) {
    return Status::from_errno(error, "cannot hold signals back");
  }
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  if (signals_ < 0) return Status::from_errno(errno, "cannot wait for signals");
  if (::tcgetattr(STDIN_FILENO, &before_) != 0) {
    return Status::from_errno(errno, "cannot ask how the terminal is set");
  }
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
    return Status::from_errno(errno, "cannot set the terminal");
  }
  is_shown_ = true;
  write_out(kBegin);
  return Status::ok();
}

Screen::~Screen() {
  if (is_shown_) {
    write_out(kEnd);
    (void)::tcsetattr(STDIN_FILENO, TCSANOW, &before_);  // there is nothing else to be done
  }
  if (signals_ >= 0) {
    (void)::close(signals_);
    (void)::pthread_sigmask(SIG_SETMASK, &signals_before_, nullptr);
  }
}

void Screen::show(const std::string& text) {
  std::string out = kHome;
  const std::size_t most = lines_of_terminal() - 1;
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size() && lines < most; ++lines) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += text.substr(at, end - at) + kRestOfLine + "\r\n";
    at = end + 1;
  }
  write_out(out + kRestOfScreen);
}

Result<bool> Screen::wait_for_end(std::chrono::milliseconds most) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + most;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    std::array<pollfd, 2> events{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{signals_, POLLIN, 0}};
    constexpr std::int64_t kLongest = 1'000'000'000;
    const int ready =
        ::poll(events.data(), events.size(), static_cast<int>(std::min(left, kLongest)));
    if (ready < 0 && errno != EINTR) return Status::from_errno(errno, "cannot wait for a key");
    if (ready <= 0) continue;
    if (events[1].revents != 0) return true;
    char key = 0;
    const ssize_t got = ::read(STDIN_FILENO, &key, 1);
    if (got < 0 && errno == EINTR) continue;
    // Also if the terminal is gone.
    if (got <= 0 || key == 'q' || key == 'Q' || key == kControlC) return true;
  }
}

}  // namespace dedup::ctl
