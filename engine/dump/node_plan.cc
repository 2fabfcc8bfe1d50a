#include "engine/dump/node_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/fields.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/checked_message.h"
#include "engine/protocol/given_up.h"
#include "plan/slots.h"
#include "service/messages/store_node.h"
#include "store/segment.h"

namespace dedup::engine {
namespace {

// For headers, recipes and an index.
constexpr std::uint64_t kSpareBytes = std::uint64_t{1} << 20;

// One leader's part of the allgather; what it found out about guests follows.
struct LeaderRecord {
  std::uint64_t failed = 0;
  ChunkTotals totals;
  std::uint64_t shared_sent = 0;  // see plan::NodeState
  std::uint64_t free_bytes = 0;
};
constexpr std::size_t kRecordWords = sizeof(LeaderRecord) / sizeof(std::uint64_t);
static_assert(sizeof(LeaderRecord) == kRecordWords * sizeof(std::uint64_t));

// What a rank, or a node, has of a result that was counted, dealt as if everybody had room.
struct SharedTotals {
  std::uint64_t own = 0;  // bytes that the node keeps
  std::uint64_t sent = 0;
};

SharedTotals total_shared(const Topology& topology, const DealingRequest& request) {
  if (!request.is_counted) return {};
  std::vector<NodeIndex> nodes(topology.job_nodes());
  std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
  plan::Dealer dealer(std::move(nodes), request.copies);
  dealer.stop_copying(request.left_alone);
  const plan::SharedPart part = plan::shared_part(*request.result, topology.my_node(), dealer, 0);
  return {part.own, part.bytes_sent()};
}

// Of a result that was counted each node's ranks have a part. They learn from their leader how it
// is dealt, and say what that makes of theirs; and so do the leaders among them.
class SharedParts {
 public:
  SharedParts(const Topology& topology, const DealingRequest& request)
      : topology_(topology), request_(request) {}

  // Collective over the leaders: all nodes' parts.
  std::vector<plan::SharedPart> all(const plan::Dealer& dealer) const {
    if (topology_.node_size() > 1) {
      Bytes bytes = encoded(Told{true, dealer, {}});
      broadcast(topology_.node_comm(), 0, bytes);
    }
    const plan::SharedPart node = of_node(dealer);
    std::vector<std::uint64_t> words{node.dealt ? 1u : 0u, node.own};
    for (const plan::SharedPart::Sent& sent : node.sends) {
      words.insert(words.end(), {sent.to, sent.chunks, sent.bytes});
    }
    std::vector<plan::SharedPart> parts;
    for (const auto& said : all_gather_varying(topology_.leader_comm(), std::move(words))) {
      plan::SharedPart& part = parts.emplace_back();
      part.node = topology_.nodes()[parts.size() - 1];
      part.dealt = said[0] != 0;
      part.own = said[1];
      for (std::size_t i = 2; i < said.size(); i += 3) {
        part.sends.push_back({static_cast<NodeIndex>(said[i]), said[i + 1], said[i + 2]});
      }
    }
    return parts;
  }

  // What leaders tell the other ranks of their nodes: a dealer, of which they are to say what it
  // makes of their parts; at last the plan.
  void tell(const NodePlan& plan) const {
    if (topology_.node_size() == 1) return;
    Bytes bytes = encoded(Told{false, {}, plan});
    broadcast(topology_.node_comm(), 0, bytes);
  }
  NodePlan wait_for_plan() const {
    for (;;) {
      Bytes bytes;
      broadcast(topology_.node_comm(), 0, bytes);
      const auto told = decoded<Told>(bytes);
      if (!told) return {};
      if (!told->is_question) return told->plan;
      of_node(told->dealer);
    }
  }

 private:
  struct Told {
    bool is_question = false;
    plan::Dealer dealer;
    NodePlan plan;
  };

  // Collective over the node's ranks. On the leader, the node's part.
  plan::SharedPart of_node(const plan::Dealer& dealer) const {
    plan::SharedPart part =
        plan::shared_part(*request_.result, topology_.my_node(), dealer, store::kMostBesideChunk);
    if (topology_.node_size() == 1) return part;
    const std::vector<Bytes> parts = gather(topology_.node_comm(), encoded(part));
    for (std::size_t r = 1; r < parts.size(); ++r) {
      const auto other = decoded<plan::SharedPart>(parts[r]);
      part.dealt = part.dealt && other;
      if (other) part.add(*other);
    }
    return part;
  }

