#include "plan/question.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/hasher.h"
#include "plan/bits.h"

namespace dedup::plan {
namespace {

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

// By how many bits there are fewer buckets than askers: one or two share one.
constexpr unsigned kBucketBits = 1;
// Names that are spread evenly are nearly in order once they are in their buckets: each passes one
// other or so. Above so many on average the rest is left to another algorithm.
constexpr std::size_t kPassed = 8;
// In the order of names askers are all over memory: so many before its turn one is fetched.
constexpr std::size_t kAhead = 16;

// False if they were too far from it; then they are in some order.
bool sort_nearly_sorted(std::span<std::uint64_t> keys) {
  std::size_t left = kPassed * keys.size();
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const std::uint64_t key = keys[i];
    std::size_t to = i;
    for (; to > 0 && keys[to - 1] > key; --to) keys[to] = keys[to - 1];
    keys[to] = key;
    if (i - to > left) return false;
    left -= i - to;
  }
  return true;
}

}  // namespace

Fingerprint Questions::fingerprint(std::size_t i) const {
  Fingerprint fingerprint;
  set_eight_bytes(fingerprint, 0, names_[i].high);
  set_eight_bytes(fingerprint, 8, names_[i].low);
  set_eight_bytes(fingerprint, 16, rest(i).high);
  set_eight_bytes(fingerprint, 24, rest(i).low);
  return fingerprint;
}

Gathering::Gathering(std::uint64_t begin, std::uint64_t end)
    : begin_(begin),
      end_(end),
      shift_(static_cast<unsigned>(std::countl_zero(std::max(end - begin, std::uint64_t{1})))) {}

void Gathering::reserve(std::size_t askers) {
  items_.reserve(askers);
}

void Gathering::add(const Fingerprint& fingerprint, NodeIndex node, const NodeSet* held) {
  if (begins_.empty()) begins_.push_back(0);
  items_.push_back({{fingerprint.leading(), eight_bytes(fingerprint, 8)}, node});
  if (kind_of(fingerprint) != NameKind::kKeyed) {
    rests_.resize(items_.size());
    rests_.back() = {eight_bytes(fingerprint, 16), eight_bytes(fingerprint, 24)};
  }
  if (held != nullptr) {
    held_.resize(items_.size(), Asker::kNotHeld);
    held_.back() = holders_.number(*held);
  }
}

bool Gathering::add(std::span<const std::byte> message, NodeIndex node) {
  const std::size_t first = items_.size();
  begins_.push_back(first);
  if (message.empty() || decode(message, node)) return true;
  forget(first);
  return false;
}

void Gathering::forget(std::size_t first) {
  items_.resize(first);
  rests_.resize(std::min(rests_.size(), first));
  held_.resize(std::min(held_.size(), first));
}

NameRest Gathering::rest(std::size_t asker) const {
  return asker < rests_.size() ? rests_[asker] : NameRest{};
}

std::uint32_t Gathering::holders(std::size_t asker) const {
  return asker < held_.size() ? held_[asker] : Asker::kNotHeld;
}

bool Gathering::are_equal(std::size_t a, std::size_t b) const {
  return items_[a].name == items_[b].name && (rests_.empty() || rest(a) == rest(b));
}

bool Gathering::less(std::size_t a, std::size_t b) const {
  return items_[a].name != items_[b].name ? items_[a].name < items_[b].name : rest(a) < rest(b);
}

unsigned Gathering::number_bits() const {
  return static_cast<unsigned>(std::bit_width(items_.size()));
}

// Each goes to the bucket that it is in if names are spread evenly, and past its few neighbours
// there.
std::vector<Gathering::Key> Gathering::sorted_keys() const {
  std::vector<Key> keys(items_.size());
  if (keys.empty()) return keys;
  const unsigned bits = number_bits();
  const unsigned bucket_bits = std::max(bits, 1 + kBucketBits) - kBucketBits;
  const auto place = [&](const Name& name) { return (name.high - begin_) << shift_; };
  const auto bucket = [&](const Name& name) { return place(name) >> (64 - bucket_bits); };
  std::vector<std::uint32_t> ends((std::size_t{1} << bucket_bits) + 1);
  for (const Item& item : items_) ++ends[bucket(item.name) + 1];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const Name& name = items_[i].name;
    keys[ends[bucket(name)]++] = place(name) >> bits << bits | i;
  }
  if (!sort_nearly_sorted(keys)) std::sort(keys.begin(), keys.end());
  return keys;
}

bool Gathering::have_one_name(std::span<Key> keys) const {
  const std::size_t first = asker_of(keys.front());
  if (std::all_of(keys.begin() + 1, keys.end(),
                  [&](Key key) { return are_equal(first, asker_of(key)); })) {
    return true;
  }
  std::stable_sort(keys.begin(), keys.end(),
                   [&](Key a, Key b) { return less(asker_of(a), asker_of(b)); });
  return false;
}

