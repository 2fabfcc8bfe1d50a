// What stores look like now, and what has changed since they were looked at before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dedup::ctl {

// Of a node; bytes.
struct NodeState {
  std::string node;
  bool is_here = true;  // false: files are on it, and its store is not to be had
  std::uint64_t files = 0;
  std::uint64_t open = 0;    // of these, being written
  std::uint64_t behind = 0;  // of which it lacks the newest generation
  std::uint64_t stored = 0;
  std::uint64_t dead = 0;         // of these, what nothing refers to
  std::uint64_t uncommitted = 0;  // in logs of jobs
  std::uint64_t free = 0;
};

// All of them.
struct Watched {
  std::vector<NodeState> nodes;
  std::uint64_t files = 0;
  std::uint64_t open = 0;           // being written
  std::uint64_t to_heal = 0;        // that are on fewer nodes than they should be, or damaged
  std::uint64_t to_write_back = 0;  // bytes of those whose write-back was begun (dedup_flush)
};

// What a job's report has told since the first look.
struct Moved {
  std::uint64_t commits = 0;
  double written = 0;
  double stored = 0;
  double sent = 0;
};

// Bytes a second of each of `now`'s nodes since `before`; none of those that were not there.
std::vector<std::optional<double>> rates(const Watched& before, const Watched& now, double seconds);

// "12.0 MiB/s", "-3.0 KiB/s".
std::string rate_text(double bytes_a_second);

// A table, and what is to be known of all nodes together. `changes`: of rates(); empty: there was
// no look before.
std::string text_of(const Watched& now, const std::vector<std::optional<double>>& changes,
                    const std::optional<Moved>& moved);

}  // namespace dedup::ctl
