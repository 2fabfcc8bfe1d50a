// dedup-rank NODES PROGRAM [ARGUMENTS]: what dedup-mpiexec --nodes starts as each rank. Sets
// DEDUP_NODE to the node of this rank and becomes PROGRAM. NODES is a number N, for nodes n0 …
// n(N-1), or their names with commas between them. Ranks are dealt in blocks as equal as possible,
// earlier nodes first; with fewer ranks than nodes the last nodes stay without.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

// What mpiexec returns for a program that it cannot start.
constexpr int kCannotStart = 255;

bool parse(std::string_view text, unsigned long& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool variable(const char* name, unsigned long& number) {
  const char* value = std::getenv(name);
  return value != nullptr && parse(value, number);
}

// Name number `index` of the list.
std::string_view name_at(std::string_view list, unsigned long index) {
  for (; index > 0; --index) list.remove_prefix(list.find(',') + 1);
  return list.substr(0, list.find(','));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "dedup-rank: started by dedup-mpiexec only\n");
    return 2;
  }
  const std::string_view nodes = argv[1];
  unsigned long rank = 0;
  unsigned long ranks = 0;
  if (!variable("PMI_RANK", rank) || !variable("PMI_SIZE", ranks) || rank >= ranks) {
    std::fprintf(
        stderr,
        "dedup-mpiexec: --nodes needs PMI_RANK and PMI_SIZE in each process's environment, "
        "which this mpiexec does not set\n");
    return kCannotStart;
  }
  unsigned long count = 0;
  const bool numbered = parse(nodes, count);
  if (!numbered) count = static_cast<unsigned long>(std::ranges::count(nodes, ',')) + 1;
  const unsigned long index = rank * std::min(count, ranks) / ranks;
  const std::string name =
      numbered ? "n" + std::to_string(index) : std::string(name_at(nodes, index));
  if (setenv("DEDUP_NODE", name.c_str(), 1) != 0) {
    std::fprintf(stderr, "dedup-mpiexec: cannot set DEDUP_NODE: %s\n", std::strerror(errno));
    return kCannotStart;
  }
  execvp(argv[2], argv + 2);
  std::fprintf(stderr, "dedup-mpiexec: cannot start %s: %s\n", argv[2], std::strerror(errno));
  return kCannotStart;
}
