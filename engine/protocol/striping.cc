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

Status Striping::run() {
  const plan::StripeShape shape = file_.keeping().stripes;
  if (!shape.is_possible()) return Status::ok();
  Status status;
  for (const auto& group : plan::stripe_groups(file_.client().live(), shape, file_.hints.group)) {
    if (status.is_ok() && file_.ranks().speaks_for(group.front())) status = stripe(group, shape);
  }
  failpoint("commit.striped");
  return file_.ranks().agree(status, Waiting::kPatient);
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
  service::MakeUnits request{file_.identity(),
                             attempt_,
                             file_.redundancy().as_copies(),
                             static_cast<std::uint8_t>(shape.data),
                             looks_at_all_,
                             {}};
  const auto view = file_.view();
  if (const CommittedGeneration* const origin = view->origin()) request.stores = origin->store_of;
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
    pending.push_back(
        file_.client().start(node, service::JoinStripes{file_.identity(), attempt_, units}));
  }
  Status status;
  for (auto& one : pending) {
    const auto reply = one.wait();
    if (!reply.is_ok()) status = reply.status();
  }
  return status;
}

}  // namespace dedup::engine
