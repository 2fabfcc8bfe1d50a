// One program with all targets: --target=NAME chooses, or --seeds=DIRECTORY writes the inputs to
// start from, DIRECTORY/NAME/NUMBER. All else is libFuzzer's.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "store/fs.h"
#include "test/faults/memory_system.h"
#include "test/fuzz_formats/targets.h"

namespace dedup::fuzz {
namespace {

std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto& some : {format_targets(), store_targets(), message_targets(), wire_targets()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

const Target* chosen = nullptr;
std::unique_ptr<test::MemorySystem> memory;

void choose(std::string_view name) {
  static const std::vector<Target> all = all_targets();
  std::string names;
  for (const Target& target : all) {
    if (target.name == name) chosen = &target;
    names += " " + std::string(target.name);
  }
  if (chosen != nullptr) return;
  std::fprintf(stderr, "--target=NAME is needed, one of:%s\n", names.c_str());
  std::exit(2);
}

void write_seeds(const std::filesystem::path& to) {
  for (const Target& target : all_targets()) {
    const auto folder = to / target.name;
    std::filesystem::create_directories(folder);
    std::size_t number = 0;
    for (const Bytes& seed : target.seeds()) {
      std::ofstream out(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
      out.write(reinterpret_cast<const char*>(seed.data()),
                static_cast<std::streamsize>(seed.size()));
      require(out.good(), "a seed can be written");
    }
  }
  std::exit(0);
}

}  // namespace

void clear_directory() {
  memory.reset();
  memory = std::make_unique<test::MemorySystem>();
  memory->mount(kDirectory);
  store::use_system(*memory);
}

void put_file(const std::string& path, Input bytes) {
  require(store::fs::remove_file(path).is_ok(), "a file can be replaced");
  const Status status = store::fs::write_new_file(path, bytes, false);
  require(status.is_ok(), status.message().c_str());
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

Id128 some_id(std::uint8_t number) {
  Id128 id;
  id.bytes.fill(static_cast<std::uint8_t>(number + 1));
  return id;
}

Fingerprint some_fingerprint(std::uint8_t number) {
  Fingerprint fingerprint;
  fingerprint.bytes.fill(number);
  return fingerprint;
}

}  // namespace dedup::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  dedup::fuzz::clear_directory();
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    constexpr std::string_view kSeeds = "--seeds=";
    constexpr std::string_view kTarget = "--target=";
    if (argument.starts_with(kSeeds)) dedup::fuzz::write_seeds(argument.substr(kSeeds.size()));
    if (argument.starts_with(kTarget)) dedup::fuzz::choose(argument.substr(kTarget.size()));
  }
  if (dedup::fuzz::chosen == nullptr) dedup::fuzz::choose("");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dedup::fuzz::clear_directory();
  dedup::fuzz::chosen->run(std::as_bytes(std::span(data, size)));
  return 0;
}
