#include "tools/dedupctl/interval.h"

#include <cmath>

namespace dedup::ctl {

double young_interval(const CheckpointCost& cost) {
  return std::sqrt(2 * cost.write * cost.mtbf);
}

double daly_interval(const CheckpointCost& cost) {
  const double ratio = cost.write / (2 * cost.mtbf);
  if (ratio >= 1) return cost.mtbf;
  return young_interval(cost) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost.write;
}

double time_lost(const CheckpointCost& cost, double interval) {
  const double of_interval = cost.mtbf * std::exp(cost.restart / cost.mtbf) *
                             std::expm1((interval + cost.write) / cost.mtbf);
  return 1 - interval / of_interval;
}

}  // namespace dedup::ctl
