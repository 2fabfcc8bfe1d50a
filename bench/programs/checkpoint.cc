// Writes a file as a checkpoint is written, reads it back, and compares.
//
//   checkpoint [options] FILE        (--help names them)
//
// Data is generated (bench/data) or from files. Prints one line of JSON: for each phase the seconds
// of the slowest rank between barriers, and what was checked. Ends with 1 if a byte is wrong.
#include <mpi.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/data/data.h"
#include "bench/programs/options.h"
#include "bench/programs/source.h"

namespace dedup::bench {
namespace {

constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 30;  // counts are int

struct Options {
  std::string file;
  std::string profile = "unique";
  std::vector<std::string> data;
  std::uint64_t bytes = std::uint64_t{64} << 20;
  std::uint64_t seed = 1;
  unsigned writers = 0;  // 0: as many as there are ranks
  unsigned step = 0;
  double skew = 0;
  std::uint64_t calls = 1;
  std::uint64_t piece = 0;
  bool independent = false;
  bool sync = false;
  bool no_write = false;
  bool no_read = false;
};

int rank, ranks;

void declare(CLI::App& app, Options& options) {
  app.add_option("file", options.file, "the file, with its prefix")->required();
  app.add_option("--profile", options.profile, "whose redundancy the data has (bench/data)");
  app.add_option("--data", options.data, "files, in place of generated data");
  app.add_option("--bytes", options.bytes, "of each writer; 64M and the like")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--seed", options.seed, "other data of the same profile");
  app.add_option("--writers", options.writers, "ranks that wrote the file, if others read it");
  app.add_option("--step", options.step, "time step of the data");
  app.add_option("--skew", options.skew, "how unequal ranks are, 0 to 1");
  app.add_option("--calls", options.calls, "equal parts that each rank writes one after the other");
  app.add_option("--piece", options.piece, "ranks take turns in the file, so many bytes each")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--independent", options.independent, "MPI_File_write_at, not …_all");
  app.add_flag("--sync", options.sync, "MPI_File_sync before the close");
  app.add_flag("--no-write", options.no_write, "the file is there");
  app.add_flag("--no-read", options.no_read, "another job reads and compares");
}

std::unique_ptr<Source> source_of(const Options& options) {
  if (!options.data.empty()) return value_of(from_files(options.data, options.writers));
  const Profile* profile = find_profile(options.profile);
  if (profile == nullptr) fail("there is no profile " + options.profile);
  return generated(
      value_of(Data::create(*profile, options.seed, options.writers, options.bytes, options.skew)),
      options.step);
}

MPI_File open_file(const Options& options, int mode) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, options.file.c_str(), mode, MPI_INFO_NULL, &file), "open");
  return file;
}

void set_turns(MPI_File file, std::uint64_t piece) {
  MPI_Datatype contiguous;
  MPI_Datatype turn;
  MPI_Type_contiguous(static_cast<int>(piece), MPI_BYTE, &contiguous);
  MPI_Type_create_resized(contiguous, 0, static_cast<MPI_Aint>(piece) * ranks, &turn);
  MPI_Type_commit(&turn);
  check(MPI_File_set_view(file, static_cast<MPI_Offset>(piece) * rank, MPI_BYTE, turn, "native",
                          MPI_INFO_NULL),
        "set_view");
  MPI_Type_free(&turn);
  MPI_Type_free(&contiguous);
}

void write_calls(const Options& options, MPI_File file, const std::vector<std::byte>& data) {
  const std::uint64_t first = options.piece != 0 ? 0 : data.size() * static_cast<unsigned>(rank);
  const std::uint64_t each = data.size() / options.calls;
  for (std::uint64_t at = 0; at < data.size(); at += each) {
    const auto place = static_cast<MPI_Offset>(first + at);
    const auto count = static_cast<int>(each);
    check(options.independent
              ? MPI_File_write_at(file, place, data.data() + at, count, MPI_BYTE, MPI_STATUS_IGNORE)
              : MPI_File_write_at_all(file, place, data.data() + at, count, MPI_BYTE,
                                      MPI_STATUS_IGNORE),
          "write");
  }
}

