#include "engine/mpi/yield.h"

#include <dlfcn.h>
#include <sched.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace dedup::engine {
namespace {

// Of 8192 processors those that some rank of the host may run on. Ranks may be bound to some each.
int cores_of(MPI_Comm host) {
  std::array<std::uint64_t, 128> cores{};
  if (::sched_getaffinity(0, sizeof cores, reinterpret_cast<cpu_set_t*>(cores.data())) != 0) {
    cores.fill(~std::uint64_t{0});
  }
  PMPI_Allreduce(MPI_IN_PLACE, cores.data(), static_cast<int>(cores.size()), MPI_UINT64_T, MPI_BOR,
                 host);
  int count = 0;
  for (const std::uint64_t word : cores) count += std::popcount(word);
  return count;
}

}  // namespace

void decide_yielding(MPI_Comm host) {
  int ranks;
  PMPI_Comm_size(host, &ranks);
  bool is_crowded = ranks > cores_of(host);
  if (const char* const wish = std::getenv("DEDUP_YIELD"); wish != nullptr && *wish != '\0') {
    is_crowded = std::string_view(wish) != "0";
  }
  // Both are libraries that are loaded at run time, each without the other.
  const auto yield = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "dedup_yield"));
  if (yield != nullptr) yield(is_crowded ? 1 : 0);
}

}  // namespace dedup::engine
