#include "test/hooks/failpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

int process_rank = 0;

struct Target {
  std::string step;
  std::atomic<long> passes_left{0};

  Target() {
    const char* text = std::getenv("DEDUP_TEST_KILL");
    if (text == nullptr) return;
    const std::string all(text);
    const auto first = all.find(':');
    const auto second = all.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) return;
    if (std::atoi(all.c_str() + second + 1) != process_rank) return;
    passes_left = std::atol(all.c_str() + first + 1);
    step = all.substr(0, first);
  }
};

// Whether it has let go of its sockets and locks.
bool is_gone(pid_t process) {
  std::string state;
  std::string word;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  while (status >> word) {
    if (word == "State:") status >> state;
  }
  return state.empty() || state == "Z";
}

void kill_others(const char* path) {
  std::vector<pid_t> processes;
  std::ifstream file(path);
  for (pid_t process = 0; file >> process;) processes.push_back(process);
  for (const pid_t process : processes) kill(process, SIGKILL);
  for (const pid_t process : processes) {
    while (!is_gone(process)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void die() {
  if (const char* others = std::getenv("DEDUP_TEST_KILL_PIDS")) {
    kill_others(others);
    return;
  }
  const char* fifo = std::getenv("DEDUP_TEST_KILL_HOST");
  if (fifo != nullptr) {
    const int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "\n", 1) == 1) std::raise(SIGSTOP);
  }
  std::raise(SIGKILL);
}

}  // namespace

void set_failpoint_rank(int rank) {
  process_rank = rank;
}

void failpoint(const char* step) {
  static Target& target = *new Target;  // steps are taken while the process ends
  if (target.step.empty() || target.step != step) return;
  if (--target.passes_left == 0) die();
}

}  // namespace dedup::engine
