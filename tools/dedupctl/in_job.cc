#include "tools/dedupctl/in_job.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "hints/hints.h"
#include "hints/node.h"
#include "tools/dedupctl/catalog.h"
#include "tools/dedupctl/stores.h"

namespace dedup::ctl {
namespace {

namespace filesystem = std::filesystem;

Status set_variable(const char* name, const std::string& value) {
  if (::setenv(name, value.c_str(), 1) == 0) return Status::ok();
  return Status::from_errno(errno, std::string("cannot set ") + name);
}

// Beside this program, or in PATH.
std::string mpiexec() {
  std::error_code error;
  const filesystem::path self = filesystem::read_symlink("/proc/self/exe", error);
  for (const filesystem::path& directory : {self.parent_path(), self.parent_path() / "../../bin"}) {
    const filesystem::path beside = directory / "dedup-mpiexec";
    if (!error && ::access(beside.c_str(), X_OK) == 0) return beside;
  }
  return "dedup-mpiexec";
}

// What each of its tiers is in.
StorePlace parents_of(StorePlace place) {
  for (StoreTier& tier : place.tiers()) {
    tier.directory = filesystem::path(tier.directory).parent_path();
  }
  return place;
}

// mpiexec's arguments that make each store a node's, and DEDUP_STORE.
Result<std::vector<std::string>> nodes_for(const LocalStores& local) {
  if (local.stores.empty()) {
    return Status(Code::kNoSuchFile,
                  local.troubles.empty() ? "there is no store" : local.troubles[0].message);
  }
  if (local.stores.size() == 1) {
    DEDUP_TRY(set_variable("DEDUP_NODE", local.stores[0].node));
    DEDUP_TRY(set_variable("DEDUP_STORE", local.stores[0].store->place().text()));
    return std::vector<std::string>{"-n", "1"};
  }
  const StorePlace& first = local.stores[0].store->place();
  const StorePlace parents = parents_of(first);
  std::string names;
  for (const LocalStore& store : local.stores) {
    const StorePlace& place = store.store->place();
    const std::string name = filesystem::path(place.directory()).filename();
    const bool are_named_so = std::all_of(
        place.tiers().begin(), place.tiers().end(),
        [&](const StoreTier& tier) { return filesystem::path(tier.directory).filename() == name; });
    if (parents_of(place) != parents || !are_named_so || !hints::is_node_name(name)) {
      return Status(Code::kArgument,
                    fmt::format("{} and {} cannot be the stores of one job: they must be in one "
                                "directory, and named like nodes",
                                first.directory(), place.directory()));
    }
    names += (names.empty() ? "" : ",") + name;
  }
  const std::string each = hints::change_tiers(
      parents.text(), [](std::string_view directory) { return std::string(directory) + "/%n"; });
  DEDUP_TRY(set_variable("DEDUP_STORE", each));
  return std::vector<std::string>{"--nodes", names, "-n", std::to_string(local.stores.size())};
}

}  // namespace

Status check_driver() {
  if (::dlsym(RTLD_DEFAULT, "dedup_admin_heal") != nullptr) return Status::ok();
  return {Code::kUnsupported,
          "this takes the driver: start dedupctl with dedup-mpiexec, not mpiexec"};
}

Status set_store_for_driver(const Options& options, const std::string& node) {
  if (options.stores.empty()) return Status::ok();
  if (options.stores.size() > 1) {
    return {Code::kArgument, "in a job each node has one store: --store DIR once, with %n in it"};
  }
  DEDUP_ASSIGN(const std::string text, absolute_template(options.stores[0]));
  return set_variable("DEDUP_STORE", template_of_job(text, node));
}

Status run_in_job(const Options& options, const std::vector<std::string>& arguments) {
  LocalStores local = open_stores(options.stores, hints::node_of_process(), false);
  if (local.stores.size() == 1) {
    // It keeps the node that the files know it by.
    const Catalog catalog = make_catalog(OneRank(), local, {});
    if (catalog.stores.size() == 1) local.stores[0].node = catalog.stores[0].node;
  }
  DEDUP_ASSIGN(const std::vector<std::string> nodes, nodes_for(local));
  if (!local.troubles.empty()) return {Code::kAccess, local.troubles[0].message};
  std::error_code error;
  std::vector<std::string> words{mpiexec()};
  words.insert(words.end(), nodes.begin(), nodes.end());
  words.push_back(filesystem::read_symlink("/proc/self/exe", error).string());
  // It sees a pipe in the terminal's place.
  if (::isatty(STDERR_FILENO) != 0) words.emplace_back("--progress");
  if (error) return Status::from_errno(error.value(), "cannot find this program's file");
  // Where the stores are is said by now.
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--store") {
      ++i;
    } else if (!arguments[i].starts_with("--store=")) {
      words.push_back(arguments[i]);
    }
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  return Status::from_errno(errno, "cannot start " + words[0]);
}

}  // namespace dedup::ctl
