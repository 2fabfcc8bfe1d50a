// SCR's redundancy library (redset) with the same bytes: each rank is a node of its own, writes its
// data to a file, flushes it, and has redset make the set that protects it.
//
//   redset partner:M|xor|rs:M DIRECTORY BYTES
//
// Prints one line of JSON. Outside of what is timed, the files of as many ranks as the set is said
// to survive are removed, rebuilt by redset, and all compared.
//
// Built for section redset alone, which says where the library is: make bench/programs/redset
// REDSET=PREFIX.
#define REDSET_ENABLE_MPI 1
#include <mpi.h>
#include <redset.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/data/data.h"
#include "bench/programs/common.h"

namespace dedup::bench {
namespace {

int rank, ranks;

void must(bool is_done, const char* what) {
  if (is_done) return;
  std::fprintf(stderr, "redset: rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct Scheme {
  std::string name;
  int lost = 1;  // ranks that may be

  explicit Scheme(const std::string& text) : name(text.substr(0, text.find(':'))) {
    if (text.size() > name.size()) lost = std::stoi(text.substr(name.size() + 1));
  }
  // What redset says: REDSET_SUCCESS, or something else; that, too, for a name that is none.
  int create(const std::string& group, redset* set) const {
    if (name == "partner") {
      return redset_create_partner(MPI_COMM_WORLD, group.c_str(), ranks, lost, set);
    }
    if (name == "xor") return redset_create_xor(MPI_COMM_WORLD, group.c_str(), ranks, set);
    if (name == "rs") return redset_create_rs(MPI_COMM_WORLD, group.c_str(), ranks, lost, set);
    return REDSET_SUCCESS + 1;
  }
};

void write_file(const std::string& path, const std::vector<std::byte>& data) {
  constexpr std::size_t kAtOnce = std::size_t{128} << 10;  // the fastest on tmpfs
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  must(file != nullptr, "making a file");
  std::setvbuf(file, nullptr, _IONBF, 0);
  for (std::size_t at = 0; at < data.size(); at += kAtOnce) {
    const std::size_t size = std::min(kAtOnce, data.size() - at);
    must(std::fwrite(data.data() + at, 1, size, file) == size, "writing a file");
  }
  must(fsync(fileno(file)) == 0, "flushing a file");
  must(std::fclose(file) == 0, "closing a file");
}

bool has(const std::string& path, const std::vector<std::byte>& data) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> found(data.size());
  in.read(reinterpret_cast<char*>(found.data()), static_cast<std::streamsize>(found.size()));
  return in && std::memcmp(found.data(), data.data(), data.size()) == 0;
}

int run(const Scheme& scheme, const std::string& directory, std::uint64_t bytes) {
  const Data made =
      value_of(Data::create(*find_profile("unique"), 1, static_cast<unsigned>(ranks), bytes));
  std::vector<std::byte> data(bytes);
  made.fill(static_cast<unsigned>(rank), 0, 0, data);
  const std::string own = directory + "/rank" + std::to_string(rank);
  const std::string file = own + "/data";
  const std::string name = own + "/redset";
  must(mkdir(own.c_str(), 0700) == 0, "making a directory");

  must(redset_init() == REDSET_SUCCESS, "redset_init");
  redset set;
  const double seconds = slowest([&] {
    write_file(file, data);
    must(scheme.create("rank" + std::to_string(rank), &set) == REDSET_SUCCESS, "redset_create");
    const char* files[] = {file.c_str()};
    must(redset_apply(1, files, name.c_str(), set) == REDSET_SUCCESS, "redset_apply");
  });
  must(redset_delete(&set) == REDSET_SUCCESS, "redset_delete");

  if (rank >= 1 && rank <= scheme.lost) {
    std::filesystem::remove_all(own);
    must(mkdir(own.c_str(), 0700) == 0, "making a directory again");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  must(redset_recover(MPI_COMM_WORLD, name.c_str(), &set) == REDSET_SUCCESS, "redset_recover");
  must(has(file, data), "reading back what was written");
  must(redset_delete(&set) == REDSET_SUCCESS, "redset_delete");
  must(redset_finalize() == REDSET_SUCCESS, "redset_finalize");

  const nlohmann::ordered_json line = {{"ranks", ranks},
                                       {"bytes_a_rank", bytes},
                                       {"seconds", seconds},
                                       {"checked_bytes", sum_over_ranks(bytes)}};
  print_line(rank, line);
  return 0;
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  using namespace dedup::bench;
  return run_program(argc, argv, rank, ranks, [&] {
    if (argc == 4) return run(Scheme(argv[1]), argv[2], std::stoull(argv[3]));
    if (rank == 0) std::fprintf(stderr, "usage: redset partner:M|xor|rs:M DIRECTORY BYTES\n");
    return 2;
  });
}
