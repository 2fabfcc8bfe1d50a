// Counting on a grid, all nodes in one program: their messages are handed over by hand
// (plan/grid_count.h).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plan/grid_count.h"

namespace dedup::test {

struct CountedEverywhere {
  std::vector<plan::Answers> answers;  // by place, to what was asked
  std::optional<plan::Weights> weights;
  std::vector<std::uint64_t> load;  // by node of the job
  std::size_t most_messages = 0;    // that a node sends at once, itself included
};

// `asked`, `outside` (chunks of its own beside): by place.
inline CountedEverywhere count_everywhere(const plan::Grid& grid,
                                          const std::vector<NodeIndex>& nodes, NodeIndex job_nodes,
                                          unsigned copies,
                                          const std::vector<plan::Questions>& asked,
                                          const std::vector<std::uint32_t>& outside,
                                          const plan::SettledChunks& settled) {
  using plan::GridCount;
  CountedEverywhere out;
  std::vector<std::unique_ptr<GridCount>> counts;
  for (std::uint32_t p = 0; p < nodes.size(); ++p) {
    counts.push_back(std::make_unique<GridCount>(grid, nodes, p, copies, job_nodes));
  }
  std::vector<std::vector<Bytes>> messages(nodes.size());
  // What each gets from those in its row, or column.
  const auto carry = [&](const std::vector<std::uint32_t>& (GridCount::*places)() const) {
    std::vector<std::vector<Bytes>> from(nodes.size());
    for (std::uint32_t p = 0; p < nodes.size(); ++p) {
      const auto& mine = (*counts[p].*places)();
      out.most_messages = std::max(out.most_messages, mine.size());
      for (const std::uint32_t other : mine) {
        const auto& theirs = (*counts[other].*places)();
        const auto me = std::find(theirs.begin(), theirs.end(), p) - theirs.begin();
        from[p].push_back(std::move(messages[other][static_cast<std::size_t>(me)]));
      }
    }
    messages = std::move(from);
  };
  const auto each = [&](const auto& step) {
    for (std::uint32_t p = 0; p < nodes.size(); ++p) step(*counts[p], p);
  };
  each([&](GridCount& count, std::uint32_t p) { messages[p] = count.ask(asked[p]); });
  carry(&GridCount::row);
  each([&](GridCount& count, std::uint32_t p) { count.take_row(std::move(messages[p])); });
  each([&](GridCount& count, std::uint32_t p) { messages[p] = count.ask_homes(); });
  carry(&GridCount::column);
  plan::Loads all(job_nodes);
  each([&](GridCount& count, std::uint32_t p) {
    count.take_column(std::move(messages[p]));
    count.count(settled);
    count.counted().add_to(all);
    all.fixed[nodes[p]] += outside[p];
  });
  out.weights.emplace(all);
  std::vector<std::uint64_t> chosen;
  for (int i = 0; i <= plan::Weights::kMostCorrections; ++i) {
    chosen.assign(job_nodes, 0);
    each([&](GridCount& count, std::uint32_t) {
      count.counted().count_chosen(*out.weights, chosen);
    });
    if (i == plan::Weights::kMostCorrections || out.weights->correct(chosen)) break;
  }
  for (NodeIndex n = 0; n < job_nodes; ++n) out.load.push_back(all.fixed[n] + chosen[n]);
  each([&](GridCount& count, std::uint32_t p) { messages[p] = count.answer(&*out.weights); });
  carry(&GridCount::column);
  each([&](GridCount& count, std::uint32_t p) { count.take_answers(std::move(messages[p])); });
  each([&](GridCount& count, std::uint32_t p) { messages[p] = count.answer_row(); });
  carry(&GridCount::row);
  each([&](GridCount& count, std::uint32_t p) {
    out.answers.push_back(count.take(messages[p]));
    EXPECT_TRUE(count.is_sound());
  });
  return out;
}

}  // namespace dedup::test
