// What a mount shows: the committed files of this host's stores at their paths, and beside them,
// below kGenerations, the older generations that are kept. No FUSE is known here.
//
// A path is "" (all of it), "/scratch" or "/scratch/run/ckpt.h5". One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tools/dedupctl/elsewhere.h"
#include "tools/dedupctl/name_tree.h"
#include "tools/dedupctl/random_reader.h"
#include "tools/dedupctl/upkeep.h"

namespace dedup::ctl {

// One generation: its bytes never change.
struct ShownFile {
  Id128 identity;
  Id128 attempt;
  std::uint64_t size = 0;
  std::uint64_t time = 0;  // of the commit, seconds since 1970
  // The placeholder's, without leave to write; where none stands, the stores' user's alone.
  mode_t permissions = 0;
  uid_t owner = 0;
  gid_t group = 0;
};

// Keeps its generation, and what it needs of the stores.
class OpenFile {
 public:
  OpenFile(std::string path, std::shared_ptr<const Upkeep> stores,
           std::unique_ptr<Generation> generation, ReadCache& cache,
           std::unique_ptr<Elsewhere> elsewhere)
      : path_(std::move(path)),
        stores_(std::move(stores)),
        reader_(std::move(generation), cache, std::move(elsewhere)) {}

  std::uint64_t size() const { return reader_.generation().record().size; }
  // Of bytes within the file. kIo if some cannot be had; says on standard error which, and which
  // stores are missing, of the first ranges that it comes upon.
  Status read(std::uint64_t offset, std::span<std::byte> out);

 private:
  std::string path_;
  std::shared_ptr<const Upkeep> stores_;  // which the reader refers to
  RandomReader reader_;
  std::vector<ByteRange> said_;
};

class MountedFiles {
 public:
  // A directory that its parent does not list, so that what goes through all of a mount (tar, find)
  // comes upon every file once.
  static constexpr std::string_view kGenerations = "/.generations";

  // `find_stores` opens them, time and again, since jobs make new ones. `find_elsewhere`: who is
  // asked for what they do not have of a generation; none: nobody.
  MountedFiles(const Ranks& ranks, std::function<LocalStores()> find_stores,
               std::vector<std::string> search, FindElsewhere find_elsewhere);

  // As it was at most a second ago, or ten times as long as looking through the stores takes.
  // kNotFound if it is no directory.
  Result<NameTree::Entries> list(const std::string& path);

  // What is there now: nothing of a directory. kNotFound if nothing is.
  Result<std::optional<ShownFile>> look(const std::string& path);

  // kNotFound if the file has another generation by now, and nobody has this one open.
  Result<std::shared_ptr<OpenFile>> open(const std::string& path, const ShownFile& file);

 private:
  using Clock = std::chrono::steady_clock;

  void scan();
  bool scan_if_old();
  bool scan_if_stores_changed();
  void add_name(NameTree& tree, const std::string& path);
  bool is_directory(const std::string& path) const;
  Result<std::optional<ShownFile>> look_once(const std::string& path);
  Result<ShownFile> look_at_kept(const std::string& path);
  Result<FileRow> row_at(const std::string& path);
  Result<std::vector<Id128>> identities_at(const std::string& path) const;
  Result<FileRow> row_of(const Id128& identity, const std::string& path);
  Result<std::unique_ptr<Generation>> open_generation(const std::string& path,
                                                      const ShownFile& file);
  void say_once(const std::string& text);

  const Ranks& ranks_;
  std::function<LocalStores()> find_stores_;
  std::vector<std::string> search_;
  FindElsewhere find_elsewhere_;
  std::set<Id128> found_;           // the stores, when they were looked through last
  std::shared_ptr<Upkeep> stores_;  // those of them that can be read
  NameTree names_;
  NameTree generations_;
  Clock::time_point scanned_;
  Clock::duration scan_took_{};
  ReadCache cache_;
  std::map<std::pair<Id128, Id128>, std::weak_ptr<OpenFile>> open_;  // by identity and attempt
  std::set<std::string> said_;
};

}  // namespace dedup::ctl
