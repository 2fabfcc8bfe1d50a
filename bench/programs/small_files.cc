// Many small files, or a file opened again and again.
//
//   small_files [options] FILE        (--help names them)
//
// Creates files FILE0, FILE1, …, writes and closes them: each by all ranks together, or by one of
// them in turn (--alone). With --again one file is made, and then opened, a byte of it written, and
// closed as many times. Prints one line of JSON: the seconds of the slowest rank, and the
// processor's seconds of all ranks together, their threads included.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/programs/common.h"
#include "bench/programs/processor.h"

namespace dedup::bench {
namespace {

struct Options {
  std::string file;
  int files = 1000;
  std::uint64_t bytes = 64 << 10;
  bool is_alone = false;
  bool again = false;
};

int rank, ranks;

void declare(CLI::App& app, Options& options) {
  app.add_option("file", options.file, "the files' name, with its prefix")->required();
  app.add_option("--files", options.files, "how many, or how many times");
  app.add_option("--bytes", options.bytes, "of each; 64K and the like")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--alone", options.is_alone, "one rank writes a file, each in turn");
  app.add_flag("--again", options.again, "one file, opened again and again");
}

// No two files, nor two ranks' parts, have the same.
void fill(std::vector<std::byte>& data, int file) {
  std::uint64_t state = (static_cast<std::uint64_t>(file) << 20) + static_cast<unsigned>(rank) + 1;
  for (std::byte& byte : data) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
}

void write(MPI_Comm comm, const std::string& name, const std::vector<std::byte>& data) {
  int place;
  MPI_Comm_rank(comm, &place);
  MPI_File file;
  check(MPI_File_open(comm, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
        "open");
  check(MPI_File_write_at_all(file, static_cast<MPI_Offset>(data.size()) * place, data.data(),
                              static_cast<int>(data.size()), MPI_BYTE, MPI_STATUS_IGNORE),
        "write");
  check(MPI_File_close(&file), "close");
}

void write_all(const Options& options) {
  const std::uint64_t part =
      options.is_alone ? options.bytes : options.bytes / static_cast<unsigned>(ranks);
  std::vector<std::byte> data(part);
  for (int i = 0; i < options.files; ++i) {
    if (options.is_alone && i % ranks != rank) continue;
    fill(data, i);
    write(options.is_alone ? MPI_COMM_SELF : MPI_COMM_WORLD, options.file + std::to_string(i),
          data);
  }
}

void open_again(const Options& options) {
  const std::vector<std::byte> byte(1, std::byte{7});
  const std::vector<std::byte> nothing;
  for (int i = 0; i < options.files; ++i) {
    write(MPI_COMM_WORLD, options.file + "0", rank == i % ranks ? byte : nothing);
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("many small files");
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  return run_program(argc, argv, rank, ranks, [&] {
    if (options.again) {
      std::vector<std::byte> data(options.bytes / static_cast<unsigned>(ranks));
      fill(data, 0);
      write(MPI_COMM_WORLD, options.file + "0", data);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double before = processor_seconds();
    const double seconds =
        slowest([&] { options.again ? open_again(options) : write_all(options); });
    const double mine = processor_seconds() - before;
    double processor = 0;
    MPI_Reduce(&mine, &processor, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    print_line(rank, {{"ranks", ranks},
                      {"files", options.files},
                      {"bytes", options.bytes},
                      {"seconds", seconds},
                      {"processor_seconds", processor}});
    return 0;
  });
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  return dedup::bench::run(argc, argv);
}
