#include "engine/protocol/stripe_maker.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/fields.h"
#include "engine/protocol/failpoint.h"
#include "store/segment.h"

namespace dedup::engine {
namespace {

// So much of all parities of a stripe is made at once: it stays in a core's cache meanwhile.
constexpr std::size_t kStretch = std::size_t{32} << 10;

}  // namespace

// ---- Letters ----------------------------------------------------------------------------------
// Of both, the bytes are in the bulk, in the order in which they are named.

// Without chunks: the node did not give it.
struct StripeMaker::SentUnit {
  std::uint32_t stripe = 0;
  std::uint8_t slot = 0;
  std::uint32_t bytes = 0;
  std::vector<NamedChunk> chunks;
  std::vector<store::ChunkSeal> seals;
};

struct StripeMaker::SentParity {
  std::uint32_t stripe = 0;
  std::uint8_t slot = 0;
  std::uint32_t bytes = 0;
  std::uint64_t seal = 0;
  service::PutChunk table;
};

struct StripeMaker::Said {
  std::vector<SentUnit> units;
  std::vector<SentParity> parities;
};

// ---- Units ------------------------------------------------------------------------------------

// Where a unit belongs.
struct StripeMaker::Moving {
  std::uint32_t stripe = 0;
  std::uint8_t slot = 0;
  std::size_t partner = 0;  // who encodes it
  std::uint32_t bytes = 0;
};

std::vector<bool> StripeMaker::make(std::span<const NewStripe> stripes, std::uint32_t longest) {
  longest_ = longest;
  std::vector<std::vector<std::uint32_t>> rounds = rounds_of(stripes);
  // In the last one the parities of the one before it are sent.
  if (!rounds.empty()) rounds.emplace_back();
  auto due = std::chrono::steady_clock::now();
  out_.resize(group_.partners.size());
  std::size_t left = rounds.size();
  for (const std::vector<std::uint32_t>& round : rounds) {
    send(stripes, round);
    group_.ranks->exchange_letters(group_.partners, out_, in_, [&] {
      if (options_.meanwhile) options_.meanwhile(left);
      end_puts();
    });
    --left;
    failpoint("commit.encoding");
    receive(stripes, round);
    if (options_.bytes_per_second > 0) {
      due += time_of_round();
      std::this_thread::sleep_until(due);
    }
  }
  end_puts();
  return all_stored(stripes);
}

std::vector<std::vector<std::uint32_t>> StripeMaker::rounds_of(
    std::span<const NewStripe> stripes) const {
  std::vector<plan::StripeMoves> moves;
  for (const NewStripe& stripe : stripes) {
    plan::StripeMoves& one = moves.emplace_back();
    for (std::size_t slot = 0; slot < stripe.nodes.size(); ++slot) {
      const auto partner = static_cast<std::uint32_t>(group_.partner_of(stripe.nodes[slot]));
      if (slot < stripe.units.size()) {
        one.from.push_back(partner);
      } else if (slot == stripe.units.size()) {
        one.encoder = partner;
      } else {
        one.to.push_back(partner);
      }
    }
  }
  const std::size_t most = kBytesAtOnce / std::max<std::uint32_t>(1, longest_) + 1;
  return plan::stripe_rounds(moves, group_.partners.size(), most);
}

// Of what a node sent or received in the last round, at the rate that it is to keep to; on average
// over the nodes of this rank.
std::chrono::steady_clock::duration StripeMaker::time_of_round() const {
  std::size_t sent = 0;
  std::size_t received = 0;
  for (const Letter& letter : out_) sent += letter.bulk.size();
  for (const Letter& letter : in_) received += letter.bulk.size();
  const auto nodes = std::count_if(group_.nodes.begin(), group_.nodes.end(),
                                   [&](NodeIndex node) { return group_.ranks->speaks_for(node); });
  const std::chrono::duration<double> time(static_cast<double>(std::max(sent, received)) /
                                           static_cast<double>(options_.bytes_per_second) /
                                           static_cast<double>(nodes));
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(time);
}

// Those of a round, and the parities of the round before, in one letter for each partner.
void StripeMaker::send(std::span<const NewStripe> stripes, std::span<const std::uint32_t> round) {
  std::vector<MovedUnit> units;
  std::vector<Moving> moving;
  for (const std::uint32_t number : round) {
    const NewStripe& stripe = stripes[number];
    for (std::size_t slot = 0; slot < stripe.units.size(); ++slot) {
      if (!group_.ranks->speaks_for(stripe.nodes[slot])) continue;
      units.push_back({stripe.nodes[slot], stripe.units[slot], {}, {}, nullptr});
      moving.push_back(
          {number, static_cast<std::uint8_t>(slot), group_.partner_of(stripe.encoder()), 0});
    }
  }
  source_.list(units);
  std::vector<Said> said(out_.size());
  std::vector<std::uint64_t> bytes(out_.size());
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (!is_possible(units[u].chunks)) units[u].chunks.clear();
    moving[u].bytes = plan::unit_length(units[u].chunks);
    bytes[moving[u].partner] += moving[u].bytes;
  }
  for (const Made& made : made_) {
    for (std::size_t p = 1; p < made.parities.size(); ++p) {
      bytes[partner_of_parity(stripes, made, p)] += made.parities[p].data.view().size();
    }
  }
  for (Letter& letter : out_) memory_.give(std::move(letter.bulk));
  for (std::size_t i = 0; i < out_.size(); ++i) out_[i].bulk = memory_.take(bytes[i]);
  std::vector<std::byte*> at;
  for (Letter& letter : out_) at.push_back(letter.bulk.data());
  for (std::size_t u = 0; u < units.size(); ++u) {
    units[u].to = at[moving[u].partner];
    at[moving[u].partner] += moving[u].bytes;
  }
  source_.read(units);
  for (std::size_t u = 0; u < units.size(); ++u) {
    if (units[u].chunks.empty()) units[u].seals.clear();
    figures_.sent_bytes += moving[u].bytes;
    said[moving[u].partner].units.push_back({moving[u].stripe, moving[u].slot, moving[u].bytes,
                                             std::move(units[u].chunks),
                                             std::move(units[u].seals)});
  }
  for (Made& made : std::exchange(made_, {})) {
    for (std::size_t p = 1; p < made.parities.size(); ++p) {
      const std::size_t partner = partner_of_parity(stripes, made, p);
      const service::PutChunk& parity = made.parities[p];
      const std::span<const std::byte> data = parity.data.view();
      at[partner] = std::copy(data.begin(), data.end(), at[partner]);
      figures_.sent_bytes += data.size() + made.tables[p].data.view().size();
      said[partner].parities.push_back(
          {made.stripe, static_cast<std::uint8_t>(stripes[made.stripe].units.size() + p),
           static_cast<std::uint32_t>(data.size()), parity.seal, std::move(made.tables[p])});
    }
    for (Bytes& parity : made.bytes) memory_.give(std::move(parity));
  }
  for (std::size_t i = 0; i < out_.size(); ++i) out_[i].said = encoded(said[i]);
}

