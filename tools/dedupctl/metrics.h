// The text format of Prometheus, as node_exporter's textfile collector reads it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dedup::ctl {

struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels;  // name, and value as it is
  std::uint64_t value = 0;
};

// A gauge, which may be more or less each time: its HELP and TYPE lines, then its samples, no two
// of which have the same labels. Values of labels are escaped, and what in them is not UTF-8, which
// the format wants, is replaced by U+FFFD. `help` is one line. Nothing if there are no samples.
std::string gauge(const std::string& name, const std::string& help,
                  const std::vector<MetricSample>& samples);

}  // namespace dedup::ctl