Gathering::Together Gathering::finish() && {
  Together out;
  out.begins = std::move(begins_);
  out.begins.push_back(items_.size());
  out.places.resize(items_.size());
  Questions& all = out.questions;
  all.names_.reserve(items_.size());
  all.first_.reserve(items_.size() + 1);
  all.first_.clear();
  all.askers_.reserve(items_.size());
  std::vector<Key> keys = sorted_keys();
  for (std::span<Key> left(keys); !left.empty();) {
    const std::size_t alike = count_alike(left);
    put_together(left.first(alike), out);
    left = left.subspan(alike);
  }
  all.first_.push_back(static_cast<std::uint32_t>(all.askers_.size()));
  all.holders_ = std::move(holders_);
  return out;
}

std::size_t Gathering::count_alike(std::span<const Key> keys) const {
  const unsigned bits = number_bits();
  std::size_t count = 0;
  do {
    if (count + kAhead < keys.size()) __builtin_prefetch(&items_[asker_of(keys[count + kAhead])]);
    ++count;
  } while (count < keys.size() && (keys[count] ^ keys.front()) >> bits == 0);
  return count;
}

void Gathering::put_together(std::span<Key> alike, Together& out) const {
  Questions& all = out.questions;
  const bool is_one = have_one_name(alike);
  for (std::size_t k = 0; k < alike.size(); ++k) {
    const std::size_t asker = asker_of(alike[k]);
    if (k == 0 || (!is_one && !are_equal(asker, asker_of(alike[k - 1])))) {
      all.names_.push_back(items_[asker].name);
      all.first_.push_back(static_cast<std::uint32_t>(all.askers_.size()));
      if (!rests_.empty()) all.rests_.push_back(rest(asker));
    }
    all.askers_.push_back({items_[asker].node, holders(asker)});
    out.places[asker] = static_cast<std::uint32_t>(all.size() - 1);
  }
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

// If it is not what encode() made, a part of it may have been taken.
bool Gathering::decode(std::span<const std::byte> message, NodeIndex node) {
  BitReader in(message);
  const std::size_t count = in.get_items(64);
  const std::uint64_t flags = in.get(kFlagBits);
  const bool has_rests = (flags & kHasRests) != 0;
  const bool has_holders = (flags & kHasHolders) != 0;
  std::vector<std::uint32_t> numbers;
  if (has_holders) numbers = decode_holders(in);
  const unsigned holder_bits = bits_below(numbers.size());
  Gaps gaps(begin_, end_ - begin_, count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t high = gaps.get(in);
    const std::uint64_t low = in.get(64);
    if (high > end_) in.fail();
    if (!in.ok()) return false;
    items_.push_back({{high, low}, node});
    if (has_rests && in.get(1) != 0) {
      rests_.resize(items_.size());
      rests_.back().high = in.get(64);
      rests_.back().low = in.get(64);
    }
    if (has_holders && in.get(1) != 0) {
      const std::uint64_t number = in.get(holder_bits);
      if (number >= numbers.size()) return false;
      held_.resize(items_.size(), Asker::kNotHeld);
      held_.back() = numbers[number];
    }
  }
  return in.ok() && in.at_end();
}

std::vector<std::uint32_t> Gathering::decode_holders(BitReader& in) {
  std::vector<std::uint32_t> numbers;
  const std::size_t sets = in.get_items(kNodeBits);
  for (std::size_t i = 0; i < sets && in.ok(); ++i) {
    numbers.push_back(holders_.number(get_nodes(in)));
  }
  return numbers;
}

void Answers::encode(std::span<const std::uint32_t> places, unsigned copies, NodeIndex nodes,
                     BitWriter& out) const {
  const unsigned count_bits = bits_below(copies + 1);
  const unsigned node_bits = bits_below(nodes);
  for (const std::uint32_t place : places) {
    const std::span<const Designated> designated = (*this)[place];
    std::uint64_t bits = designated.size();
    unsigned used = count_bits;
    for (const Designated& d : designated) {
      if (used + node_bits + 3 > 64) {
        out.put(std::exchange(bits, 0), std::exchange(used, 0));
      }
      // Nearly always somebody who has it in memory and not in the store.
      const bool is_usual = d.has_data && !d.held;
      bits |= (d.node | (is_usual ? 0 : kUnusual << node_bits)) << used;
      used += node_bits + 1;
      if (is_usual) continue;
      bits |= ((d.held ? std::uint64_t{1} : 0) | (d.has_data ? 2 : 0)) << used;
      used += 2;
    }
    out.put(bits, used);
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
