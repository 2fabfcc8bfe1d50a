#include "base/warn.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <utility>

#include "base/text.h"

namespace dedup {
namespace {

struct Speaker {
  std::mutex mutex;
  std::string program = "dedup";
  std::string who;
  std::function<void(std::string_view)> listener;
};

// Never destroyed: files are closed while the process ends.
Speaker& speaker() {
  static auto& one = *new Speaker;
  return one;
}

// In one call, so that lines of several processes do not mix. There is nobody to tell of a failure.
void write_to_stderr(std::string_view line) {
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno != EINTR) return;
    line.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
}

void say(const char* kind, std::string_view text) {
  Speaker& s = speaker();
  const std::lock_guard lock(s.mutex);
  std::string line = s.program + ": " + kind + ": ";
  if (!s.who.empty()) line += s.who + ": ";
  line += text;
  std::replace(line.begin(), line.end(), '\n', ' ');  // of a path
  line = printable(line);
  if (s.listener) return s.listener(line);
  write_to_stderr(line + '\n');
}

}  // namespace

void set_program(const std::string& name) {
  const std::lock_guard lock(speaker().mutex);
  speaker().program = name;
}

void set_speaker(const std::string& who) {
  const std::lock_guard lock(speaker().mutex);
  speaker().who = who;
}

void warn(std::string_view text) {
  say("warning", text);
}

void inform(std::string_view text) {
  say("info", text);
}

void say_error(std::string_view text) {
  say("error", text);
}

void wait_until_read(int fd) {
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISFIFO(about.st_mode)) return;
  constexpr timespec kMillisecond{0, 1'000'000};
  for (int i = 0; i < 1000; ++i) {
    int unread = 0;
    if (ioctl(fd, FIONREAD, &unread) != 0 || unread == 0) return;
    (void)nanosleep(&kMillisecond, nullptr);
  }
}

void hear_warnings(std::function<void(std::string_view)> listener) {
  const std::lock_guard lock(speaker().mutex);
  speaker().listener = std::move(listener);
}

}  // namespace dedup
