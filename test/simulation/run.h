// Carries out a sequence and checks after each step.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "test/simulation/sequence.h"

namespace dedup::simulation {

// How much was really tried.
struct Counts {
  std::uint64_t sequences = 0;
  std::uint64_t steps = 0;
  std::uint64_t opened = 0;    // and read
  std::uint64_t refused = 0;   // opening or reading was an error
  std::uint64_t required = 0;  // of `opened`, those that had to succeed
  std::uint64_t committed = 0;
  std::uint64_t failed = 0;  // commits
  std::uint64_t died = 0;
  std::uint64_t upkeep = 0;  // runs of dedupctl
  std::uint64_t before = 0;  // kept generations that were read beside the newest
  std::uint64_t later = 0;   // a generation was read that nobody had been told of
  auto operator<=>(const Counts&) const = default;
};

// What is wrong, and in which step; nothing if all is well.
struct Violation {
  std::size_t step = 0;
  std::string what;
};
std::optional<Violation> run_sequence(const std::vector<Step>& steps, Breakage breakage,
                                      Counts& counts, bool verbose = false);

// As few of the steps as still go wrong.
std::vector<Step> shrink(std::vector<Step> steps, Breakage breakage);

}  // namespace dedup::simulation
