#include "plan/question.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/hasher.h"
#include "plan/bits.h"

namespace dedup::plan {
namespace {

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

// Flags of a message of questions.
constexpr std::uint64_t kHasRests = 1;
constexpr std::uint64_t kHasHolders = 2;
constexpr unsigned kFlagBits = 2;
constexpr unsigned kNodeBits = 16;
// Of a designated node, before its number.
constexpr std::uint64_t kUnusual = 1;

std::uint64_t eight_bytes(const Fingerprint& fingerprint, std::size_t at) {
  std::uint64_t value;
  std::memcpy(&value, fingerprint.bytes.data() + at, sizeof value);
  return __builtin_bswap64(value);
}

void set_eight_bytes(Fingerprint& fingerprint, std::size_t at, std::uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(fingerprint.bytes.data() + at, &value, sizeof value);
}

// Bits that numbers below `count` take.
unsigned bits_below(std::uint64_t count) {
  return count < 2 ? 0 : static_cast<unsigned>(std::bit_width(count - 1));
}

void put_nodes(BitWriter& out, const NodeSet& nodes) {
  out.put(nodes.size(), kNodeBits);
  for (const NodeIndex node : nodes) out.put(node, kNodeBits);
}

NodeSet get_nodes(BitReader& in) {
  NodeSet nodes;
  const std::uint64_t count = in.get(kNodeBits);
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    const auto node = static_cast<NodeIndex>(in.get(kNodeBits));
    if (!nodes.empty() && node <= nodes.back()) in.fail();
    nodes.push_back(node);
  }
  return nodes;
}

// How many share a bucket when questions are sorted: few are sorted in no time, and there are fewer
// places that memory is touched at.
constexpr std::size_t kBucket = 1;
// From how many on they are sorted in another way: names were not spread evenly.
constexpr std::ptrdiff_t kFew = 32;

}  // namespace

Fingerprint Questions::fingerprint(std::size_t i) const {
  Fingerprint fingerprint;
  set_eight_bytes(fingerprint, 0, names_[i].high);
  set_eight_bytes(fingerprint, 8, names_[i].low);
  set_eight_bytes(fingerprint, 16, rest(i).high);
  set_eight_bytes(fingerprint, 24, rest(i).low);
  return fingerprint;
}

void Gathering::add(const Fingerprint& fingerprint, NodeIndex node, const NodeSet* held) {
  if (sizes_.empty()) sizes_.push_back(0);
  const std::uint32_t index = sizes_.front()++;
  put({{fingerprint.leading(), eight_bytes(fingerprint, 8)}, index, 0, node});
  if (kind_of(fingerprint) != NameKind::kKeyed) {
    rests_.resize(1);
    rests_.front().resize(sizes_.front());
    rests_.front().back() = {eight_bytes(fingerprint, 16), eight_bytes(fingerprint, 24)};
  }
  if (held != nullptr) {
    held_.resize(1);
    held_.front().resize(sizes_.front(), Asker::kNotHeld);
    held_.front().back() = holders_.number(*held);
  }
}

NameRest Gathering::rest(const Item& item) const {
  if (item.part >= rests_.size()) return {};
  const std::vector<NameRest>& rests = rests_[item.part];
  return item.index < rests.size() ? rests[item.index] : NameRest{};
}

bool Gathering::less(const Item& a, const Item& b) const {
  return a.name != b.name ? a.name < b.name : rest(a) < rest(b);
}

Gathering::Gathering(std::uint64_t begin, std::uint64_t end)
    : begin_(begin),
      end_(end),
      shift_(static_cast<unsigned>(std::countl_zero(std::max(end - begin, std::uint64_t{1})))),
      shelves_(kShelves) {}

void Gathering::reserve(std::size_t askers) {
  // Between one half and all of the shelves are used.
  for (std::vector<Item>& shelf : shelves_) shelf.reserve(askers / kShelves * 5 / 4 + 16);
}

