// main() of a program with options.
#pragma once

#include <CLI/CLI.hpp>

#include "bench/programs/common.h"

namespace dedup::bench {

// `declare(app, options)` says which there are, `run(options)` does it and returns the exit code.
// Rank 0 alone says what is wrong with them.
template <typename Options, typename Declare, typename Run>
int run_with_options(int& argc, char**& argv, int& rank, int& ranks, const char* description,
                     const Declare& declare, const Run& run) {
  return run_program(argc, argv, rank, ranks, [&] {
    Options options;
    CLI::App app(description);
    declare(app, options);
    try {
      app.parse(argc, argv);
      return run(options);
    } catch (const CLI::ParseError& error) {
      return rank == 0 ? app.exit(error) : error.get_exit_code();
    }
  });
}

}  // namespace dedup::bench
