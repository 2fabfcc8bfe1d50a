// Writes a file in many calls and reads it back in as many, as IOR does, each rank what another one
// wrote.
//
//   pieces [options] FILE        (--help names them)
//
// The data repeats nowhere. Prints one line of JSON: the seconds of the slowest rank between
// barriers, open to close, and of the calls alone. Ends with 1 if a byte is wrong.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "bench/programs/options.h"

namespace dedup::bench {
namespace {

struct Options {
  std::string file;
  std::uint64_t bytes = std::uint64_t{128} << 20;
  std::uint64_t piece = std::uint64_t{1} << 20;
  std::uint64_t seed = 1;
  bool strided = false;
  bool own = false;
  bool collective = false;
  bool sync = false;
  bool no_write = false;
  bool no_read = false;
};

int rank, ranks;

void declare(CLI::App& app, Options& options) {
  app.add_option("file", options.file, "the file, with its prefix")->required();
  app.add_option("--bytes", options.bytes, "of each rank; 64M and the like")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--piece", options.piece, "of each call")->transform(CLI::AsSizeValue(false));
  app.add_option("--seed", options.seed, "other data");
  app.add_flag("--strided", options.strided, "ranks take turns in the file, a piece each");
  app.add_flag("--own", options.own,
               "each rank has a file of its own, whose name ends in its number");
  app.add_flag("--collective", options.collective, "MPI_File_…_at_all");
  app.add_flag("--sync", options.sync, "MPI_File_sync before the close");
  app.add_flag("--no-write", options.no_write, "the file is there");
  app.add_flag("--no-read", options.no_read, "it is only written");
}

std::vector<std::byte> data_of(const Options& options, int writer) {
  std::vector<std::byte> data(options.bytes);
  std::mt19937_64 random(options.seed * 1000 + static_cast<unsigned>(writer));
  for (std::size_t at = 0; at + 8 <= data.size(); at += 8) {
    const std::uint64_t value = random();
    std::memcpy(data.data() + at, &value, sizeof value);
  }
  return data;
}

MPI_Offset place_of(const Options& options, int writer, std::uint64_t piece) {
  if (options.own) return static_cast<MPI_Offset>(piece * options.piece);
  const auto number = static_cast<std::uint64_t>(writer);
  return static_cast<MPI_Offset>(options.strided ? (piece * static_cast<unsigned>(ranks) + number) *
                                                       options.piece
                                                 : number * options.bytes + piece * options.piece);
}

// Calls call(file, place, memory) for each piece of `writer`; the seconds that it took.
template <typename Call>
nlohmann::ordered_json calls(const Options& options, int mode, int writer,
                             std::vector<std::byte>& data, const Call& call, bool sync) {
  nlohmann::ordered_json seconds;
  MPI_File file;
  const double all = slowest([&] {
    const std::string name = options.own ? options.file + std::to_string(writer) : options.file;
    const MPI_Comm comm = options.own ? MPI_COMM_SELF : MPI_COMM_WORLD;
    check(MPI_File_open(comm, name.c_str(), mode, MPI_INFO_NULL, &file), "open");
    seconds["calls"] = slowest([&] {
      for (std::uint64_t p = 0; p < options.bytes / options.piece; ++p) {
        call(file, place_of(options, writer, p), data.data() + p * options.piece);
      }
    });
    if (sync) check(MPI_File_sync(file), "sync");
    check(MPI_File_close(&file), "close");
  });
  seconds["total"] = all;
  return seconds;
}

int run(const Options& options) {
  if (options.piece == 0 || options.bytes % options.piece != 0) fail("pieces must fill the bytes");
  const auto count = static_cast<int>(options.piece);
  nlohmann::ordered_json line;
  line["ranks"] = ranks;
  line["bytes"] = options.bytes * static_cast<unsigned>(ranks);
  if (!options.no_write) {
    std::vector<std::byte> data = data_of(options, rank);
    const auto write = options.collective ? &MPI_File_write_at_all : &MPI_File_write_at;
    line["write"] = calls(
        options, MPI_MODE_CREATE | MPI_MODE_WRONLY, rank, data,
        [&](MPI_File file, MPI_Offset place, std::byte* memory) {
          check(write(file, place, memory, count, MPI_BYTE, MPI_STATUS_IGNORE), "write");
        },
        options.sync);
  }
  std::uint64_t wrong = 0;
  if (!options.no_read) {
    const int writer = (rank + 1) % ranks;
    // Touched, so that its pages are there.
    std::vector<std::byte> data(options.bytes, std::byte{1});
    const auto read = options.collective ? &MPI_File_read_at_all : &MPI_File_read_at;
    line["read"] = calls(
        options, MPI_MODE_RDONLY, writer, data,
        [&](MPI_File file, MPI_Offset place, std::byte* memory) {
          check(read(file, place, memory, count, MPI_BYTE, MPI_STATUS_IGNORE), "read");
        },
        false);
    wrong = sum_over_ranks(data == data_of(options, writer) ? 0 : 1);
  }
  if (wrong == 0) print_line(rank, line);
  if (wrong != 0 && rank == 0) std::fprintf(stderr, "%s: other bytes\n", options.file.c_str());
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  using namespace dedup::bench;
  return run_with_options<Options>(argc, argv, rank, ranks,
                                   "Writes a file in many calls and reads it back in as many.",
                                   declare, run);
}
