#include "test/hooks/faults.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <string>

#include "store/fs.h"
#include "test/hooks/faulty_system.h"

namespace dedup::engine {
namespace {

// Of what a call is about: `path`, or, if that is null, what is open as `fd`.
std::string path_of(const char* path, int fd) {
  if (path != nullptr) return path;
  std::string target;
  return store::kernel().readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target) < 0
             ? ""
             : target;
}

// One of `directories`, separated by colons.
bool is_below(const std::string& path, const std::string& directories) {
  std::istringstream all(directories);
  for (std::string directory; std::getline(all, directory, ':');) {
    if ((path + "/").starts_with(directory + "/")) return true;
  }
  return false;
}

}  // namespace

Status install_faults(int world_rank) {
  const char* const name = std::getenv("DEDUP_TEST_FAULT");
  if (name == nullptr) return Status::ok();
  const std::string path = std::string(name) + "." + std::to_string(world_rank);
  DEDUP_ASSIGN(const store::fs::File file, store::fs::open_file(path, O_RDWR));
  DEDUP_ASSIGN(const store::fs::Info about, store::fs::info(file));
  if (about.size < sizeof(store::FaultPlan)) return {Code::kArgument, path + ": too short"};
  void* const map =
      ::mmap(nullptr, sizeof(store::FaultPlan), PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (map == MAP_FAILED) return store::fs::failed("map", path);
  // As long as the process lives: open files may outlast everything else.
  auto* const faulty =
      new store::FaultySystem(store::kernel(), *static_cast<store::FaultPlan*>(map));
  if (const char* const below = std::getenv("DEDUP_TEST_FAULT_BELOW")) {
    faulty->is_meant = [directories = std::string(below)](const char* on, int fd) {
      return is_below(path_of(on, fd), directories);
    };
  }
  faulty->on_death = [] { std::raise(SIGKILL); };
  store::use_system(*faulty);
  return Status::ok();
}

}  // namespace dedup::engine
