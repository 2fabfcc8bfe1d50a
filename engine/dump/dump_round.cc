#include "engine/dump/dump_round.h"

#include <algorithm>
#include <utility>

#include "base/hooks.h"
#include "engine/chunks/copies.h"
#include "engine/chunks/first_error.h"
#include "engine/chunks/judge.h"
#include "engine/chunks/known_chunks.h"
#include "engine/chunks/name_chunks.h"
#include "engine/chunks/node_chunks.h"
#include "engine/chunks/sends.h"
#include "engine/chunks/settle.h"
#include "engine/chunks/stored_chunks.h"
#include "engine/chunks/timer.h"
#include "engine/dump/dump_stripes.h"
#include "engine/dump/node_exchange.h"
#include "engine/dump/node_plan.h"
#include "engine/dump/reduction.h"
#include "engine/dump/store_and_exchange.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/counts.h"
#include "engine/mpi/pace.h"
#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

// The chunks of a rank, and which of them may be elsewhere too.
NamedChunks find_names(DumpState& state, CutChunks cut, FirstError& error) {
  // Only a keyed name can be that of a single chunk. Others are all taken for shared.
  std::vector<std::uint8_t> may_have_twin(cut.size(), 1);
  if (state.namer->is_keyed()) {
    std::vector<std::uint64_t> parts;
    parts.reserve(cut.size());
    const std::uint64_t mask = twin_mask();
    for (std::uint32_t i = 0; i < cut.size(); ++i) parts.push_back(cut.name(i).prefix() & mask);
    may_have_twin = state.twins.find(parts);
  }
  NamedChunks named(std::move(cut), NamedChunks::Kind::kOpen);
  state.stored.find_committed(named);
  share_twins(named, may_have_twin);
  error.note(state.stored.look(named, state.round));
  name_the_rest(named, state.singles, state.writer.log());
  return named;
}

NamedChunks cut_and_name(DumpState& state, RunCursor& cursor, std::uint64_t most,
                         DumpResult& result, FirstError& error) {
  DumpStats& stats = result.stats;
  const PacedHashing paced;
  const std::uint64_t before = stats.bytes_fingerprinted;
  CutChunks cut = state.deduplicates()
                      ? cut_distinct(cursor, most, *state.namer, result.pieces, error)
                      : cut_numbered(cursor, most, state.numbers, result.pieces);
  const bool took_sha256 = state.deduplicates() && !state.namer->is_keyed();
  if (took_sha256) stats.bytes_fingerprinted += cut.sums().cut - cut.sums().zero;
  stats.bytes_written += cut.sums().cut;
  stats.bytes_zero += cut.sums().zero;
  stats.bytes_unique_local += cut.sums().unique;
  NamedChunks named = state.deduplicates()
                          ? find_names(state, std::move(cut), error)
                          : NamedChunks(std::move(cut), NamedChunks::Kind::kSingle);
  stats.bytes_stored_before += named.held_bytes();
  paced.done(stats.bytes_fingerprinted - before);
  return named;
}

// What the node has, as far as this rank is to decide about it.
NodeView see_node(DumpState& state, NamedChunks& chunks, NodeExchange& within, FirstError& error) {
  NodeView view{state.topology.my_node(), {}, {}, state.keeping.wanted};
  if (!state.deduplicates()) return view;
  view.chunks = within.gather(chunks.take_records(), error);
  view.known = look_up(view.chunks, state.settled, view.node, state.client.live());
  return view;
}

// So few chunks, on all ranks together, go up a tree that leaves none of them out: it takes fewer
// messages.
constexpr std::uint64_t kFewChunks = 4096;

// Whether the round's chunks are counted at homes. Those of a generation that remember some are
// asked again.
bool is_to_count(const DumpState& state, const NodeView& view) {
  if (!state.may_count()) return false;
  const std::uint64_t all = all_sum(state.topology.comm(), view.chunks.size());
  return state.has_counted || all > std::min<std::uint64_t>(kFewChunks, state.hints.threshold);
}

// The chunks that several nodes have; none in other modes than `collective`. Where they are
// counted, those of them that this rank has.
plan::FrequentSet reduce_over_nodes(DumpState& state, const NodeView& view, std::uint32_t outside,
                                    DumpStats& stats, FirstError& error) {
  state.counts = is_to_count(state, view);
  state.has_counted = state.has_counted || state.counts;
  if (!state.is_collective()) return {};
  const plan::ReduceLimits limits{state.keeping.copies, state.hints.threshold,
                                  state.topology.job_nodes()};
  ReductionCost cost;
  auto reduced = state.counts
                     ? state.counting.count(view, outside, state.keeping.copies, cost)
                     : reduce(state.topology, frequent_part(view, outside, limits), limits, &cost);
  stats.bytes_reducing += cost.bytes;
  stats.merges += cost.merges;
  error.note(reduced.status());
  return reduced.is_ok() ? std::move(*reduced) : plan::FrequentSet{};
}

NodePlan make_plan(DumpState& state, const NodeView& view, const NamedChunks& chunks,
                   const plan::FrequentSet& frequent, std::size_t longest, FirstError& error) {
  DealingRequest request;
  request.copies = state.keeping.copies;
  request.left_alone = state.keeping.left_alone;
  request.ring = !state.is_collective() || state.hints.partners == hints::Partners::kRing;
  request.group = !request.ring && state.hints.group > 1 ? state.hints.group : 0;
  request.turn = static_cast<std::uint32_t>(state.round.number);
  request.longest_chunk = static_cast<std::uint32_t>(longest);
  request.slots_per_round =
      state.exchange->slots_per_round(CopyHeader::size(state.keeping.copies), longest);
  request.identity = state.identity;
  request.result = &frequent;
  request.is_counted = state.counts;
  request.mine = total(view, chunks, frequent);
  request.status = error.status();
  // An order is made for groups, or for none.
  if (std::exchange(state.ordered_for, {request.ring, request.group}) !=
      std::pair(request.ring, request.group)) {
    state.order.clear();
  }
  Status failure;
  NodePlan plan = agree_on_dealing(state.topology, state.client, request, state.order, failure);
  error.note(failure);
  return plan;
}

