// A bar on the terminal for what takes long, with its rate and what is left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tools/dedupctl/session.h"

namespace dedup::ctl {

// On rank 0, on standard error if that is a terminal or bars are asked for; the line is gone when
// the object is.
class Progress {
 public:
  Progress(const Session& session, std::string label, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::uint64_t done);
  void count(std::uint64_t done);  // the same, and shows nothing
  // Until the next add(): something else is to be written to the terminal.
  void hide();

 private:
  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool shown_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace dedup::ctl