// Each goes to the bucket that it is in if names are spread evenly, and past its few neighbours
// there; equal ones stay in order. A shelf and what is made of it stay in the processor's nearest
// memory.
void Gathering::sort(const std::vector<Item>& shelf, std::vector<Item>& sorted,
                     std::vector<std::uint32_t>& end) const {
  const auto bits = static_cast<unsigned>(std::bit_width(shelf.size() / kBucket));
  const auto bucket = [&](const Item& item) {
    return bits == 0 ? 0 : (item.name.high - begin_) << shift_ << kShelfBits >> (64 - bits);
  };
  end.assign((std::size_t{1} << bits) + 1, 0);
  for (const Item& item : shelf) ++end[bucket(item) + 1];
  std::partial_sum(end.begin(), end.end(), end.begin());
  sorted.resize(shelf.size());
  for (const Item& item : shelf) sorted[end[bucket(item)]++] = item;
  Item* first = sorted.data();
  for (std::size_t i = 0; i < end.size() - 1; ++i) {
    Item* const last = sorted.data() + end[i];
    if (last - first > kFew) {
      std::stable_sort(first, last, [&](const Item& a, const Item& b) { return less(a, b); });
    } else {
      for (Item* at = first; at != last; ++at) {
        const Item item = *at;
        Item* to = at;
        for (; to != first && less(item, *(to - 1)); --to) *to = *(to - 1);
        *to = item;
      }
    }
    first = last;
  }
}

Gathering::Together Gathering::finish() && {
  Together out;
  out.begins.assign(1, 0);
  for (const std::uint32_t size : sizes_) out.begins.push_back(out.begins.back() + size);
  out.places.resize(out.begins.back());
  Questions& all = out.questions;
  const bool has_rests = !rests_.empty();
  const bool has_holders = !held_.empty();
  std::size_t askers = 0;
  for (const std::vector<Item>& shelf : shelves_) askers += shelf.size();
  all.names_.reserve(askers);
  all.first_.reserve(askers + 1);
  all.first_.clear();
  all.askers_.reserve(askers);
  std::vector<Item> sorted;
  std::vector<std::uint32_t> ends;
  for (const std::vector<Item>& shelf : shelves_) {
    sort(shelf, sorted, ends);
    // No name is on two shelves.
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const Item& item = sorted[i];
      const bool is_next = i == 0 || item.name != sorted[i - 1].name ||
                           (has_rests && rest(item) != rest(sorted[i - 1]));
      if (is_next) {
        all.names_.push_back(item.name);
        all.first_.push_back(static_cast<std::uint32_t>(all.askers_.size()));
        if (has_rests) all.rests_.push_back(rest(item));
      }
      all.askers_.push_back({item.asker, has_holders ? holders(item) : Asker::kNotHeld});
      out.places[out.begins[item.part] + item.index] = static_cast<std::uint32_t>(all.size() - 1);
    }
  }
  all.first_.push_back(static_cast<std::uint32_t>(all.askers_.size()));
  all.holders_ = std::move(holders_);
  return out;
}

std::uint32_t Gathering::holders(const Item& item) const {
  if (item.part >= held_.size()) return Asker::kNotHeld;
  const std::vector<std::uint32_t>& held = held_[item.part];
  return item.index < held.size() ? held[item.index] : Asker::kNotHeld;
}

void Questions::encode(std::size_t from, std::size_t count, std::uint64_t begin, std::uint64_t end,
                       BitWriter& out) const {
  const std::span<const Asker> askers(askers_.data() + from, count);
  const bool has_holders = std::any_of(askers.begin(), askers.end(), [](const Asker& asker) {
    return asker.holders != Asker::kNotHeld;
  });
  out.put_count(count);
  out.put((rests_.empty() ? 0 : kHasRests) | (has_holders ? kHasHolders : 0), kFlagBits);
  std::vector<std::uint32_t> numbers;  // in the message, of each that it needs
  unsigned holder_bits = 0;
  if (has_holders) {
    NumberedInMessages<NodeSet> used(holders_);
    std::vector<NodeSet> table;
    for (const Asker& asker : askers) {
      numbers.push_back(asker.holders == Asker::kNotHeld ? 0 : used.number(asker.holders, table));
    }
    out.put_count(table.size());
    for (const NodeSet& nodes : table) put_nodes(out, nodes);
    holder_bits = bits_below(table.size());
  }
  Gaps gaps(begin, end - begin, count);
  for (std::size_t i = 0; i < count; ++i) {
    const Name& name = names_[from + i];
    gaps.put(out, name.high);
    out.put(name.low, 64);
    if (!rests_.empty()) {
      const NameRest& rest = rests_[from + i];
      const bool is_there = rest != NameRest{};
      out.put(is_there ? 1 : 0, 1);
      if (is_there) {
        out.put(rest.high, 64);
        out.put(rest.low, 64);
      }
    }
    if (has_holders) {
      const bool is_held = askers[i].holders != Asker::kNotHeld;
      out.put(is_held ? 1 : 0, 1);
      if (is_held) out.put(numbers[i], holder_bits);
    }
  }
}