  const Topology& topology_;
  const DealingRequest& request_;
};

// Nodes that take part: from the lowest represented node on, wrapping round, so that several
// communicators of one node each do not all choose the same partners. Of the nodes that are not
// represented (guests) the first `guests`.
std::vector<NodeIndex> participants(const Topology& topology, std::size_t guests) {
  std::vector<NodeIndex> nodes;
  for (NodeIndex i = 0; i < topology.job_nodes(); ++i) {
    const auto node = static_cast<NodeIndex>((topology.nodes().front() + i) % topology.job_nodes());
    if (!topology.represented(node)) {
      if (guests == 0) continue;
      --guests;
    }
    nodes.push_back(node);
  }
  return nodes;
}

class Leader {
 public:
  Leader(const Topology& topology, service::Client& client, const DealingRequest& request,
         const SharedParts& parts)
      : topology_(topology), client_(client), request_(request), parts_(parts) {}

  // `totals`, `shared`, `failed`: of the whole node. False if some node failed or there is no room.
  bool deal(const ChunkTotals& totals, const SharedTotals& shared, bool failed,
            std::vector<NodeIndex>& order, plan::Dealing& dealing, Status& failure) {
    shared_ = shared;
    const std::size_t unrepresented = topology_.job_nodes() - topology_.nodes().size();
    // Enough to choose from without asking a large job's every node for a small communicator's
    // sake.
    const std::size_t some =
        std::min(unrepresented,
                 std::max<std::size_t>(topology_.nodes().size(), std::size_t{4} * request_.copies));
    // Guests give up nothing that they keep before all have been asked without that.
    for (std::size_t guests = some;; guests = unrepresented) {
      const std::vector<NodeIndex> nodes = participants(topology_, guests);
      std::vector<plan::NodeState> states;
      if (!gather(nodes, totals, failed, states, failure)) return false;
      plan::DealingInput input{request_.copies,
                               request_.ring,
                               store::kMostBesideChunk,
                               states,
                               nullptr,
                               order,
                               request_.group,
                               request_.turn,
                               request_.longest_chunk,
                               request_.left_alone,
                               nullptr};
      if (request_.is_counted) {
        input.shared = [&](const plan::Dealer& dealer) { return parts_.all(dealer); };
      } else {
        input.result = request_.result;
      }
      dealing = plan::deal_all(input);
      if (dealing.feasible || unrepresented == 0 || guests_give_up_) break;
      guests_give_up_ = guests == unrepresented;
    }
    if (!dealing.feasible) {
      failure = no_space(dealing);
      return false;
    }
    order = dealing.dealer.order();
    return true;
  }

 private:
  // Asks for the free space of this node and of its share of the guests.
  std::vector<std::uint64_t> ask(const std::vector<NodeIndex>& guests, LeaderRecord& mine,
                                 Status& failure) {
    const std::size_t leaders = topology_.nodes().size();
    const std::size_t share = (guests.size() + leaders - 1) / leaders;
    std::vector<std::uint64_t> free(share);
    std::vector<service::Client::Pending<service::Space>> pending;
    service::Space request{request_.identity, bytes_needed(mine.totals), guests_give_up_};
    for (std::size_t i = position(); i < guests.size(); i += leaders) {
      pending.push_back(client_.start(guests[i], request));
    }
    request.gives_up = true;
    const auto own = client_.call(client_.self(), request);
    if (own.is_ok()) {
      mine.free_bytes = own->free_bytes;
      say_given_up(client_.node_name(client_.self()), *own);
    } else {
      mine.failed = 1;
      failure = own.status();
    }
    // A guest that does not answer gets nothing.
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const auto reply = pending[i].wait();
      if (!reply.is_ok()) continue;
      free[i] = reply->free_bytes;
      say_given_up(client_.node_name(guests[position() + i * leaders]), *reply);
    }
    return free;
  }

  // About what a node will have to store if the load is even: short of that it makes room.
  std::uint64_t bytes_needed(const ChunkTotals& mine) const {
    if (request_.is_counted) {
      // What it keeps of what others have, too, and as much as it sends from others.
      const std::uint64_t unique = request_.left_alone == 0 ? request_.copies : 1;
      return kSpareBytes + unique * mine.new_bytes + shared_.own + shared_.sent;
    }
    std::uint64_t shared = 0;
    for (const auto& element : request_.result->elements()) shared += element.length;
    const std::size_t leaders = topology_.nodes().size();
    shared /= leaders;
    if (request_.left_alone == 0) return kSpareBytes + request_.copies * (mine.new_bytes + shared);
    return kSpareBytes + mine.new_bytes + request_.left_alone * shared;
  }