std::map<std::string, double> write_file(const Options& options, const Source& source) {
  std::vector<std::byte> data(source.bytes_a_rank());
  check(source.fill(static_cast<unsigned>(rank), 0, data));
  std::map<std::string, double> seconds;
  MPI_File file;
  seconds["total"] = slowest([&] {
    seconds["open"] = slowest([&] {
      file = open_file(options, MPI_MODE_CREATE | MPI_MODE_WRONLY);
      if (options.piece != 0) set_turns(file, options.piece);
    });
    seconds["write"] = slowest([&] { write_calls(options, file, data); });
    if (options.sync) seconds["sync"] = slowest([&] { check(MPI_File_sync(file), "sync"); });
    seconds["close"] = slowest([&] { check(MPI_File_close(&file), "close"); });
  });
  return seconds;
}

struct Read {
  std::map<std::string, double> seconds;
  std::uint64_t checked = 0;
  std::uint64_t wrong = 0;    // those that are missing included
  std::uint64_t missing = 0;  // the file is too short for them
};

// Each rank an equal part of the file, whoever wrote it.
Read read_file(const Options& options, const Source& source, const Layout& layout) {
  const std::uint64_t each =
      (layout.file_bytes() + static_cast<unsigned>(ranks) - 1) / static_cast<unsigned>(ranks);
  const std::uint64_t first = std::min(each * static_cast<unsigned>(rank), layout.file_bytes());
  std::vector<std::byte> data(std::min(each, layout.file_bytes() - first));
  Read out;
  std::uint64_t there = 0;
  MPI_File file;
  out.seconds["total"] = slowest([&] {
    out.seconds["open"] = slowest([&] { file = open_file(options, MPI_MODE_RDONLY); });
    out.seconds["read"] = slowest([&] {
      for (std::uint64_t at = 0; at < each; at += kReadAtOnce) {
        const std::uint64_t from = std::min<std::uint64_t>(at, data.size());
        const auto count = static_cast<int>(std::min(kReadAtOnce, data.size() - from));
        MPI_Status status;
        check(MPI_File_read_at_all(file, static_cast<MPI_Offset>(first + from), data.data() + from,
                                   count, MPI_BYTE, &status),
              "read");
        int got = 0;
        MPI_Get_count(&status, MPI_BYTE, &got);
        there += static_cast<std::uint64_t>(got);
      }
    });
    out.seconds["close"] = slowest([&] { check(MPI_File_close(&file), "close"); });
  });
  out.checked = sum_over_ranks(data.size());
  out.missing = sum_over_ranks(data.size() - there);
  data.resize(there);
  out.wrong = sum_over_ranks(value_of(wrong_bytes(source, layout, first, data))) + out.missing;
  return out;
}

std::uint64_t largest_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const std::uint64_t mine = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  std::uint64_t most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

int run(Options options) {
  if (options.writers == 0) options.writers = static_cast<unsigned>(ranks);
  const auto source = source_of(options);
  const Layout layout{options.writers, source->bytes_a_rank(), options.piece};
  if (options.calls == 0 || layout.bytes_a_rank % options.calls != 0 ||
      layout.bytes_a_rank / options.calls > kReadAtOnce ||
      (options.piece != 0 && layout.bytes_a_rank / options.calls % options.piece != 0)) {
    fail(std::to_string(layout.bytes_a_rank) + " bytes cannot be written in " +
         std::to_string(options.calls) + " calls of whole pieces");
  }
  if (!options.no_write && options.writers != static_cast<unsigned>(ranks)) {
    fail("--writers is for --no-write");
  }
  nlohmann::ordered_json line;
  line["ranks"] = ranks;
  line["writers"] = options.writers;
  line["bytes_a_rank"] = layout.bytes_a_rank;
  line["bytes"] = layout.file_bytes();
  line["profile"] = options.data.empty() ? options.profile : "files";
  if (!options.no_write) line["write"] = write_file(options, *source);
  line["peak_bytes"] = largest_peak();
  bool good = true;
  if (!options.no_read) {
    const Read read = read_file(options, *source, layout);
    line["read"] = read.seconds;
    line["checked_bytes"] = read.checked;
    good = read.wrong == 0;
    if (!good && rank == 0) {
      std::fprintf(stderr, "%s: %llu of %llu bytes are wrong%s\n", options.file.c_str(),
                   static_cast<unsigned long long>(read.wrong),
                   static_cast<unsigned long long>(read.checked),
                   read.missing != 0 ? ": the file is too short" : "");
    }
  }
  if (good) print_line(rank, line);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  using namespace dedup::bench;
  return run_with_options<Options>(
      argc, argv, rank, ranks,
      "Writes a file as a checkpoint is written, reads it back, and compares.", declare, run);
}
