#include "service/stripe_decoder.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "service/messages/store_node.h"
#include "store/segment.h"

namespace dedup::service {
namespace {

// What was sent is what was sealed.
bool is_whole(const ChunksReply& reply, std::span<const NamedChunk> asked,
              std::vector<std::span<const std::byte>>& chunks) {
  chunks = reply.chunks(asked);
  if (chunks.size() != asked.size()) return false;
  const std::vector<store::ChunkSeal> seals = reply.seals(asked);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (chunks[i].size() != asked[i].length ||
        !store::holds(seals[i], {asked[i].fingerprint, chunks[i]})) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::uint32_t> StripeDecoder::length_of(NodeIndex node, const Fingerprint& name) {
  const auto reply = services_.call(node, Locate{identity_, {name}});
  if (!reply.is_ok() || reply->locations.size() != 1 || reply->locations[0].length == 0) {
    return std::nullopt;
  }
  return reply->locations[0].length;
}

std::optional<Bytes> StripeDecoder::get_part(NodeIndex node, const Fingerprint& name,
                                             std::uint32_t length) {
  const NamedChunk asked{name, length};
  const auto reply = services_.call(node, GetChunks{identity_, {asked}});
  std::vector<std::span<const std::byte>> chunks;
  if (!reply.is_ok() || !is_whole(*reply, {&asked, 1}, chunks)) return std::nullopt;
  return Bytes(chunks[0].begin(), chunks[0].end());
}

// A parity's node knows all units, a unit's node its own.
std::optional<std::vector<plan::UnitChunks>> StripeDecoder::ask_for_units(
    const plan::StripeUnit& stripe) {
  const auto ask = [&](unsigned slot,
                       std::size_t units) -> std::optional<std::vector<plan::UnitChunks>> {
    const NodeIndex node = stripe.nodes[slot];
    if (!services_.live().contains(node)) return std::nullopt;
    const Fingerprint name = plan::part_names(stripe, slot).front();
    const auto length = length_of(node, name);
    const auto bytes = length ? get_part(node, name, *length) : std::nullopt;
    return bytes ? plan::decode_stripe_table(*bytes, units) : std::nullopt;
  };
  for (unsigned slot = stripe.data; slot < stripe.nodes.size(); ++slot) {
    if (auto units = ask(slot, stripe.data)) return units;
  }
  std::vector<plan::UnitChunks> units;
  for (unsigned slot = 0; slot < stripe.data; ++slot) {
    auto own = ask(slot, 1);
    if (!own) return std::nullopt;
    units.push_back(std::move(own->front()));
  }
  return units;
}

std::optional<std::vector<plan::UnitChunks>> StripeDecoder::units_of(
    const plan::StripeUnit& stripe) {
  if (known_ != stripe.stripe) {
    auto units = ask_for_units(stripe);
    if (!units) return std::nullopt;
    units_ = *std::move(units);
    known_ = stripe.stripe;
  }
  return units_;
}

// Units first: of these only what is needed is sent.
plan::StripeRebuild StripeDecoder::gather(const plan::StripeUnit& stripe, unsigned slot,
                                          Stretch stretch, std::size_t wanted) {
  plan::StripeRebuild rebuild(units_, stripe.nodes.size(), slot, stretch);
  std::uint32_t longest = 0;
  for (const plan::UnitChunks& unit : units_) longest = std::max(longest, plan::unit_length(unit));
  struct Asked {
    unsigned slot;
    std::vector<NamedChunk> chunks;
    Client::Pending<GetChunks> pending;
  };
  unsigned next = 0;
  while (rebuild.given() < wanted && next < stripe.nodes.size()) {
    std::vector<Asked> asked;
    for (; rebuild.given() + asked.size() < wanted && next < stripe.nodes.size(); ++next) {
      const NodeIndex node = stripe.nodes[next];
      if (next == slot) continue;
      std::vector<NamedChunk> chunks;
      if (stripe.is_parity(next)) {
        chunks.push_back({plan::part_name(stripe.stripe, plan::Part::kParity, next), longest});
      } else {
        const auto [first, second] = rebuild.chunks_of(next);
        chunks.assign(units_[next].begin() + static_cast<std::ptrdiff_t>(first),
                      units_[next].begin() + static_cast<std::ptrdiff_t>(second));
        // Where it has ended there are zeros, whoever has it.
        if (chunks.empty()) {
          rebuild.give_chunks(next, {});
          continue;
        }
      }
      if (!services_.live().contains(node)) continue;
      auto pending = services_.start(node, GetChunks{identity_, chunks});
      asked.push_back({next, std::move(chunks), std::move(pending)});
    }
    for (Asked& one : asked) {
      const auto reply = one.pending.wait();
      std::vector<std::span<const std::byte>> chunks;
      if (!reply.is_ok() || !is_whole(*reply, one.chunks, chunks)) continue;
      if (stripe.is_parity(one.slot)) {
        (void)rebuild.give_parity(one.slot, chunks[0]);
      } else {
        rebuild.give_chunks(one.slot, chunks);
      }
    }
  }
  return rebuild;
}

bool StripeDecoder::deliver(const plan::UnitChunks& unit, Stretch stretch, const Bytes& bytes,
                            std::span<const Target> targets, std::span<const std::size_t> which) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Stretch at = plan::stretch_of(unit, which[i], which[i] + 1);
    const auto chunk = std::span(bytes).subspan(at.begin - stretch.begin, at.size());
    const auto holds = check_.holds(targets[i].chunk.fingerprint, chunk);
    if (!holds.is_ok() || !*holds) return false;
    std::memcpy(targets[i].out, chunk.data(), chunk.size());
  }
  return true;
}

std::vector<std::size_t> StripeDecoder::make_chunks(const plan::StripeUnit& stripe,
                                                    std::span<const Target> targets) {
  std::vector<std::size_t> failed;
  std::vector<Target> known;
  std::vector<std::size_t> which;  // of the unit's chunks
  std::vector<std::size_t> position;
  if (units_of(stripe) && stripe.data == units_.size()) {
    const plan::UnitChunks& unit = units_[stripe.unit];
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto at = std::find(unit.begin(), unit.end(), targets[i].chunk);
      if (at == unit.end()) continue;
      known.push_back(targets[i]);
      which.push_back(static_cast<std::size_t>(at - unit.begin()));
      position.push_back(i);
    }
  }
  bool delivered = known.empty();
  if (!known.empty()) {
    const plan::UnitChunks& unit = units_[stripe.unit];
    const auto [first, last] = std::minmax_element(which.begin(), which.end());
    const Stretch stretch = plan::stretch_of(unit, *first, *last + 1);
    const auto rebuilt = gather(stripe, stripe.unit, stretch, stripe.data).rebuild();
    delivered = rebuilt && deliver(unit, stretch, *rebuilt, known, which);
    if (rebuilt && !delivered) {
      // What came is as it was stored, and still wrong: something was damaged before that.
      const auto all = gather(stripe, stripe.unit, stretch, stripe.nodes.size());
      for (std::size_t out = 0; out < all.given() && !delivered; ++out) {
        const auto without = all.rebuild(out);
        delivered = without && deliver(unit, stretch, *without, known, which);
      }
    }
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const bool made = delivered && std::find(position.begin(), position.end(), i) != position.end();
    if (!made) failed.push_back(i);
  }
  return failed;
}

std::optional<Bytes> StripeDecoder::make_part(const plan::StripeUnit& stripe,
                                              const Fingerprint& name) {
  const unsigned slot = plan::slot_of(name);
  if (slot >= stripe.nodes.size() || !units_of(stripe)) return std::nullopt;
  if (plan::part_of(name) != plan::Part::kParity) {
    const std::span<const plan::UnitChunks> all = units_;
    return plan::encode_stripe_table(stripe.is_parity(slot) ? all : all.subspan(slot, 1));
  }
  std::uint32_t longest = 0;
  for (const plan::UnitChunks& unit : units_) longest = std::max(longest, plan::unit_length(unit));
  return gather(stripe, slot, {0, longest}, stripe.data).rebuild();
}

}  // namespace dedup::service
