// The whole terminal, for what shows itself again and again until somebody ends it.
#pragma once

#include <signal.h>
#include <termios.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"

namespace dedup::ctl {

// While it lives, keys come one by one and are not echoed, and what was on the terminal is put
// aside; afterwards all is as it was. SIGTERM, SIGHUP and SIGINT do what they do only then. One at
// a time.
class Screen {
 public:
  // None if standard input or output is no terminal.
  static Result<std::unique_ptr<Screen>> open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // In place of what is there; of more lines than there is room for the first ones.
  void show(const std::string& text);
  // Until then, or until somebody ends it, with q or Ctrl-C or one of the signals: true.
  Result<bool> wait_for_end(std::chrono::milliseconds most);

 private:
  Screen() = default;
  Status begin();

  termios before_{};
  sigset_t signals_before_{};
  int signals_ = -1;  // signalfd
  bool is_shown_ = false;
};

}  // namespace dedup::ctl
