#include "plan/stripe_decoding.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace dedup::plan {

StripeDecoding::StripeDecoding(StripeUnit stripe, std::vector<bool> can_ask,
                               std::vector<NamedChunk> lost,
                               std::optional<std::vector<UnitChunks>> units)
    : stripe_(std::move(stripe)),
      can_ask_(std::move(can_ask)),
      lost_(std::move(lost)),
      slot_(stripe_.unit),
      units_(std::move(units)),
      made_(lost_.size()),
      next_(stripe_.data),
      tables_(stripe_.data) {
  assert(can_ask_.size() == stripe_.nodes.size());
  const bool is_part = lost_.size() == 1 && kind_of(lost_[0].fingerprint) == NameKind::kStripePart;
  if (is_part) slot_ = slot_of(lost_[0].fingerprint);
  if (has_units()) {
    begin_making();
  } else {
    ask_for_table();
  }
}

// A parity's node knows all units, a unit's node its own.
void StripeDecoding::ask_for_table() {
  questions_.clear();
  const auto ask = [&](unsigned slot) {
    questions_.push_back({slot, {{part_names(stripe_, slot).front(), 0}}});
  };
  while (next_ < stripe_.nodes.size() && questions_.empty()) {
    const unsigned slot = next_++;
    if (can_ask_[slot]) ask(slot);
  }
  if (!questions_.empty() || next_ != stripe_.nodes.size()) return;
  ++next_;  // so that the units' nodes are asked once
  const auto units = can_ask_.begin() + stripe_.data;
  if (std::find(can_ask_.begin(), units, false) != units) return;
  for (unsigned slot = 0; slot < stripe_.data; ++slot) ask(slot);
}

void StripeDecoding::take_table(unsigned slot, std::span<const std::byte> bytes) {
  auto table = decode_stripe_table(bytes, stripe_.is_parity(slot) ? stripe_.data : 1);
  if (!table) return;
  if (stripe_.is_parity(slot)) {
    units_ = std::move(table);
  } else {
    tables_[slot] = std::move(table->front());
  }
}

void StripeDecoding::take(std::size_t question,
                          std::span<const std::span<const std::byte>> chunks) {
  const unsigned slot = questions_[question].slot;
  assert(chunks.size() == questions_[question].chunks.size());
  if (!has_units()) {
    take_table(slot, chunks[0]);
  } else if (stripe_.is_parity(slot)) {
    (void)(sum_ ? sum_->add_parity(slot, chunks[0]) : rebuild_->give_parity(slot, chunks[0]));
  } else if (sum_) {
    sum_->add_chunks(slot, chunks);
  } else {
    rebuild_->give_chunks(slot, chunks);
  }
}

void StripeDecoding::go_on() {
  if (sum_) {
    if (sum_group()) return next_group();
    return gather();
  }
  if (rebuild_) return gather();
  if (!has_units() && std::all_of(tables_.begin(), tables_.end(),
                                  [](const auto& table) { return table.has_value(); })) {
    units_.emplace();
    for (auto& table : tables_) units_->push_back(*std::move(table));
  }
  if (has_units()) {
    begin_making();
  } else {
    ask_for_table();
  }
}

void StripeDecoding::begin_making() {
  longest_ = longest_unit(*units_);
  find_lost();
  Group known;
  for (std::size_t i = 0; i < lost_.size(); ++i) {
    if (stretches_[i].size() != 0) known.push_back(i);
  }
  if (!known.empty()) groups_.push_back(std::move(known));
  begin_next_group();
}

// Mostly they are asked for in the order in which they stand.
void StripeDecoding::find_lost() {
  stretches_.assign(lost_.size(), {});
  if (slot_ >= stripe_.nodes.size() || units_->size() != stripe_.data) return;
  if (stripe_.is_parity(slot_)) {
    std::fill(stretches_.begin(), stretches_.end(), StripeRebuild::Stretch{0, longest_});
    return;
  }
  const UnitChunks& unit = (*units_)[slot_];
  std::vector<std::uint32_t> begins{0};
  for (const NamedChunk& chunk : unit) begins.push_back(begins.back() + chunk.length);
  auto next = unit.begin();
  for (std::size_t i = 0; i < lost_.size(); ++i) {
    auto at = std::find(next, unit.end(), lost_[i]);
    if (at == unit.end()) at = std::find(unit.begin(), unit.end(), lost_[i]);
    if (at == unit.end()) continue;
    const auto place = static_cast<std::size_t>(at - unit.begin());
    stretches_[i] = {begins[place], begins[place + 1]};
    next = at + 1;
  }
}

