// What may be read: of each name the file, of each file what was committed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/simulation/sequence.h"

namespace dedup::simulation {

// A file is a few cells at places in different blocks, each with a number; 0: not written.
inline constexpr std::array<std::uint64_t, 5> kCells = {0, 16, (4u << 20) + 3, (9u << 20) + 100,
                                                        13u << 20};
inline constexpr std::size_t kCellSize = 16;
using Content = std::array<std::uint64_t, kCells.size()>;

// A generation that somebody tried to commit.
struct Version {
  Content content{};
  std::vector<NodeIndex> nodes;             // of the job; none: a plain file
  unsigned copies = 1;                      // K
  bool is_damaged = false;                  // may lack chunks of which no copy could be had
  std::shared_ptr<const Version> before{};  // kept beside it; null: none is
};

// The same file whatever its names. `last`: acknowledged, or seen by a job that goes on from it;
// `later`: attempts to replace it of which nobody was told that they succeeded.
struct File {
  std::shared_ptr<const Version> last;
  std::vector<std::shared_ptr<const Version>> later;

  bool may_be(const Content& content) const;
  std::shared_ptr<const Version> find(const Content& content) const;
};

// What a name leads to.
struct Name {
  std::shared_ptr<File> file;  // null: nothing
  bool is_copy = false;        // of the placeholder, when it named one of `copied`
  std::vector<std::shared_ptr<const Version>> copied;
};

class Model {
 public:
  Name& name(std::size_t number) { return names_[number]; }

  // Node `node` has what `version` put there, if that ever counts.
  void put(NodeIndex node, const std::shared_ptr<const Version>& version);
  void wipe(NodeIndex node) { held_[node].clear(); }
  void remember(NodeIndex node) { remembered_[node] = held_[node]; }
  void bring_back(NodeIndex node) { held_[node] = remembered_[node]; }
  void doubt(NodeIndex node, const std::shared_ptr<const Version>& version);
  void take(NodeIndex node, const File& file);  // its part is gone

  // Whether a job on `nodes` can be asked for the version: at most K - 1 of its nodes lack it.
  bool is_available(const Version& version, const std::vector<NodeIndex>& nodes) const;
  // Whether it must be able to open and read the file.
  bool must_read(const File& file, const std::vector<NodeIndex>& nodes) const;

 private:
  std::array<Name, kNames> names_;
  // By node: the versions of which it has its part.
  std::array<std::set<std::shared_ptr<const Version>>, kNodes> held_;
  std::array<std::set<std::shared_ptr<const Version>>, kNodes> remembered_;
};

}  // namespace dedup::simulation
