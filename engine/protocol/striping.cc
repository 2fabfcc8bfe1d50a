#include "engine/protocol/striping.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/fields.h"
#include "engine/protocol/chunk_source.h"
#include "engine/protocol/failpoint.h"
#include "engine/protocol/stored_units.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kUnitsAtOnce = 64;

void note(Status& status, const Status& other) {
  if (status.is_ok()) status = other;
}

// The same request to each node of a group that this rank speaks for, at the same time; calls
// each(node, reply) for those that succeed.
template <typename Request, typename Each>
void ask_own(const JobFile& file, const StripeGroup& group, const Request& request, Status& status,
             const Each& each) {
  std::deque<std::pair<NodeIndex, service::Client::Pending<Request>>> pending;
  for (const NodeIndex node : group.nodes) {
    if (!file.ranks().speaks_for(node)) continue;
    pending.emplace_back(node, file.client().start(node, request));
  }
  for (auto& [node, one] : pending) {
    const auto reply = one.wait();
    note(status, reply.status());
    if (reply.is_ok()) each(node, *reply);
  }
}

}  // namespace

Striping::Striping(JobFile& file, const Id128& attempt, bool looks_at_all)
    : file_(file), attempt_(attempt), looks_at_all_(looks_at_all) {
  const auto view = file_.view();
  if (const CommittedGeneration* const origin = view->origin()) stores_ = origin->store_of;
}

// Groups one after the other, in the same order on all ranks, and each to its end whatever fails in
// it: a rank may speak for nodes of several.
Status Striping::run() {
  const plan::StripeShape shape = file_.keeping().stripes;
  if (!shape.is_possible()) return Status::ok();
  std::vector<StripeGroup> groups;
  for (auto& nodes : plan::stripe_groups(file_.client().live(), shape, file_.hints.group)) {
    StripeGroup group(std::move(nodes), file_.ranks());
    if (group.has(file_.rank())) groups.push_back(std::move(group));
  }
  Status status;
  for (const StripeGroup& group : groups) find_sparse(group, status);
  DEDUP_TRY(share_sparse(status));
  for (const StripeGroup& group : groups) note(status, stripe(group, shape));
  failpoint("commit.striped");
  return file_.ranks().agree(status, Waiting::kPatient);
}

// A live chunk keeps its stripe, and the dead ones in it. Units of which nothing is told are needed
// whole.
void Striping::find_sparse(const StripeGroup& group, Status& status) {
  std::vector<service::UnitShare> mine;
  ask_own(file_, group, service::ListShares{file_.identity(), attempt_, looks_at_all_, stores_},
          status, [&](NodeIndex, const service::ListSharesReply& reply) {
            mine.insert(mine.end(), reply.shares.begin(), reply.shares.end());
          });
  // To one of them, who tells everybody.
  const auto all = tell_partners<std::vector<service::UnitShare>>(group, mine, 1);
  if (group.partners.front() != file_.rank()) return;
  struct Sum {
    std::uint64_t live = 0;
    std::uint64_t bytes = 0;
    unsigned units = 0;
    unsigned data = 0;
  };
  std::map<Id128, Sum> stripes;
  for (const auto& shares : all) {
    if (!shares) {
      note(status, not_understood());
      continue;
    }
    for (const service::UnitShare& share : *shares) {
      Sum& sum = stripes[share.stripe];
      sum.live += share.live;
      sum.bytes += share.bytes;
      sum.data = share.data;
      ++sum.units;
    }
  }
  for (const auto& [stripe, sum] : stripes) {
    const unsigned others = sum.data - std::min(sum.data, sum.units);
    const std::uint64_t whole = sum.bytes / sum.units * others;
    if (2 * (sum.live + whole) < sum.bytes + whole) sparse_.insert(stripe);
  }
}

// All ranks build parts of the recipe, and have to know.
Status Striping::share_sparse(Status status) {
  const std::vector<Bytes> parts =
      file_.ranks().gather(encoded(std::vector<Id128>(sparse_.begin(), sparse_.end())));
  std::vector<Id128> all;
  for (const Bytes& part : parts) {
    const auto some = decoded<std::vector<Id128>>(part);
    if (some) {
      all.insert(all.end(), some->begin(), some->end());
    } else {
      note(status, not_understood());
    }
  }
  DEDUP_TRY(file_.ranks().agree(status, Waiting::kPatient));
  DEDUP_TRY(file_.ranks().share(Status::ok(), all));
  sparse_ = {all.begin(), all.end()};
  return Status::ok();
}

Status Striping::stripe(const StripeGroup& group, const plan::StripeShape& shape) {
  std::uint32_t longest = 0;
  DEDUP_ASSIGN(const std::vector<NewStripe> stripes, plan_stripes(group, shape, longest));
  StripeMaker::Options options{file_.identity(), 0, {}};
  // Who heals has time; an application that commits waits.
  if (file_.on_loss != OnLoss::kGoOn) options.bytes_per_second = file_.hints.heal_rate;
  const ChunkSource source(file_.client(), *file_.local, file_.identity());
  StoredUnits units(file_.client(), source, file_.identity(), attempt_);
  StripeMaker maker(file_.client(), units, group, options);
  const std::vector<bool> made = maker.make(stripes, longest);
  figures_.stored_bytes += maker.figures().stored_bytes;
  figures_.sent_bytes += maker.figures().sent_bytes;
  failpoint("commit.encoded");
  return join(stripes, made);
}

// The same on all partners: all of a group's units, or an error.
Result<std::vector<NewStripe>> Striping::plan_stripes(const StripeGroup& group,
                                                      const plan::StripeShape& shape,
                                                      std::uint32_t& longest) const {
  const service::MakeUnits request{file_.identity(),
                                   attempt_,
                                   file_.redundancy().as_copies(),
                                   static_cast<std::uint8_t>(shape.data),
                                   looks_at_all_,
                                   stores_,
                                   {sparse_.begin(), sparse_.end()}};
  Status status;
  std::optional<std::vector<NodeUnits>> mine(std::in_place);
  ask_own(file_, group, request, status, [&](NodeIndex node, const service::MakeUnitsReply& reply) {
    mine->push_back({node, reply.units, reply.longest});
  });
  if (!status.is_ok()) mine.reset();
  auto stripes = agree_on_stripes(group, shape, mine, 0, longest);
  if (!status.is_ok()) return status;
  return stripes;
}

// Each rank tells its own nodes.
Status Striping::join(std::span<const NewStripe> stripes, const std::vector<bool>& made) const {
  std::map<NodeIndex, std::vector<service::JoinedUnit>> joined;
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    const NewStripe& stripe = stripes[i];
    for (std::size_t slot = 0; made[i] && slot < stripe.units.size(); ++slot) {
      if (!file_.ranks().speaks_for(stripe.nodes[slot])) continue;
      joined[stripe.nodes[slot]].push_back({stripe.units[slot], stripe.unit(slot)});
    }
  }
  std::vector<service::Client::Pending<service::JoinStripes>> pending;
  for (const auto& [node, units] : joined) {
    for (std::size_t begin = 0; begin < units.size(); begin += kUnitsAtOnce) {
      const std::size_t end = std::min(units.size(), begin + kUnitsAtOnce);
      pending.push_back(file_.client().start(
          node, service::JoinStripes{file_.identity(),
                                     attempt_,
                                     {units.begin() + static_cast<std::ptrdiff_t>(begin),
                                      units.begin() + static_cast<std::ptrdiff_t>(end)}}));
    }
  }
  Status status;
  for (auto& one : pending) note(status, one.wait().status());
  return status;
}

}  // namespace dedup::engine