Verdicts find_verdicts(DumpState& state, NodeView view, const NamedChunks& chunks,
                       const plan::FrequentSet& frequent, const NodePlan& plan,
                       NodeExchange& within, FirstError& error) {
  PartTurns turns(plan.dealer, view.node, plan.before, plan.all);
  Numbered<Verdict> list;
  std::vector<std::uint32_t> answers;
  if (state.deduplicates()) {
    const NodeVerdicts judged = judge(view, frequent, plan.dealer, turns, error);
    view.known = {};
    auto answered = within.answer(std::move(view.chunks), judged, list);
    error.note(answered.status());
    if (answered.is_ok()) answers = std::move(*answered);
  }
  return judge_own(chunks, view.node, plan.dealer, answers, std::move(list), turns, error);
}

// Which copies this rank sends, and the numbers that they have among those that each target
// receives: after those of this node's lower ranks.
Sends prepare_sends(const Topology& topology, const Verdicts& verdicts,
                    const std::vector<Target>& targets, FirstError& error) {
  std::vector<Send> list = list_sends(verdicts);
  const std::vector<std::uint64_t> counts = count_sends(list, targets);
  std::vector<std::uint64_t> before(counts.size());
  if (topology.node_size() > 1 && !targets.empty()) {
    PMPI_Exscan(counts.data(), before.data(), count_of(counts.size()), MPI_UINT64_T, MPI_SUM,
                topology.node_comm());
    if (topology.is_leader()) std::fill(before.begin(), before.end(), 0);
  }
  const bool last = topology.node_rank() == topology.node_size() - 1;
  return number_sends(std::move(list), targets, before, last, error);
}

// Chunks go to this node's store, and copies to others.
void move_chunks(DumpState& state, const NamedChunks& chunks, const Verdicts& verdicts,
                 const Sends& sends, const plan::FrequentSet& frequent, const NodePlan& plan,
                 std::size_t longest, DumpStripes& stripes, DumpStats& stats, FirstError& error) {
  if (plan.rounds != 0) ++state.exchanges;
  const ExchangeShape shape{CopyHeader::size(state.keeping.copies), longest, state.exchanges,
                            state.round};
  Moved moved;
  {
    const Timer timer(stats.seconds_exchanging);
    moved = store_and_exchange(chunks, verdicts, sends, frequent, plan, shape, *state.exchange,
                               stripes, state.writer, error);
    put_to_guests(chunks, verdicts, sends, state.topology, state.writer, error);
  }
  for (const Send& send : sends.list) stats.bytes_sent += chunks.length(send.chunk);
  stats.bytes_sent += stripes.figures().sent_bytes;
  stats.bytes_stored += stripes.figures().stored_bytes;
  stats.bytes_unique_collective += moved.bytes_kept;
  stats.bytes_received += moved.bytes_received;
  stats.seconds_exchanging -= moved.seconds_storing;
  stats.seconds_storing += moved.seconds_storing;
  const Timer timer(stats.seconds_storing);
  error.note(state.writer.write_out());
}

}  // namespace

Status dump_round(DumpState& state, RunCursor& cursor, std::uint64_t most, std::size_t longest,
                  Numbered<plan::Placement>& placements, DumpResult& result) {
  DumpStats& stats = result.stats;
  FirstError error;
  ++state.round.number;
  NamedChunks chunks;
  {
    const Timer timer(stats.seconds_hashing);
    chunks = cut_and_name(state, cursor, most, result, error);
  }
  failpoint("dump.hashed");

  plan::FrequentSet frequent;
  NodePlan plan;
  Verdicts verdicts;
  Sends sends;
  DumpStripes stripes(state.topology, state.client, state.identity, state.hints,
                      {state.round.number, most * longest, state.keeping.stripes});
  {
    const Timer timer(stats.seconds_reducing);
    NodeExchange within(state.topology);
    NodeView view = see_node(state, chunks, within, error);
    frequent = reduce_over_nodes(state, view, chunks.singles(), stats, error);
    plan = make_plan(state, view, chunks, frequent, longest, error);
    if (plan.proceed) {
      verdicts = find_verdicts(state, std::move(view), chunks, frequent, plan, within, error);
      sends = prepare_sends(state.topology, verdicts, plan.targets, error);
      stripes.choose(chunks, verdicts, error);
    }
  }
  if (plan.proceed) {
    failpoint("dump.storing");
    move_chunks(state, chunks, verdicts, sends, frequent, plan, longest, stripes, stats, error);
    failpoint("dump.stored");
  }
  sends = {};

  const Timer timer(stats.seconds_storing);
  const Status all = agree(state.topology.comm(), error.status(), Waiting::kPatient);
  stats.bytes_stored += state.writer.bytes_stored();
  const Status registered = state.writer.settle(all.is_ok());
  if (!all.is_ok()) return all;
  finish_pieces(chunks, verdicts, placements);
  if (state.counts) {
    state.counting.settle(plan.dealer);
  } else if (state.deduplicates()) {
    state.settled.add(
        settled_part(frequent, plan.dealer, state.topology.node_rank(), lanes_of(state.topology)),
        frequent.elements().size());
  }
  return agree(state.topology.comm(), registered, Waiting::kPatient);
}

}  // namespace dedup::engine