bool Gathering::add(std::span<const std::byte> message, NodeIndex node) {
  const auto part = static_cast<std::uint16_t>(sizes_.size());
  sizes_.push_back(0);
  if (message.empty()) return true;
  BitReader in(message);
  const std::size_t count = in.get_items(64);
  const std::uint64_t flags = in.get(kFlagBits);
  const bool has_rests = (flags & kHasRests) != 0;
  const bool has_holders = (flags & kHasHolders) != 0;
  std::vector<NameRest> rests;
  std::vector<std::uint32_t> held;
  std::vector<std::uint32_t> numbers;
  if (has_holders) {
    const std::size_t sets = in.get_items(kNodeBits);
    for (std::size_t i = 0; i < sets && in.ok(); ++i) {
      numbers.push_back(holders_.number(get_nodes(in)));
    }
  }
  const unsigned holder_bits = bits_below(numbers.size());
  Gaps gaps(begin_, end_ - begin_, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t high = gaps.get(in);
    const std::uint64_t low = in.get(64);
    if (high > end_) in.fail();
    if (!in.ok()) break;
    put({{high, low}, i, part, node});
    if (has_rests) {
      NameRest& rest = rests.emplace_back(NameRest{});
      if (in.get(1) != 0) {
        rest.high = in.get(64);
        rest.low = in.get(64);
      }
    }
    if (has_holders) {
      held.push_back(Asker::kNotHeld);
      if (in.get(1) == 0) continue;
      const std::uint64_t number = in.get(holder_bits);
      if (number >= numbers.size()) {
        in.fail();
        break;
      }
      held.back() = numbers[number];
    }
  }
  if (in.ok() && in.at_end()) {
    sizes_.back() = static_cast<std::uint32_t>(count);
    if (!rests.empty()) {
      rests_.resize(sizes_.size());
      rests_.back() = std::move(rests);
    }
    if (!held.empty()) {
      held_.resize(sizes_.size());
      held_.back() = std::move(held);
    }
    return true;
  }
  for (std::vector<Item>& shelf : shelves_) {
    std::erase_if(shelf, [&](const Item& item) { return item.part == part; });
  }
  return false;
}

void Answers::encode(std::span<const std::uint32_t> places, unsigned copies, NodeIndex nodes,
                     BitWriter& out) const {
  const unsigned count_bits = bits_below(copies + 1);
  const unsigned node_bits = bits_below(nodes);
  for (const std::uint32_t place : places) {
    const std::span<const Designated> designated = (*this)[place];
    out.put(designated.size(), count_bits);
    for (const Designated& d : designated) {
      // Nearly always somebody who has it in memory and not in the store.
      const bool is_usual = d.has_data && !d.held;
      out.put(d.node | (is_usual ? 0 : kUnusual << node_bits), node_bits + 1);
      if (!is_usual) out.put((d.held ? 1 : 0) | (d.has_data ? 2 : 0), 2);
    }
  }
}

bool Answers::decode(std::span<const std::byte> bytes, std::size_t count, unsigned copies,
                     NodeIndex nodes) {
  const unsigned count_bits = bits_below(copies + 1);
  const unsigned node_bits = bits_below(nodes);
  const std::size_t before = size();
  BitReader in(bytes);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::uint64_t designated = in.get(count_bits);
    if (designated > copies) in.fail();
    for (std::uint64_t k = 0; k < designated && in.ok(); ++k) {
      const std::uint64_t coded = in.get(node_bits + 1);
      const std::uint64_t node = coded & ((kUnusual << node_bits) - 1);
      if (node >= nodes) in.fail();
      Designated one{static_cast<NodeIndex>(node), false, true};
      if (node != coded) {
        const std::uint64_t flags = in.get(2);
        one.held = (flags & 1) != 0;
        one.has_data = (flags & 2) != 0;
      }
      designated_.push_back(one);
    }
    first_.push_back(static_cast<std::uint32_t>(designated_.size()));
  }
  if (in.ok() && in.at_end()) return true;
  first_.resize(before + 1);
  designated_.resize(first_.back());
  first_.resize(before + count + 1, first_.back());
  return false;
}

}  // namespace dedup::plan
