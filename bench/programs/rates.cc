// What this machine's memory, processors, stores and MPI allow: the rates that bounds are made of.
//
//   rates compute            hashing, checking and copying in one rank's own memory
//   rates store DIRECTORY BYTES AT-ONCE [fsync]
//                            each rank writes a file of that size, so many bytes at once
//   rates link BYTES         each rank sends so much to the rank half way round
//
// All ranks work at the same time. Prints one line of JSON: bytes a second, of all ranks together.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/chunk_namer.h"
#include "base/hasher.h"
#include "bench/data/data.h"
#include "bench/programs/common.h"
#include "plan/cut.h"
#include "store/format.h"

namespace dedup::bench {
namespace {

constexpr std::size_t kBuffer = std::size_t{128} << 20;  // more than caches hold
constexpr std::size_t kAtOnce = std::size_t{1} << 20;
constexpr double kAtLeast = 0.3;  // seconds

int rank, ranks;
// Results go here, so that the compiler does the work.
volatile std::uint64_t sink;

std::vector<std::byte> some_data(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  const Profile* unique = find_profile("unique");
  value_of(Data::create(*unique, 1, static_cast<unsigned>(ranks), bytes))
      .fill(static_cast<unsigned>(rank), 0, 0, out);
  return out;
}

// Bytes a second of all ranks: `pass` handles `bytes`; the first pass does not count.
template <typename Pass>
double rate(std::size_t bytes, Pass&& pass) {
  pass();
  std::uint64_t passes = 0;
  const double seconds = slowest([&] {
    const double begin = MPI_Wtime();
    do {
      pass();
      ++passes;
    } while (MPI_Wtime() - begin < kAtLeast);
  });
  return static_cast<double>(sum_over_ranks(passes)) * static_cast<double>(bytes) / seconds;
}

std::uint64_t sum_words(const std::vector<std::byte>& data) {
  using Lanes = std::uint64_t __attribute__((vector_size(64)));
  Lanes sum[4] = {};
  for (std::size_t at = 0; at + sizeof sum <= data.size(); at += sizeof sum) {
    Lanes next[4];
    std::memcpy(next, data.data() + at, sizeof next);
    for (std::size_t i = 0; i < 4; ++i) sum[i] ^= next[i];
  }
  const Lanes all = sum[0] ^ sum[1] ^ sum[2] ^ sum[3];
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8; ++i) word ^= all[i];
  return word;
}

template <typename Each>
void each_unit(const std::vector<std::byte>& data, Each&& each) {
  for (std::size_t at = 0; at < data.size(); at += kUnit) each(std::span(data).subspan(at, kUnit));
}

nlohmann::ordered_json compute() {
  const auto data = some_data(kBuffer);
  std::vector<std::byte> other(kBuffer);
  nlohmann::ordered_json out;
  out["memory_read"] = rate(kBuffer, [&] { sink = sum_words(data); });
  out["copy"] = rate(kBuffer, [&] { std::memcpy(other.data(), data.data(), kBuffer); });
  const std::pair<const char*, FingerprintKind> kinds[] = {{"keyed", FingerprintKind::kKeyed},
                                                           {"sha256", FingerprintKind::kSha256}};
  for (const auto& [name, kind] : kinds) {
    auto namer = value_of(ChunkNamer::create(kind, Id128::random()));
    out[name] = rate(kBuffer, [&] {
      each_unit(data, [&](auto unit) { sink = value_of(namer.name(unit, 0)).prefix(); });
    });
  }
  out["fast_hash"] =
      rate(kBuffer, [&] { each_unit(data, [](auto unit) { sink = fast_hash(unit).low; }); });
  out["checksum"] = rate(
      kBuffer, [&] { each_unit(data, [](auto unit) { sink = store::format::checksum(unit); }); });
  std::memset(other.data(), 0, kBuffer);
  out["find_zeros"] = rate(
      kBuffer, [&] { each_unit(other, [](auto unit) { sink = plan::all_zero(unit) ? 1 : 0; }); });
  return out;
}

nlohmann::ordered_json store(const std::string& directory, std::size_t bytes, std::size_t at_once,
                             bool flush) {
  const auto data = some_data(std::min(bytes, kBuffer));
  const std::string path = directory + "/rates." + std::to_string(rank);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) check(Status::from_errno(errno, path));
  const double seconds = slowest([&] {
    for (std::size_t at = 0; at < bytes;) {
      const std::size_t from = at % data.size();
      const ssize_t done =
          write(fd, data.data() + from, std::min({at_once, bytes - at, data.size() - from}));
      if (done < 0) check(Status::from_errno(errno, path));
      at += static_cast<std::size_t>(done);
    }
    if (flush && fsync(fd) != 0) check(Status::from_errno(errno, path));
  });
  if (close(fd) != 0 || unlink(path.c_str()) != 0) check(Status::from_errno(errno, path));
  return {{"store", static_cast<double>(sum_over_ranks(bytes)) / seconds}};
}

nlohmann::ordered_json link(std::size_t bytes) {
  const auto data = some_data(kAtOnce);
  std::vector<std::byte> received(kAtOnce);
  const int half = std::max(ranks / 2, 1);
  const int to = (rank + half) % ranks;
  const int from = (rank + ranks - half) % ranks;
  const auto pass = [&](std::size_t size) {
    for (std::size_t at = 0; at < size; at += kAtOnce) {
      MPI_Sendrecv(data.data(), static_cast<int>(kAtOnce), MPI_BYTE, to, 0, received.data(),
                   static_cast<int>(kAtOnce), MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  };
  pass(4 * kAtOnce);
  const double seconds = slowest([&] { pass(bytes); });
  return {{"link", static_cast<double>(sum_over_ranks(bytes)) / seconds}};
}

int run(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words[0];
  nlohmann::ordered_json line;
  if (what == "compute" && words.size() == 1) {
    line = compute();
  } else if (what == "store" && (words.size() == 4 || (words.size() == 5 && words[4] == "fsync"))) {
    line = store(words[1], std::stoull(words[2]), std::stoull(words[3]), words.size() == 5);
  } else if (what == "link" && words.size() == 2) {
    line = link(std::stoull(words[1]));
  } else {
    if (rank == 0) {
      std::fprintf(stderr,
                   "usage: rates compute | store DIRECTORY BYTES AT-ONCE [fsync] | link BYTES\n");
    }
    return 2;
  }
  line["ranks"] = ranks;
  print_line(rank, line);
  return 0;
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  using namespace dedup::bench;
  return run_program(argc, argv, rank, ranks, [&] { return run({argv + 1, argv + argc}); });
}