void StripeDecoding::begin_next_group() {
  questions_.clear();
  if (groups_.empty()) return;
  StripeRebuild::Stretch all = stretches_[groups_.front().front()];
  for (const std::size_t i : groups_.front()) {
    const StripeRebuild::Stretch one = stretches_[i];
    all = {std::min(all.begin, one.begin), std::max(all.end, one.end)};
  }
  rebuild_.emplace(*units_, stripe_.nodes.size(), slot_, all);
  next_ = 0;
  wanted_ = stripe_.data;
  if (!begin_sum(all)) gather();
}

// Asks the first k that can give something. False if there are no such.
bool StripeDecoding::begin_sum(StripeRebuild::Stretch stretch) {
  std::vector<unsigned> slots;
  for (unsigned slot = 0; slot < stripe_.nodes.size() && slots.size() < stripe_.data; ++slot) {
    if (can_give(slot)) slots.push_back(slot);
  }
  if (slots.size() < stripe_.data) return false;
  sum_ = StripeSum::of(*units_, stripe_.nodes.size(), slot_, stretch, slots);
  if (!sum_) return false;
  for (const unsigned slot : slots) {
    std::vector<NamedChunk> chunks = needed_of(slot);
    if (chunks.empty()) {
      sum_->add_chunks(slot, {});
    } else {
      questions_.push_back({slot, std::move(chunks)});
    }
  }
  if (!questions_.empty()) return true;
  sum_.reset();
  return false;
}

// Whether the group is made. If not, everybody is asked once more, and what comes is kept.
bool StripeDecoding::sum_group() {
  const bool is_made = sum_->is_complete() && make_group(sum_->bytes());
  sum_.reset();
  return is_made;
}

// Nothing of a unit that ends before the stretch: there are zeros, whoever has it.
std::vector<NamedChunk> StripeDecoding::needed_of(unsigned slot) const {
  if (stripe_.is_parity(slot)) return {{part_name(stripe_.stripe, Part::kParity, slot), longest_}};
  const auto [first, second] = rebuild_->chunks_of(slot);
  const auto unit = (*units_)[slot].begin();
  return {unit + static_cast<std::ptrdiff_t>(first), unit + static_cast<std::ptrdiff_t>(second)};
}

bool StripeDecoding::can_give(unsigned slot) const {
  return slot != slot_ && (can_ask_[slot] || needed_of(slot).empty());
}

// Units first: of these only what is needed is asked for. Nobody is asked where too little is left.
void StripeDecoding::gather() {
  questions_.clear();
  std::size_t possible = rebuild_->given();
  for (unsigned slot = next_; slot < stripe_.nodes.size(); ++slot) {
    if (can_give(slot)) ++possible;
  }
  for (; possible >= stripe_.data && next_ < stripe_.nodes.size() &&
         rebuild_->given() + questions_.size() < wanted_;
       ++next_) {
    if (!can_give(next_)) continue;
    std::vector<NamedChunk> chunks = needed_of(next_);
    if (chunks.empty()) {
      rebuild_->give_chunks(next_, {});
    } else {
      questions_.push_back({next_, std::move(chunks)});
    }
  }
  if (questions_.empty()) end_group();
}

void StripeDecoding::end_group() {
  bool is_made = make_group(rebuild_->rebuild());
  if (!is_made && rebuild_->given() >= stripe_.data) {
    // What came is as it was stored, and still wrong: something was damaged before that.
    if (wanted_ < stripe_.nodes.size()) {
      wanted_ = stripe_.nodes.size();
      return gather();
    }
    for (std::size_t out = 0; out < rebuild_->given() && !is_made; ++out) {
      is_made = make_group(rebuild_->rebuild(out));
    }
  }
  next_group();
}

void StripeDecoding::next_group() {
  const Group group = std::move(groups_.front());
  groups_.pop_front();
  // Of a part of the stretch more may be left than of all of it.
  for (const std::size_t i : group) {
    if (!made_[i] && group.size() > 1) groups_.push_back({i});
  }
  begin_next_group();
}

// From what the stretch may be; whether all of the group is there now.
bool StripeDecoding::make_group(const std::optional<Bytes>& bytes) {
  bool is_made = bytes.has_value();
  const std::uint32_t begin = rebuild_->stretch().begin;
  for (const std::size_t i : groups_.front()) {
    if (!bytes || made_[i]) continue;
    const StripeRebuild::Stretch at = stretches_[i];
    const auto chunk = std::span(*bytes).subspan(at.begin - begin, at.size());
    const auto holds = check_.holds(lost_[i].fingerprint, chunk);
    if (holds.is_ok() && *holds) {
      made_[i].emplace(chunk.begin(), chunk.end());
    } else {
      is_made = false;
    }
  }
  return is_made;
}

}  // namespace dedup::plan
