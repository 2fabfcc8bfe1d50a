#include "service/encode.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/erasure.h"
#include "base/fields.h"
#include "store/segment.h"

namespace dedup::service {
namespace {

constexpr std::size_t kBytesAhead = std::size_t{16} << 20;

std::size_t stripes_ahead(const NewStripe& stripe) {
  return std::max<std::size_t>(1, kBytesAhead / plan::kUnitBytes / stripe.units.size());
}

}  // namespace

// First what the units consist of, then their bytes: the reply to a request for the one is what is
// asked for in the other.
struct EncodeTask::Asked {
  std::size_t number;  // of the stripe
  std::vector<Client::Pending<ListUnits>> lists;
  bool failed = false;
  std::vector<plan::UnitChunks> units;
  std::vector<Client::Pending<GetChunks>> bytes;

  // Asks for the bytes, once.
  void go_on(const EncodeStripes& request, Client& services) {
    if (lists.empty()) return;
    for (auto& list : std::exchange(lists, {})) {
      auto reply = list.wait();
      failed = failed || !reply.is_ok() || reply->units.size() != 1 || reply->units[0].empty();
      units.push_back(failed ? plan::UnitChunks() : std::move(reply->units[0]));
    }
    if (failed) return;
    const NewStripe& stripe = request.stripes[number];
    for (std::size_t slot = 0; slot < units.size(); ++slot) {
      bytes.push_back(services.start(stripe.nodes[slot], GetChunks{request.identity, units[slot]}));
    }
  }
};

EncodeTask::EncodeTask(EncodeStripes request, NodeIndex self, StoreNode& node,
                       std::unique_ptr<Responder> responder)
    : request_(std::move(request)), self_(self), node_(node), responder_(std::move(responder)) {}

EncodeTask::~EncodeTask() = default;

void EncodeTask::ask_ahead(Client& services) {
  while (next_ < request_.stripes.size() &&
         (asked_.empty() || asked_.size() < stripes_ahead(request_.stripes[next_]))) {
    const NewStripe& stripe = request_.stripes[next_];
    auto asked = std::make_unique<Asked>();
    asked->number = next_++;
    for (std::size_t slot = 0; slot < stripe.units.size(); ++slot) {
      asked->lists.push_back(
          services.start(stripe.nodes[slot],
                         ListUnits{request_.identity, request_.attempt, {stripe.units[slot]}}));
    }
    asked_.push_back(std::move(asked));
  }
  for (const auto& asked : asked_) asked->go_on(request_, services);
}

Result<bool> EncodeTask::encode(Executor::Beside& beside, Asked& asked) {
  const NewStripe& stripe = request_.stripes[asked.number];
  if (asked.failed) return false;
  std::uint32_t longest = 0;
  for (const plan::UnitChunks& unit : asked.units) {
    longest = std::max(longest, plan::unit_length(unit));
  }
  const ErasureCode code(static_cast<unsigned>(stripe.units.size()),
                         static_cast<unsigned>(stripe.nodes.size() - stripe.units.size()));
  std::vector<Bytes> parities(code.m(), Bytes(longest));
  const std::vector<std::span<std::byte>> spans(parities.begin(), parities.end());
  for (unsigned slot = 0; slot < code.k(); ++slot) {
    const auto reply = asked.bytes[slot].wait();
    if (!reply.is_ok()) return false;
    const plan::UnitChunks& unit = asked.units[slot];
    const std::vector<std::span<const std::byte>> chunks = reply->chunks(unit);
    if (chunks.size() != unit.size()) return false;
    const std::vector<store::ChunkSeal> seals = reply->seals(unit);
    for (std::size_t i = 0; i < unit.size(); ++i) {
      if (chunks[i].size() != unit[i].length ||
          !store::holds(seals[i], {unit[i].fingerprint, chunks[i]})) {
        return false;
      }
    }
    // They stand one after the other in the reply.
    code.add(slot, {chunks.front().data(), plan::unit_length(unit)}, spans);
    if (stripe.nodes[slot] != self_) reply_.sent_bytes += plan::unit_length(unit);
  }
  return store(beside, stripe, plan::encode_stripe_table(asked.units), parities);
}

Result<bool> EncodeTask::store(Executor::Beside& beside, const NewStripe& stripe,
                               const Bytes& table, const std::vector<Bytes>& parities) {
  DEDUP_ASSIGN(Client* const services, beside.services());
  std::vector<Client::Pending<PutChunks>> others;
  std::optional<PutChunks> own;
  for (std::size_t p = 0; p < parities.size(); ++p) {
    const auto slot = static_cast<unsigned>(stripe.units.size() + p);
    PutChunks put{request_.identity, {plan::placement_of_parts(stripe.unit(0))}, {}};
    put.chunks.push_back(
        PutChunk::sealed(plan::part_name(stripe.id, plan::Part::kWholeTable, slot), 0, table));
    put.chunks.push_back(
        PutChunk::sealed(plan::part_name(stripe.id, plan::Part::kParity, slot), 0, parities[p]));
    reply_.stored_bytes += table.size() + parities[p].size();
    if (stripe.nodes[slot] == self_) {
      own = std::move(put);
    } else {
      reply_.sent_bytes += table.size() + parities[p].size();
      others.push_back(services->start(stripe.nodes[slot], put));
    }
  }
  bool stored = true;
  if (own) {
    Result<PutReply> mine = PutReply{};
    DEDUP_TRY(beside.in_loop([&] { mine = node_.on(*own); }));
    stored = mine.is_ok();
  }
  for (auto& other : others) stored = other.wait().is_ok() && stored;
  return stored;
}

Result<Executor::Progress> EncodeTask::step(Executor::Beside& beside) {
  DEDUP_ASSIGN(Client* const services, beside.services());
  Executor::Progress progress;
  ask_ahead(*services);
  if (!asked_.empty()) {
    const std::unique_ptr<Asked> first = std::move(asked_.front());
    asked_.pop_front();
    for (const plan::UnitChunks& unit : first->units) progress.bytes += plan::unit_length(unit);
    DEDUP_ASSIGN(const bool made, encode(beside, *first));
    reply_.failed.push_back(made ? 0 : 1);
  }
  progress.done = asked_.empty() && next_ == request_.stripes.size();
  return progress;
}

void EncodeTask::ended(const Status& outcome) {
  // What is still under way is not waited for.
  asked_.clear();
  responder_->reply(outcome, outcome.is_ok() ? encoded(reply_) : Bytes());
}

}  // namespace dedup::service
