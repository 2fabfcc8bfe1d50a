// Runs sequences and says which go wrong.
//
//   simulate FIRST [LAST] [BREAKAGE]   these seeds; the first that goes wrong is shrunk and printed
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "test/simulation/run.h"

namespace dedup::simulation {
namespace {

void print(const Counts& c) {
  std::printf(
      "%llu sequences, %llu steps: %llu opened (%llu had to be, %llu saw an unacknowledged "
      "generation), %llu refused, %llu committed, %llu commits failed, %llu jobs died\n",
      static_cast<unsigned long long>(c.sequences), static_cast<unsigned long long>(c.steps),
      static_cast<unsigned long long>(c.opened), static_cast<unsigned long long>(c.required),
      static_cast<unsigned long long>(c.later), static_cast<unsigned long long>(c.refused),
      static_cast<unsigned long long>(c.committed), static_cast<unsigned long long>(c.failed),
      static_cast<unsigned long long>(c.died));
}

int report(std::uint64_t seed, const std::vector<Step>& steps, const Violation& violation,
           Breakage breakage) {
  std::printf("seed %llu, step %zu: %s\n", static_cast<unsigned long long>(seed),
              violation.step + 1, violation.what.c_str());
  const std::vector<Step> small = shrink(steps, breakage);
  std::printf("shrunk to %zu of %zu steps:\n", small.size(), steps.size());
  std::fflush(stdout);
  Counts ignored;
  const auto again = run_sequence(small, breakage, ignored, true);
  std::printf("%s\n", again ? again->what.c_str() : "it does not go wrong a second time");
  return 1;
}

int run(std::uint64_t first, std::uint64_t last, Breakage breakage) {
  Counts counts;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::vector<Step> steps = draw_sequence(seed);
    if (const auto violation = run_sequence(steps, breakage, counts)) {
      print(counts);
      return report(seed, steps, *violation, breakage);
    }
  }
  print(counts);
  return 0;
}

}  // namespace
}  // namespace dedup::simulation

int main(int argc, char** argv) {
  using namespace dedup::simulation;
  if (argc < 2 || argc > 4) {
    std::fprintf(stderr, "usage: simulate FIRST [LAST] [BREAKAGE]\n");
    return 2;
  }
  const auto first = std::strtoull(argv[1], nullptr, 10);
  const auto last = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : first;
  const auto breakage = static_cast<Breakage>(argc > 3 ? std::atoi(argv[3]) : 0);
  return run(first, last, breakage);
}
