// Loses a node in a running job, and reads what its rank had, spread over all that are left.
//
//   recovery [options] FILE        (--help names them)
//
// One rank a node. All write the file, each its own part; then the rank in the middle ends,
// as if it were killed.
// The others open the file among themselves and read `share` of all data, of what the lost one
// wrote, each an equal part: as ReStore (2022) has it, where a share of 1 % is 1 % of what all
// ranks have. Prints one line of JSON: for each call the seconds of the slowest rank between
// barriers, and what was checked. To be run by an mpiexec that goes on without a rank that was
// killed (-disable-auto-cleanup).
#include <mpi.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
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
  double share = 0.01;
};

int rank, ranks;

void declare(CLI::App& app, Options& options) {
  app.add_option("file", options.file, "the file, with its prefix")->required();
  app.add_option("--bytes", options.bytes, "of each rank; 64M and the like")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--share", options.share, "of all data, to be read");
}

MPI_File open_file(const Options& options, MPI_Comm comm, int mode) {
  MPI_File file;
  check(MPI_File_open(comm, options.file.c_str(), mode, MPI_INFO_NULL, &file), "open");
  return file;
}

void write_file(const Options& options, const Source& source) {
  std::vector<std::byte> data(options.bytes);
  check(source.fill(static_cast<unsigned>(rank), 0, data));
  MPI_File file = open_file(options, MPI_COMM_WORLD, MPI_MODE_CREATE | MPI_MODE_WRONLY);
  check(MPI_File_write_at_all(file, static_cast<MPI_Offset>(options.bytes) * rank, data.data(),
                              static_cast<int>(data.size()), MPI_BYTE, MPI_STATUS_IGNORE),
        "write");
  check(MPI_File_close(&file), "close");
}

void recover(const Options& options, const Source& source, const Layout& layout, int lost,
             MPI_Comm rest) {
  int place = 0;
  int readers = 0;
  MPI_Comm_rank(rest, &place);
  MPI_Comm_size(rest, &readers);
  const auto wanted = std::min(
      options.bytes,
      static_cast<std::uint64_t>(options.share * static_cast<double>(layout.file_bytes())));
  const std::uint64_t each = wanted / static_cast<unsigned>(readers);
  const std::uint64_t first =
      options.bytes * static_cast<unsigned>(lost) + each * static_cast<unsigned>(place);
  std::vector<std::byte> data(each);
  MPI_File file;
  nlohmann::ordered_json line{{"ranks", readers}, {"bytes", each * static_cast<unsigned>(readers)}};
  line["seconds"]["open"] =
      slowest_of(rest, [&] { file = open_file(options, rest, MPI_MODE_RDONLY); });
  line["seconds"]["read"] = slowest_of(rest, [&] {
    check(MPI_File_read_at_all(file, static_cast<MPI_Offset>(first), data.data(),
                               static_cast<int>(each), MPI_BYTE, MPI_STATUS_IGNORE),
          "read");
  });
  line["seconds"]["read once more"] = slowest_of(rest, [&] {
    check(MPI_File_read_at_all(file, static_cast<MPI_Offset>(first), data.data(),
                               static_cast<int>(each), MPI_BYTE, MPI_STATUS_IGNORE),
          "read");
  });
  line["seconds"]["open again"] = slowest_of(rest, [&] {
    check(MPI_File_close(&file), "close");
    file = open_file(options, rest, MPI_MODE_RDONLY);
  });
  std::uint64_t wrong = value_of(wrong_bytes(source, layout, first, data));
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, rest);
  if (wrong != 0) fail(std::to_string(wrong) + " bytes are wrong");
  print_line(place, line);
  std::fflush(stdout);
  MPI_Barrier(rest);
}

int run(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // MPICH's mpiexec sends it to all when a process has died: MPI's next call would fail.
  std::signal(SIGUSR1, SIG_IGN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options;
  CLI::App app("loses a node and reads what it had");
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  const auto writers = static_cast<unsigned>(ranks);
  const auto source =
      generated(value_of(Data::create(*find_profile("unique"), 1, writers, options.bytes, 0)), 0);
  write_file(options, *source);
  const int lost = ranks / 2;
  MPI_Comm rest;
  MPI_Comm_split(MPI_COMM_WORLD, rank == lost ? MPI_UNDEFINED : 0, rank, &rest);
  // For all others as if it were killed; what a signal ends, MPICH's mpiexec ends with all on its
  // host.
  if (rank == lost) _exit(0);
  recover(options, *source, {writers, options.bytes, 0}, lost, rest);
  // MPI_Finalize would wait for the lost one.
  _exit(0);
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  return dedup::bench::run(argc, argv);
}
