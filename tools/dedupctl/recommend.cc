#include "tools/dedupctl/recommend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace dedup::ctl {
namespace {

// Of bytes on disk or sent: what is not worth another setting than the default, or the simpler one.
constexpr double kLittle = 0.05;
// What stripes save of copies, so that a read after a loss may take more.
constexpr double kWorthStripes = 0.2;

constexpr unsigned kUsualUnits[] = {0, 7, 8};  // of a stripe, by losses

std::string text(double bytes) {
  return human(static_cast<std::uint64_t>(bytes));
}

// With the default if it is about as good as any; else the longest chunks that are.
std::size_t best_size(const CostTable& costs) {
  std::array<double, kScannedSizes.size()> disk{};
  for (std::size_t i = 0; i < disk.size(); ++i)
    disk[i] = costs.cost(i, hints::Mode::kCollective).disk();
  const double enough = *std::min_element(disk.begin(), disk.end()) * (1 + kLittle);
  if (disk[kUsualSize] <= enough) return kUsualSize;
  std::size_t best = disk.size() - 1;
  while (disk[best] > enough) --best;
  return best;
}

double moved(const CostTable& costs, std::size_t size, hints::Mode mode) {
  const ScanCost cost = costs.cost(size, mode);
  return cost.stored + cost.sent;
}

// The simplest that is about as good as the one that looks at most.
hints::Mode best_mode(const CostTable& costs, std::size_t size) {
  const double enough = moved(costs, size, hints::Mode::kCollective) * (1 + kLittle);
  for (const hints::Mode mode : {hints::Mode::kNone, hints::Mode::kLocal}) {
    if (moved(costs, size, mode) <= enough) return mode;
  }
  return hints::Mode::kCollective;
}

void say_size(const CostTable& costs, Recommendation& out) {
  const ScanCost best = costs.cost(out.size, hints::Mode::kCollective);
  const ScanCost usual = costs.cost(kUsualSize, hints::Mode::kCollective);
  const std::string size = human(kScannedSizes[out.size]);
  if (out.size == kUsualSize) {
    out.reasons.push_back(
        fmt::format("Chunks of {}, the default, are as good as any: {} on disk, lists included.",
                    size, text(best.disk())));
    return;
  }
  out.settings.emplace_back("DEDUP_CHUNK_SIZE", std::to_string(kScannedSizes[out.size]));
  out.reasons.push_back(
      fmt::format("Chunks of {} take {} on disk, lists included, and those of {} {}.", size,
                  text(best.disk()), human(kScannedSizes[kUsualSize]), text(usual.disk())));
}

void say_mode(const CostTable& costs, hints::Mode mode, Recommendation& out) {
  const ScanFigures& figures = costs.figures(out.size);
  switch (mode) {
    case hints::Mode::kCollective:
      out.reasons.push_back(fmt::format(
          "{:.0f} % of the data is equal to other data, of which nodes alone find {:.0f} %: what "
          "several nodes have serves as copies (mode collective, the default).",
          100 * figures.found(), 100 * figures.found_alone()));
      return;
    case hints::Mode::kLocal:
      out.settings.emplace_back("DEDUP_MODE", "local");
      out.reasons.push_back(fmt::format(
          "{:.0f} % of the data is equal to other data, which each node finds alone: to look at "
          "other nodes' finds nothing more.",
          100 * figures.found()));
      return;
    case hints::Mode::kNone:
      out.reasons.push_back(
          "Next to nothing in it is equal. If each step is all new, too (name two steps, to see), "
          "DEDUP_MODE=none saves comparing them.");
      return;
  }
}

void say_redundancy(const CostTable& costs, Recommendation& out) {
  const NamedWay* best = nullptr;
  double least = 0;
  double copies = 0;
  for (std::size_t i = 0; i < costs.ways().size(); ++i) {
    const NamedWay& way = costs.ways()[i];
    if (way.losses != 1) continue;
    const double disk = costs.cost_of_way(out.size, i).disk();
    if (way.way.parities == 0) copies = disk;
    if (best == nullptr || disk < least) {
      best = &way;
      least = disk;
    }
  }
  if (best == nullptr || best->way.parities == 0 || least > copies * (1 - kWorthStripes)) return;
  out.settings.emplace_back("DEDUP_REDUNDANCY", best->name);
  out.reasons.push_back(
      fmt::format("Stripes ({}) take {} in place of {} and survive a loss, too; what is lost takes "
                  "longer to read.",
                  best->name, text(least), text(copies)));
}

}  // namespace

std::vector<NamedWay> ways_for(unsigned nodes) {
  std::vector<NamedWay> ways;
  for (unsigned lost = 1; lost <= 2 && lost < nodes; ++lost) {
    ways.push_back({fmt::format("copies on {}", lost + 1), {lost + 1, 0, 0}, lost});
    const unsigned units = std::min(kUsualUnits[lost], nodes - lost);
    if (units < 2) continue;
    const std::string name =
        lost == 1 ? fmt::format("xor:{}", units) : fmt::format("rs:{}+{}", units, lost);
    ways.push_back({name, {lost + 1, units, lost}, lost});
  }
  return ways;
}

void CostTable::add(const Scan& scan) {
  for (std::size_t size = 0; size < kScannedSizes.size(); ++size) {
    figures_[size] += scan.figures(size);
    for (std::size_t mode = 0; mode < kModes; ++mode) {
      usual_[size][mode] += scan.cost(size, kUsualWay, static_cast<hints::Mode>(mode));
    }
    of_ways_[size].resize(ways_.size());
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      of_ways_[size][way] += scan.cost(size, ways_[way].way, hints::Mode::kCollective);
    }
  }
}

Recommendation recommend(const CostTable& costs) {
  Recommendation out;
  if (costs.figures(kUsualSize).data == 0) {
    out.reasons.emplace_back("It is zeros only, which take no space: nothing to do.");
    return out;
  }
  out.size = best_size(costs);
  say_size(costs, out);
  say_mode(costs, best_mode(costs, out.size), out);
  say_redundancy(costs, out);
  return out;
}

}  // namespace dedup::ctl
