#include "engine/chunks/sends.h"

#include <algorithm>

namespace dedup::engine {
namespace {

bool by_target(const Send& a, const Send& b) {
  return a.target < b.target;
}

}  // namespace

std::vector<Send> list_sends(const Verdicts& verdicts) {
  std::vector<Send> list;
  for (std::uint32_t i = 0; i < verdicts.of.size(); ++i) {
    for (const NodeIndex target : verdicts[i].targets) list.push_back({target, i});
  }
  std::stable_sort(list.begin(), list.end(), by_target);
  return list;
}

std::uint32_t Sends::chunk_of(std::size_t range, std::uint64_t number) const {
  const std::size_t send = first_sends[range] + number;
  const bool is_there = send < list.size() && list[send].target == ranges[range].target;
  return is_there ? list[send].chunk : kNone;
}

std::vector<std::uint64_t> count_sends(std::span<const Send> list,
                                       std::span<const Target> targets) {
  std::vector<std::uint64_t> counts;
  for (const Target& target : targets) {
    const auto [begin, end] =
        std::equal_range(list.begin(), list.end(), Send{target.node, 0}, by_target);
    counts.push_back(static_cast<std::uint64_t>(end - begin));
  }
  return counts;
}

Sends number_sends(std::vector<Send> list, std::span<const Target> targets,
                   std::span<const std::uint64_t> before, bool last, FirstError& error) {
  const std::vector<std::uint64_t> counts = count_sends(list, targets);
  Sends out;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const Target& target = targets[t];
    std::uint64_t first = before[t];
    std::uint64_t count = counts[t];
    if (first + count > target.chunks) {
      error.note({Code::kInternal, "a node has more to send than its leader announced"});
      first = std::min(first, target.chunks);
      count = target.chunks - first;
    }
    if (first + count < target.chunks && last) {
      error.note({Code::kInternal, "a node has less to send than its leader announced"});
      count = target.chunks - first;
    }
    out.ranges.push_back({target.node, target.first + first, count});
    const auto begin = std::lower_bound(list.begin(), list.end(), Send{target.node, 0}, by_target);
    out.first_sends.push_back(static_cast<std::size_t>(begin - list.begin()));
  }
  out.list = std::move(list);
  return out;
}

}  // namespace dedup::engine
