#include "engine/protocol/striping.h"

#include <algorithm>
#include <utility>

#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kStripesAtOnce = 64;

service::NewStripe new_stripe(const plan::Stripe& stripe) {
  service::NewStripe made{Id128::random(), {}, {}};
  for (const plan::Stripe::Unit& unit : stripe.units) {
    made.units.push_back(unit.number);
    made.nodes.push_back(unit.node);
  }
  made.nodes.insert(made.nodes.end(), stripe.parities.begin(), stripe.parities.end());
  return made;
}

}  // namespace

Striping::Striping(JobFile& file, const Id128& attempt, bool looks_at_all)
    : file_(file), attempt_(attempt), looks_at_all_(looks_at_all) {
  const auto view = file_.view();
  if (const CommittedGeneration* const origin = view->origin()) stores_ = origin->store_of;
}

Status Striping::run() {
  const plan::StripeShape shape = file_.keeping().stripes;
  if (!shape.is_possible()) return Status::ok();
  auto groups = plan::stripe_groups(file_.client().live(), shape, file_.hints.group);
  std::erase_if(groups,
                [&](const auto& group) { return !file_.ranks().speaks_for(group.front()); });
  Status status;
  for (const auto& group : groups) {
    if (status.is_ok()) status = find_sparse(group);
  }
  DEDUP_TRY(share_sparse(status));
  for (const auto& group : groups) {
    if (status.is_ok()) status = stripe(group, shape);
  }
  failpoint("commit.striped");
  return file_.ranks().agree(status, Waiting::kPatient);
}

// A live chunk keeps its stripe, and the dead ones in it. Units of which nothing is told are needed
// whole.
Status Striping::find_sparse(std::span<const NodeIndex> group) {
  std::vector<service::Client::Pending<service::ListShares>> pending;
  for (const NodeIndex node : group) {
    pending.push_back(file_.client().start(
        node, service::ListShares{file_.identity(), attempt_, looks_at_all_, stores_}));
  }
  struct Told {
    std::uint64_t live = 0;
    std::uint64_t bytes = 0;
    unsigned units = 0;
    unsigned data = 0;
  };
  std::map<Id128, Told> stripes;
  Status status;
  for (auto& one : pending) {
    const auto reply = one.wait();
    if (!reply.is_ok()) {
      status = reply.status();
      continue;
    }
    for (const service::UnitShare& share : reply->shares) {
      Told& told = stripes[share.stripe];
      told.live += share.live;
      told.bytes += share.bytes;
      told.data = share.data;
      ++told.units;
    }
  }
  DEDUP_TRY(status);
  for (const auto& [stripe, told] : stripes) {
    const unsigned others = told.data - std::min(told.data, told.units);
    const std::uint64_t whole = told.bytes / told.units * others;
    if (2 * (told.live + whole) < told.bytes + whole) sparse_.insert(stripe);
  }
  return Status::ok();
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
      status = {Code::kInternal, "a rank sent stripes that cannot be"};
    }
  }
  DEDUP_TRY(file_.ranks().agree(status, Waiting::kPatient));
  DEDUP_TRY(file_.ranks().share(Status::ok(), all));
  sparse_ = {all.begin(), all.end()};
  return Status::ok();
}

Status Striping::stripe(std::span<const NodeIndex> group, const plan::StripeShape& shape) {
  DEDUP_ASSIGN(const std::vector<std::uint32_t> units, make_units(group, shape));
  const std::vector<plan::Stripe> stripes = plan::make_stripes(group, units, shape, 0);
  DEDUP_ASSIGN(const Joined joined, encode(stripes));
  failpoint("commit.encoded");
  return join(joined);
}

Result<std::vector<std::uint32_t>> Striping::make_units(std::span<const NodeIndex> group,
                                                        const plan::StripeShape& shape) const {
  const service::MakeUnits request{file_.identity(),
                                   attempt_,
                                   file_.redundancy().as_copies(),
                                   static_cast<std::uint8_t>(shape.data),
                                   looks_at_all_,
                                   stores_,
                                   {sparse_.begin(), sparse_.end()}};
  std::vector<service::Client::Pending<service::MakeUnits>> pending;
  for (const NodeIndex node : group) pending.push_back(file_.client().start(node, request));
  std::vector<std::uint32_t> units;
  Status status;
  for (auto& one : pending) {
    const auto reply = one.wait();
    if (!reply.is_ok()) status = reply.status();
    units.push_back(reply.is_ok() ? reply->units : 0);
  }
  DEDUP_TRY(status);
  return units;
}

Result<Striping::Joined> Striping::encode(const std::vector<plan::Stripe>& stripes) {
  std::map<NodeIndex, std::vector<service::NewStripe>> by_maker;
  for (const plan::Stripe& stripe : stripes) {
    by_maker[stripe.parities.front()].push_back(new_stripe(stripe));
  }
  struct Sent {
    service::EncodeStripes request;
    service::Client::Pending<service::EncodeStripes> pending;
  };
  // To all nodes at the same time; each does one of its requests after the other anyway.
  std::vector<Sent> sent;
  for (auto& [node, made] : by_maker) {
    for (std::size_t begin = 0; begin < made.size(); begin += kStripesAtOnce) {
      const std::size_t end = std::min(made.size(), begin + kStripesAtOnce);
      service::EncodeStripes request{file_.identity(),
                                     attempt_,
                                     {made.begin() + static_cast<std::ptrdiff_t>(begin),
                                      made.begin() + static_cast<std::ptrdiff_t>(end)}};
      // Who heals has time; an application that commits waits.
      request.in_background = file_.on_loss != OnLoss::kGoOn;
      request.bytes_per_second = file_.hints.heal_rate;
      auto pending = file_.client().start(node, request);
      sent.push_back({std::move(request), std::move(pending)});
    }
  }
  Joined joined;
  Status status;
  for (Sent& one : sent) {
    const auto reply = one.pending.wait();
    if (!reply.is_ok()) {
      status = reply.status();
      continue;
    }
    if (reply->failed.size() != one.request.stripes.size()) {
      status = {Code::kInternal, "a node answered for other stripes than it was to make"};
      continue;
    }
    figures_.stored_bytes += reply->stored_bytes;
    figures_.sent_bytes += reply->sent_bytes;
    for (std::size_t i = 0; i < one.request.stripes.size(); ++i) {
      if (reply->failed[i] != 0) continue;
      const service::NewStripe& stripe = one.request.stripes[i];
      for (std::size_t slot = 0; slot < stripe.units.size(); ++slot) {
        joined[stripe.nodes[slot]].push_back({stripe.units[slot], stripe.unit(slot)});
      }
    }
  }
  DEDUP_TRY(status);
  return joined;
}

Status Striping::join(const Joined& joined) const {
  std::vector<service::Client::Pending<service::JoinStripes>> pending;
  for (const auto& [node, units] : joined) {
    for (std::size_t begin = 0; begin < units.size(); begin += kStripesAtOnce) {
      const std::size_t end = std::min(units.size(), begin + kStripesAtOnce);
      pending.push_back(file_.client().start(
          node, service::JoinStripes{file_.identity(),
                                     attempt_,
                                     {units.begin() + static_cast<std::ptrdiff_t>(begin),
                                      units.begin() + static_cast<std::ptrdiff_t>(end)}}));
    }
  }
  Status status;
  for (auto& one : pending) {
    const auto reply = one.wait();
    if (!reply.is_ok()) status = reply.status();
  }
  return status;
}

}  // namespace dedup::engine
