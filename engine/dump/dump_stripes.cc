#include "engine/dump/dump_stripes.h"

#include <algorithm>
#include <utility>

#include "engine/chunks/own_chunks.h"
#include "engine/mpi/comm_ranks.h"
#include "plan/stripe_content.h"
#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

// A stripe is made only if its units fit into such a part of hints.buffer.
constexpr std::uint64_t kReceivedPart = 8;

// Units from where the program has them.
class UnitsInMemory : public UnitSource {
 public:
  explicit UnitsInMemory(const OwnUnits& own) : own_(own) {}
  void list(std::span<MovedUnit> units) override {
    for (MovedUnit& unit : units) unit.chunks = own_.unit(unit.number);
  }
  void read(std::span<MovedUnit> units) override {
    for (MovedUnit& unit : units) {
      auto seals = own_.read(unit.number, unit.to);
      if (seals) {
        unit.seals = *std::move(seals);
      } else {
        unit.chunks.clear();
      }
    }
  }

 private:
  const OwnUnits& own_;
};

}  // namespace

// For a node speaks its rank that is as far from the node's lowest one as this rank from its own's.
class DumpStripes::LaneRanks : public CommRanks {
 public:
  explicit LaneRanks(const Topology& topology) : CommRanks(topology.comm()), topology_(topology) {}
  int speaker_for(NodeIndex node) const override {
    return topology_.ranks_on(node)[static_cast<std::size_t>(topology_.node_rank())];
  }

 private:
  const Topology& topology_;
};

DumpStripes::DumpStripes(const Topology& topology, service::Client& client, const Id128& identity,
                         const hints::Hints& hints, const Round& round)
    : topology_(topology), client_(client), identity_(identity), hints_(hints), round_(round) {}

DumpStripes::~DumpStripes() = default;

// The same on all ranks.
bool DumpStripes::may_be_made() const {
  return round_.shape.is_possible() && round_.most_bytes >= plan::kUnitBytes &&
         hints_.buffer / kReceivedPart >= std::uint64_t{round_.shape.data} * plan::kUnitBytes;
}

// The nodes whose ranks make stripes with this one.
std::vector<NodeIndex> DumpStripes::partners() const {
  const auto lane = static_cast<std::size_t>(topology_.node_rank());
  for (auto& nodes : plan::stripe_groups(client_.live(), round_.shape, hints_.group)) {
    if (std::find(nodes.begin(), nodes.end(), topology_.my_node()) == nodes.end()) continue;
    std::erase_if(nodes, [&](NodeIndex node) { return topology_.ranks_on(node).size() <= lane; });
    return nodes;
  }
  return {};
}

void DumpStripes::choose(const NamedChunks& chunks, Verdicts& verdicts, FirstError& error) {
  if (!may_be_made()) return;
  std::vector<NodeIndex> nodes = partners();
  if (nodes.size() < round_.shape.data + round_.shape.parities) return;
  ranks_ = std::make_unique<LaneRanks>(topology_);
  group_.emplace(std::move(nodes), *ranks_);
  const NodeIndex node = topology_.my_node();
  units_.emplace(chunks, verdicts, node, round_.shape.data);
  const std::vector<NodeUnits> mine{{node, units_->count(), units_->longest()}};
  const auto turn =
      static_cast<std::uint32_t>(round_.number) + static_cast<std::uint32_t>(topology_.node_rank());
  auto stripes = agree_on_stripes(*group_, round_.shape, mine, turn, longest_);
  error.note(stripes.status());
  if (!stripes.is_ok()) return;
  stripes_ = *std::move(stripes);
  // Of what others are left with at the commit, they make better ones.
  std::erase_if(stripes_,
                [&](const NewStripe& stripe) { return stripe.units.size() < round_.shape.data; });
  for (const NewStripe& stripe : stripes_) {
    const auto slot = stripe.slot_of(node);
    if (slot) units_->place(stripe.units[*slot], plan::Placement::in_stripe(stripe.unit(*slot)));
  }
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    if (verdicts[i].keep) bytes_kept_ += chunks.length(i);
  }
}

void DumpStripes::make(const std::function<bool()>& store_some, ChunkWriter& writer,
                       FirstError& error) {
  if (stripes_.empty()) return;
  std::uint64_t parts = (bytes_kept_ + OwnChunks::kAtOnce - 1) / OwnChunks::kAtOnce;
  const auto store_share = [&](std::size_t rounds_left) {
    for (std::uint64_t now = (parts + rounds_left - 1) / rounds_left; now > 0; --now) {
      parts = store_some() ? parts - 1 : 0;
      if (parts == 0) break;
    }
  };
  UnitsInMemory source(*units_);
  StripeMaker maker(client_, source, *group_, {identity_, 0, store_share});
  const std::vector<bool> made = maker.make(stripes_, longest_);
  figures_ = maker.figures();
  error.note(join(made, writer));
}

// As JoinStripes: the node keeps a table of each of its units.
Status DumpStripes::join(const std::vector<bool>& made, ChunkWriter& writer) {
  const NodeIndex node = topology_.my_node();
  service::PutChunks tables{identity_, {}, {}};
  std::size_t bytes = 0;
  const auto put = [&]() -> Status {
    if (tables.chunks.empty()) return Status::ok();
    DEDUP_TRY(client_.call(node, tables).status());
    tables = {identity_, {}, {}};
    bytes = 0;
    return Status::ok();
  };
  for (std::size_t i = 0; i < stripes_.size(); ++i) {
    const auto slot = stripes_[i].slot_of(node);
    if (!slot) continue;
    const plan::StripeUnit stripe = stripes_[i].unit(*slot);
    const std::uint32_t number = stripes_[i].units[*slot];
    if (!made[i]) {
      units_->take_back(number);
      writer.correct(plan::Placement::in_stripe(stripe), plan::Placement::copies_on({node}));
      continue;
    }
    const plan::UnitChunks unit = units_->unit(number);
    Bytes table = plan::encode_stripe_table({&unit, 1});
    bytes += table.size();
    tables.chunks.push_back(service::PutChunk::sealed(
        plan::part_name(stripe.stripe, plan::Part::kUnitTable, stripe.unit),
        static_cast<std::uint32_t>(tables.placements.size()), std::move(table)));
    tables.placements.push_back(plan::placement_of_parts(stripe));
    if (bytes >= service::kPayload / 2) DEDUP_TRY(put());
  }
  return put();
}

}  // namespace dedup::engine