std::size_t StripeMaker::partner_of_parity(std::span<const NewStripe> stripes, const Made& made,
                                           std::size_t parity) const {
  const NewStripe& stripe = stripes[made.stripe];
  return group_.partner_of(stripe.nodes[stripe.units.size() + parity]);
}

// ---- Stripes ----------------------------------------------------------------------------------

void StripeMaker::receive(std::span<const NewStripe> stripes,
                          std::span<const std::uint32_t> round) {
  std::map<std::uint32_t, std::vector<Arrived>> arrived;  // by stripe, its units
  for (const std::uint32_t number : round) {
    if (group_.ranks->speaks_for(stripes[number].encoder())) {
      arrived[number].resize(stripes[number].units.size());
    }
  }
  std::vector<Said> said(in_.size());
  for (std::size_t i = 0; i < in_.size(); ++i) {
    std::span<const std::byte> left(in_[i].bulk);
    const auto take = [&](std::uint32_t bytes) {
      const auto taken = left.first(std::min<std::size_t>(bytes, left.size()));
      left = left.subspan(taken.size());
      return taken;
    };
    // What it does not say is missing below.
    said[i] = decoded<Said>(in_[i].said).value_or(Said{});
    for (SentUnit& unit : said[i].units) {
      const auto bytes = take(unit.bytes);
      const auto stripe = arrived.find(unit.stripe);
      if (stripe == arrived.end() || unit.slot >= stripe->second.size()) continue;
      if (holds(unit, bytes)) stripe->second[unit.slot] = {std::move(unit.chunks), bytes};
    }
    for (SentParity& parity : said[i].parities) {
      const auto bytes = take(parity.bytes);
      if (!is_kept_here(stripes, parity)) continue;
      const NewStripe& stripe = stripes[parity.stripe];
      put(stripe, parity.stripe, parity.slot, std::move(parity.table),
          {plan::part_name(stripe.id, plan::Part::kParity, parity.slot), 0, parity.seal,
           service::ChunkBytes::of(bytes)});
    }
  }
  for (const auto& [number, units] : arrived) {
    if (std::any_of(units.begin(), units.end(),
                    [](const Arrived& unit) { return unit.chunks.empty(); })) {
      continue;
    }
    made_.push_back(encode(stripes[number], number, units));
    Made& made = made_.back();
    put(stripes[number], number, static_cast<unsigned>(units.size()), std::move(made.tables[0]),
        std::move(made.parities[0]));
  }
  begin_puts();
}

// Whether a node can have such a unit: none is longer than the longest of all.
bool StripeMaker::is_possible(const plan::UnitChunks& unit) const {
  std::uint64_t bytes = 0;
  for (const NamedChunk& chunk : unit) bytes += chunk.length;
  return bytes <= longest_;
}

bool StripeMaker::is_kept_here(std::span<const NewStripe> stripes, const SentParity& parity) const {
  if (parity.stripe >= stripes.size()) return false;
  const NewStripe& stripe = stripes[parity.stripe];
  return parity.slot > stripe.units.size() && parity.slot < stripe.nodes.size() &&
         group_.ranks->speaks_for(stripe.nodes[parity.slot]);
}

