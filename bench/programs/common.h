// What the MPI programs of bench/ share.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace dedup::bench {

// Ends all ranks.
[[noreturn]] inline void fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

inline void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fail(std::string(what) + ": " + text);
}

inline void check(const Status& status) {
  if (!status.is_ok()) fail(status.message());
}

template <typename T>
T value_of(Result<T> result) {
  check(result.status());
  return std::move(*result);
}

// Seconds that the slowest of `comm` took for `work`, which all begin together.
template <typename Work>
double slowest_of(MPI_Comm comm, Work&& work) {
  MPI_Barrier(comm);
  const double begin = MPI_Wtime();
  work();
  const double mine = MPI_Wtime() - begin;
  double most = 0;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, comm);
  return most;
}

// The same over all ranks.
template <typename Work>
double slowest(Work&& work) {
  return slowest_of(MPI_COMM_WORLD, std::forward<Work>(work));
}

inline std::uint64_t sum_over_ranks(std::uint64_t mine) {
  std::uint64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

// main() of a program: its rank and the number of ranks, then `body`, which returns the exit code.
template <typename Body>
int run_program(int& argc, char**& argv, int& rank, int& ranks, Body&& body) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = body();
  MPI_Finalize();
  return code;
}

// The program's one line of output.
inline void print_line(int rank, const nlohmann::ordered_json& line) {
  if (rank == 0) std::printf("%s\n", line.dump().c_str());
}

}  // namespace dedup::bench
