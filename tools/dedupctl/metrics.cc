#include "tools/dedupctl/metrics.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/dedupctl/utf8.h"

namespace dedup::ctl {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : as_utf8(text)) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string gauge(const std::string& name, const std::string& help,
                  const std::vector<MetricSample>& samples) {
  if (samples.empty()) return {};
  std::string out = fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
  for (const MetricSample& sample : samples) {
    std::string labels;
    for (const auto& [label, value] : sample.labels) {
      labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", label, escaped(value));
    }
    out += labels.empty() ? fmt::format("{} {}\n", name, sample.value)
                          : fmt::format("{}{{{}}} {}\n", name, labels, sample.value);
  }
  return out;
}

}  // namespace dedup::ctl
