// heat3d: heat conduction on a regular grid, with checkpoints. See README.md beside this file.
#include <hdf5.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <map>

#include "checkpoint.h"

namespace {

using namespace heat3d;

struct Options {
  std::vector<int> size = {64};  // x, y, z as the user gives them
  std::int64_t steps = 100;
  Split split = Split::slabs;
  std::string checkpoint, result;
  std::int64_t checkpoint_every = 0;
  bool restart = false;
  std::int64_t hang_at = -1;
};

void declare(CLI::App& app, Options& options) {
  app.add_option("--size", options.size, "cells along x, y and z: NX or NX,NY,NZ")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->expected(1, 3)
      ->option_text("N");
  app.add_option("--steps", options.steps, "the last step to compute")
      ->check(CLI::NonNegativeNumber);
  const std::map<std::string, Split> splits = {{"slabs", Split::slabs}, {"boxes", Split::boxes}};
  app.add_option("--split", options.split, "how to split the grid over the ranks")
      ->transform(CLI::CheckedTransformer(splits))
      ->option_text("slabs|boxes");
  auto* checkpoint = app.add_option("--checkpoint", options.checkpoint,
                                    "the checkpoint's file, for example dedup:/scratch/heat.h5");
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "write a checkpoint each time so many steps are done; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->needs(checkpoint);
  app.add_flag("--restart", options.restart, "start from the checkpoint, with its size")
      ->needs(checkpoint);
  app.add_option("--result", options.result, "write the final temperatures here, as raw doubles");
  app.add_option("--hang-at", options.hang_at, "after so many steps, wait to be killed");
}

int run(const Options& options, int rank) {
  Cells size = {options.size.back(), options.size[options.size.size() / 2], options.size.front()};
  if (options.restart) size = checkpoint_size(MPI_COMM_WORLD, options.checkpoint);
  const Grid grid(MPI_COMM_WORLD, size, options.split);
  State state(grid.count());
  Field scratch(grid.count());
  const auto say = [&](const char* what) {
    if (rank != 0) return;
    std::printf("step %" PRId64 ": %s\n", state.step, what);
    std::fflush(stdout);
  };

  if (options.restart) {
    read_checkpoint(grid, state, options.checkpoint);
    say("checkpoint read");
  } else {
    start(grid, state);
  }
  fill_ghosts(grid, state);

  while (state.step < options.steps) {
    advance(grid, state, scratch);
    if (options.checkpoint_every > 0 && state.step % options.checkpoint_every == 0) {
      write_checkpoint(grid, state, options.checkpoint);
      say("checkpoint written");
    }
    if (state.step == options.hang_at) {
      MPI_Barrier(grid.comm());
      say("waiting to be killed");
      for (;;) pause();
    }
  }

  const std::uint64_t sum = checksum(grid, state.temperature);
  if (!options.result.empty()) write_result(grid, state.temperature, options.result);
  char text[64];
  std::snprintf(text, sizeof text, "done, checksum %016" PRIx64, sum);
  say(text);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) H5Eset_auto(H5E_DEFAULT, nullptr, nullptr);  // one error stack says enough

  CLI::App app("Heat conduction on a regular grid, with checkpoints in parallel HDF5.", "heat3d");
  Options options;
  declare(app, options);
  int code = EXIT_SUCCESS;
  try {
    app.parse(argc, argv);
    if (options.size.size() == 2) throw CLI::ValidationError("--size", "1 or 3 numbers, not 2");
    code = run(options, rank);
  } catch (const CLI::ParseError& error) {
    code = rank == 0 ? app.exit(error) : error.get_exit_code();
  }
  MPI_Finalize();
  return code;
}