// Whether these are the bytes of its chunks, each as it was sealed.
bool StripeMaker::holds(const SentUnit& unit, std::span<const std::byte> bytes) const {
  if (unit.chunks.empty() || unit.seals.size() != unit.chunks.size() || !is_possible(unit.chunks) ||
      plan::unit_length(unit.chunks) != bytes.size()) {
    return false;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < unit.chunks.size(); ++i) {
    const NamedChunk& chunk = unit.chunks[i];
    if (!store::holds(unit.seals[i], {chunk.fingerprint, bytes.subspan(at, chunk.length)})) {
      return false;
    }
    at += chunk.length;
  }
  return true;
}

StripeMaker::Made StripeMaker::encode(const NewStripe& stripe, std::uint32_t number,
                                      std::span<const Arrived> units) {
  const ErasureCode code(static_cast<unsigned>(units.size()),
                         static_cast<unsigned>(stripe.nodes.size() - units.size()));
  std::size_t longest = 0;
  std::vector<plan::UnitChunks> chunks;
  for (const Arrived& unit : units) {
    longest = std::max(longest, unit.bytes.size());
    chunks.push_back(unit.chunks);
  }
  Made made{number, {}, {}, {}};
  for (unsigned p = 0; p < code.m(); ++p) {
    Bytes& parity = made.bytes.emplace_back(memory_.take(longest));
    std::fill(parity.begin(), parity.end(), std::byte{});
  }
  for (std::size_t begin = 0; begin < longest; begin += kStretch) {
    const std::size_t end = std::min(longest, begin + kStretch);
    std::vector<std::span<std::byte>> to;
    for (Bytes& parity : made.bytes) to.push_back(std::span(parity).subspan(begin, end - begin));
    for (unsigned slot = 0; slot < code.k(); ++slot) {
      const std::span<const std::byte> bytes = units[slot].bytes;
      if (bytes.size() <= begin) continue;
      code.add(slot, bytes.subspan(begin, std::min(bytes.size(), end) - begin), to);
    }
  }
  const Bytes table = plan::encode_stripe_table(chunks);
  for (unsigned p = 0; p < code.m(); ++p) {
    const unsigned slot = code.k() + p;
    made.tables.push_back(service::PutChunk::sealed(
        plan::part_name(stripe.id, plan::Part::kWholeTable, slot), 0, table));
    made.parities.push_back(
        service::PutChunk::sealed(plan::part_name(stripe.id, plan::Part::kParity, slot), 0,
                                  service::ChunkBytes::of(made.bytes[p])));
  }
  return made;
}

// To the node of that slot, with others of the round.
void StripeMaker::put(const NewStripe& stripe, std::uint32_t number, unsigned slot,
                      service::PutChunk table, service::PutChunk parity) {
  const NodeIndex node = stripe.nodes[slot];
  const std::size_t bytes = table.data.view().size() + parity.data.view().size();
  Putting* last = nullptr;
  for (Putting& put : puts_) {
    if (put.node == node && !put.pending) last = &put;
  }
  if (last == nullptr || last->bytes + bytes > service::kPayload) {
    last = &puts_.emplace_back();
    last->node = node;
    last->request.identity = options_.identity;
  }
  const auto placement = static_cast<std::uint32_t>(last->request.placements.size());
  last->request.placements.push_back(plan::placement_of_parts(stripe.unit(0)));
  table.placement = parity.placement = placement;
  last->request.chunks.push_back(std::move(table));
  last->request.chunks.push_back(std::move(parity));
  last->stripes.push_back(number);
  last->bytes += bytes;
}

void StripeMaker::begin_puts() {
  for (Putting& put : puts_) {
    put.pending.emplace(client_.start(put.node, put.request));
    put.request = {};
  }
}

void StripeMaker::end_puts() {
  for (Putting& put : puts_) {
    if (!put.pending->wait().is_ok()) continue;
    figures_.stored_bytes += put.bytes;
    for (const std::uint32_t stripe : put.stripes) ++stored_[stripe];
  }
  puts_.clear();
}

// Which stripes have all their parities: what nobody says it has stored is not there.
std::vector<bool> StripeMaker::all_stored(std::span<const NewStripe> stripes) {
  for (Letter& letter : out_) {
    letter = {encoded(Stored(stored_.begin(), stored_.end())), {}};
  }
  group_.ranks->exchange_letters(group_.partners, out_, in_, [] {});
  std::vector<std::uint32_t> parities(stripes.size());
  for (const Letter& letter : in_) {
    for (const auto& [stripe, count] : decoded<Stored>(letter.said).value_or(Stored{})) {
      if (stripe < parities.size()) parities[stripe] += count;
    }
  }
  std::vector<bool> made;
  for (std::size_t i = 0; i < stripes.size(); ++i) {
    made.push_back(parities[i] == stripes[i].nodes.size() - stripes[i].units.size());
  }
  return made;
}

}  // namespace dedup::engine