  bool gather(const std::vector<NodeIndex>& nodes, const ChunkTotals& totals, bool failed,
              std::vector<plan::NodeState>& states, Status& failure) {
    std::vector<NodeIndex> guests;
    for (const NodeIndex node : nodes) {
      if (!topology_.represented(node)) guests.push_back(node);
    }
    LeaderRecord mine{failed ? 1u : 0u, totals, shared_.sent, 0};
    const std::vector<std::uint64_t> free = ask(guests, mine, failure);
    std::vector<std::uint64_t> words(kRecordWords + free.size());
    std::memcpy(words.data(), &mine, sizeof mine);
    std::copy(free.begin(), free.end(), words.begin() + kRecordWords);
    const std::size_t leaders = topology_.nodes().size();
    const std::vector<std::uint64_t> all = all_gather(topology_.leader_comm(), words);

    bool sound = true;
    std::size_t guest = 0;
    for (const NodeIndex node : nodes) {
      if (!topology_.represented(node)) {
        const std::uint64_t* record = &all[guest % leaders * words.size()];
        states.push_back(
            {node, record[kRecordWords + guest / leaders], 0, 0, 0, 0, domain_of(node)});
        ++guest;
        continue;
      }
      const auto at = std::lower_bound(topology_.nodes().begin(), topology_.nodes().end(), node) -
                      topology_.nodes().begin();
      LeaderRecord record;
      std::memcpy(static_cast<void*>(&record), &all[static_cast<std::size_t>(at) * words.size()],
                  sizeof record);
      sound = sound && record.failed == 0;
      states.push_back({node, record.free_bytes, record.totals.new_chunks, record.totals.new_bytes,
                        record.totals.held_chunks, record.totals.held_bytes, domain_of(node),
                        record.shared_sent});
    }
    return sound;
  }

  std::uint32_t domain_of(NodeIndex node) const { return client_.live().domain_of(node); }

  // This node's place among the leaders.
  std::size_t position() const {
    int rank;
    PMPI_Comm_rank(topology_.leader_comm(), &rank);
    return static_cast<std::size_t>(rank);
  }

  Status no_space(const plan::Dealing& dealing) const {
    std::string text = "the stores have no room";
    if (request_.left_alone == 0) text += " for " + std::to_string(request_.copies) + " copies";
    text += ": " + std::to_string(dealing.bytes_short) + " bytes short in all";
    if (dealing.tightest != kNoNode) {
      text += ", " + std::to_string(dealing.tightest_short) + " of them on node " +
              client_.node_name(dealing.tightest);
    }
    return {Code::kNoSpace, text};
  }

  const Topology& topology_;
  service::Client& client_;
  const DealingRequest& request_;
  const SharedParts& parts_;
  SharedTotals shared_;
  bool guests_give_up_ = false;
};

// What of the dealing concerns this node's ranks.
NodePlan node_part(const Topology& topology, const plan::Dealing& dealing,
                   std::uint64_t slots_per_round) {
  NodePlan out;
  out.proceed = true;
  out.dealer = dealing.dealer;
  for (std::size_t i = 0; i < dealing.flows.size();) {
    const NodeIndex to = dealing.flows[i].to;
    const bool reached = topology.represented(to);
    std::uint64_t incoming = 0;
    for (; i < dealing.flows.size() && dealing.flows[i].to == to; ++i) {
      const plan::Flow& flow = dealing.flows[i];
      if (reached && flow.from == topology.my_node()) {
        out.targets.push_back({to, incoming, flow.chunks});
      }
      incoming += flow.chunks;
    }
    if (!reached) continue;
    if (to == topology.my_node()) out.incoming = incoming;
    const plan::SlotGrid grid{topology.ranks_on(to).size(), slots_per_round};
    out.rounds = std::max(out.rounds, grid.rounds(incoming));
  }
  return out;
}

}  // namespace

NodePlan agree_on_dealing(const Topology& topology, service::Client& client,
                          const DealingRequest& request, std::vector<NodeIndex>& order,
                          Status& failure) {
  const SharedTotals shared = total_shared(topology, request);
  std::array<std::uint64_t, 7> mine{request.mine.new_chunks,
                                    request.mine.new_bytes,
                                    request.mine.held_chunks,
                                    request.mine.held_bytes,
                                    shared.own,
                                    shared.sent,
                                    request.status.is_ok() ? 0u : 1u};
  std::array<std::uint64_t, 7> sum = mine;
  std::array<std::uint64_t, 7> before{};
  if (topology.node_size() > 1) {
    PMPI_Reduce(mine.data(), sum.data(), static_cast<int>(sum.size()), MPI_UINT64_T, MPI_SUM, 0,
                topology.node_comm());
    PMPI_Exscan(mine.data(), before.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_SUM,
                topology.node_comm());
    if (topology.is_leader()) before = {};
  }
  NodePlan plan;
  const SharedParts parts(topology, request);
  if (topology.is_leader()) {
    plan::Dealing dealing;
    Leader leader(topology, client, request, parts);
    const ChunkTotals all{sum[0], sum[1], sum[2], sum[3]};
    if (leader.deal(all, {sum[4], sum[5]}, sum[6] != 0, order, dealing, failure)) {
      plan = node_part(topology, dealing, request.slots_per_round);
      plan.all = all;
    }
    parts.tell(plan);
  } else {
    plan = parts.wait_for_plan();
  }
  plan.before = {before[0], before[1], before[2], before[3]};
  return plan;
}

}  // namespace dedup::engine
