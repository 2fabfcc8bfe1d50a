#include "tools/dedupctl/node_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tools/dedupctl/table.h"

namespace dedup::ctl {
namespace {

std::string count(std::uint64_t number, std::string_view one) {
  return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

std::string remarks(const NodeState& node) {
  if (!node.is_here) return fmt::format("missing, with {}", count(node.files, "file"));
  std::string text;
  if (node.open > 0) text = fmt::format("{} written to", count(node.open, "file"));
  if (node.behind > 0) {
    text += fmt::format("{}{} behind", text.empty() ? "" : ", ", count(node.behind, "file"));
  }
  return text;
}

std::string bytes(double number) {
  return human(static_cast<std::uint64_t>(number));
}

}  // namespace

std::vector<std::optional<double>> rates(const Watched& before, const Watched& now,
                                         double seconds) {
  std::vector<std::optional<double>> out;
  for (const NodeState& node : now.nodes) {
    const auto was = std::ranges::find(before.nodes, node.node, &NodeState::node);
    const bool is_known = was != before.nodes.end() && was->is_here && node.is_here && seconds > 0;
    out.push_back(is_known ? std::optional((static_cast<double>(node.stored) -
                                            static_cast<double>(was->stored)) /
                                           seconds)
                           : std::nullopt);
  }
  return out;
}

std::string rate_text(double bytes_a_second) {
  return fmt::format("{}{}/s", bytes_a_second <= -1 ? "-" : "", bytes(std::abs(bytes_a_second)));
}

std::string text_of(const Watched& now, const std::vector<std::optional<double>>& changes,
                    const std::optional<Moved>& moved) {
  Table table({"NODE", "FILES", "STORED", "CHANGE", "DEAD", "NOT COMMITTED", "FREE", ""},
              {1, 2, 3, 4, 5, 6});
  for (std::size_t i = 0; i < now.nodes.size(); ++i) {
    const NodeState& node = now.nodes[i];
    const bool has_change = i < changes.size() && changes[i].has_value();
    const auto if_here = [&](std::uint64_t number) {
      return node.is_here ? human(number) : std::string("-");
    };
    table.add({node.node, std::to_string(node.files), if_here(node.stored),
               has_change ? rate_text(*changes[i]) : "-", if_here(node.dead),
               if_here(node.uncommitted), if_here(node.free), remarks(node)});
  }
  std::string out = table.text() + "\n" + count(now.files, "file");
  if (now.open > 0) out += fmt::format(", {} written to", now.open);
  if (now.to_heal > 0) {
    out += fmt::format(", {} on fewer nodes than wanted, or damaged: dedupctl heal", now.to_heal);
  }
  if (now.to_write_back > 0)
    out += fmt::format(", {} to be written back", human(now.to_write_back));
  out += "\n";
  if (moved) {
    out += fmt::format("{} since the start: {} written, {} stored, {} sent\n",
                       count(moved->commits, "commit"), bytes(moved->written), bytes(moved->stored),
                       bytes(moved->sent));
  }
  return out;
}

}  // namespace dedup::ctl
