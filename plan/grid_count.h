// One node's part in counting on a grid (plan/grid.h): what it asks, what it passes on along its
// row and column, what it counts as a home, and the answers on their way back. Who moves the
// messages calls the steps in this order, on all nodes:
//
//   ask            to row(), from row():        take_row
//   ask_homes      to column(), from column():  take_column      (with several rows)
//   count, counted                              sums over all nodes: see Weights
//   answer         to column(), from column():  take_answers     (with several rows)
//   answer_row     to row(), from row():        take
//
// A message for each node of the row or column, in its order, this one included; what is for a
// guest of the row, or from it, is empty where it has no part. What a node asks one home stays
// together in a frame, which who passes it on does not open: he sorts frames by where they go.
// Pure; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/count.h"
#include "plan/grid.h"
#include "plan/question.h"

namespace dedup::plan {

class GridCount {
 public:
  // `nodes`: those on the grid, by place, of `job_nodes`; both must outlive it, and so must the
  // grid. `copies`: K, at most `job_nodes`.
  GridCount(const Grid& grid, const std::vector<NodeIndex>& nodes, std::uint32_t place,
            unsigned copies, NodeIndex job_nodes);

  const std::vector<std::uint32_t>& row() const { return row_; }
  // Empty if there is one row, or this is a guest.
  const std::vector<std::uint32_t>& column() const { return column_; }

  std::vector<Bytes> ask(const Questions& mine);
  void take_row(std::vector<Bytes> from);
  std::vector<Bytes> ask_homes();
  void take_column(std::vector<Bytes> from);

  void count(const SettledChunks& settled);
  NameCount& counted() { return *count_; }

  // `weights`: null if there is no choice.
  std::vector<Bytes> answer(const Weights* weights);
  void take_answers(std::vector<Bytes> from);
  std::vector<Bytes> answer_row();
  // To what was asked.
  Answers take(const std::vector<Bytes>& from);

  // Whether all that came was what the others sent. If not, some answers say that nobody else has a
  // chunk.
  bool is_sound() const { return is_sound_; }

  // What was counted here, until this is destroyed.
  const Questions& asked() const { return together_.questions; }
  const Answers& answers() const { return answers_; }

 private:
  // Of a message: with its size, and what is in it.
  struct Frame {
    std::span<const std::byte> whole;
    std::span<const std::byte> content;
  };

  bool is_home() const { return grid_.is_home(place_); }
  std::vector<Frame> frames(const Bytes& message, std::size_t count);
  std::vector<Bytes> sorted_frames(const std::vector<Bytes>& from, std::size_t count);
  void put_answers(BitWriter& message, std::size_t part) const;

  const Grid& grid_;
  const std::vector<NodeIndex>& nodes_;
  std::uint32_t place_;
  unsigned copies_;
  NodeIndex job_nodes_;
  std::vector<std::uint32_t> row_;
  std::vector<std::uint32_t> column_;
  std::vector<std::uint32_t> asked_;  // by home: how many questions of this node
  std::vector<Bytes> passing_;        // what came for others, until it is passed on
  Gathering::Together together_;      // a part for each node that asked, row by row
  std::optional<NameCount> count_;
  Answers answers_;
  bool is_sound_ = true;
};

}  // namespace dedup::plan
