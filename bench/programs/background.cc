// A program that computes and writes checkpoints, one file each.
//
//   background [options] FILE        (--help names them)
//
// In each step all ranks write a file together, FILE and the step's number, each its own part, of
// data that nothing repeats; then they compute, without MPI. Prints one line of JSON: the seconds
// of the slowest rank between barriers for each write (open, write, close) and each computation,
// and of rank 0 for all, MPI_Finalize included, which waits for what is written in the background.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/data/data.h"
#include "bench/programs/common.h"
#include "bench/programs/source.h"

namespace dedup::bench {
namespace {

struct Options {
  std::string file;
  std::uint64_t bytes = std::uint64_t{64} << 20;
  unsigned steps = 5;
  std::uint64_t work = 1000;
};

int rank, ranks;

void declare(CLI::App& app, Options& options) {
  app.add_option("file", options.file, "the files' name, with its prefix")->required();
  app.add_option("--bytes", options.bytes, "of each rank and file; 64M and the like")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--steps", options.steps);
  app.add_option("--work", options.work, "of a step: millions of multiplications a rank");
}

void write_file(const std::string& name, const std::vector<std::byte>& data) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                      MPI_INFO_NULL, &file),
        "open");
  check(MPI_File_write_at_all(file, static_cast<MPI_Offset>(data.size()) * rank, data.data(),
                              static_cast<int>(data.size()), MPI_BYTE, MPI_STATUS_IGNORE),
        "write");
  check(MPI_File_close(&file), "close");
}

// Each depends on the one before, so that it takes as long on any rank.
double compute(std::uint64_t millions) {
  double x = 1.5;
  for (std::uint64_t i = 0; i < millions * 1'000'000; ++i) x = x * 0.999'999 + 0.25;
  return x;
}

int run(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options;
  CLI::App app("computes and writes checkpoints");
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  std::vector<std::byte> data(options.bytes);
  nlohmann::ordered_json line{{"ranks", ranks}, {"bytes", options.bytes}};
  line["seconds"]["write"] = nlohmann::json::array();
  line["seconds"]["compute"] = nlohmann::json::array();
  double result = 0;
  double filling = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = std::chrono::steady_clock::now();
  for (unsigned step = 0; step < options.steps; ++step) {
    filling += slowest([&] {
      const auto source =
          generated(value_of(Data::create(*find_profile("unique"), 1 + step,
                                          static_cast<unsigned>(ranks), options.bytes, 0)),
                    0);
      check(source->fill(static_cast<unsigned>(rank), 0, data));
    });
    line["seconds"]["write"].push_back(
        slowest([&] { write_file(options.file + std::to_string(step), data); }));
    line["seconds"]["compute"].push_back(slowest([&] { result += compute(options.work); }));
  }
  MPI_Finalize();
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  line["seconds"]["total"] = all.count() - filling;
  line["result"] = result;
  print_line(rank, line);
  return 0;
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  return dedup::bench::run(argc, argv);
}
