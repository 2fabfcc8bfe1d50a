// What to set for data like a scanned file's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hints/hints.h"
#include "tools/dedupctl/scan.h"

namespace dedup::ctl {

inline constexpr std::array<std::uint32_t, 6> kScannedSizes{1024, 2048, 4096, 8192, 16384, 65536};
inline constexpr std::size_t kUsualSize = 2;  // the default's place
inline constexpr Way kUsualWay{};

struct NamedWay {
  std::string name;  // "copies on 2", "rs:8+2"
  Way way;
  unsigned losses = 0;  // that it survives
};

// Those that there are with so many nodes, by losses, copies first.
std::vector<NamedWay> ways_for(unsigned nodes);

// What files would take in each way; of several, which are steps of the same, together.
class CostTable {
 public:
  explicit CostTable(unsigned nodes) : nodes_(nodes), ways_(ways_for(nodes)) {}

  // The file that was begun last, of as many nodes and kScannedSizes.
  void add(const Scan& scan);

  unsigned nodes() const { return nodes_; }
  const std::vector<NamedWay>& ways() const { return ways_; }
  const ScanFigures& figures(std::size_t size) const { return figures_[size]; }
  // In kUsualWay.
  const ScanCost& cost(std::size_t size, hints::Mode mode) const {
    return usual_[size][static_cast<std::size_t>(mode)];
  }
  // Of ways()[way], where duplicates on different nodes serve as copies.
  const ScanCost& cost_of_way(std::size_t size, std::size_t way) const {
    return of_ways_[size][way];
  }

 private:
  static constexpr std::size_t kModes = 3;

  unsigned nodes_;
  std::vector<NamedWay> ways_;
  std::array<ScanFigures, kScannedSizes.size()> figures_{};
  std::array<std::array<ScanCost, kModes>, kScannedSizes.size()> usual_{};
  std::array<std::vector<ScanCost>, kScannedSizes.size()> of_ways_{};
};

struct Recommendation {
  std::size_t size = kUsualSize;  // in kScannedSizes
  // Variables that are to be other than they are by default.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<std::string> reasons;  // sentences; never none
};

Recommendation recommend(const CostTable& costs);

}  // namespace dedup::ctl
