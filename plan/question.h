// What nodes ask about their chunks, which of them other nodes have, and what they are told: the
// values, and the messages that carry them.
//
// A question is a chunk's name and who asks; at the name's home it meets others of the same name.
// Messages carry names in order, coded by their differences (plan/bits.h): with 2^17 names on each
// of 2^15 nodes 14 bytes a name, of 16. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/numbered.h"
#include "base/types.h"
#include "plan/bits.h"
#include "plan/reduce.h"

namespace dedup::plan {

// What a fingerprint says, as it is sent: of a keyed one of a shared chunk the first 16 bytes,
// which are all of its hash and half of its checksum; of any other all of it.
struct Name {
  std::uint64_t high;  // the first eight bytes: Fingerprint::leading()
  std::uint64_t low;
  auto operator<=>(const Name&) const = default;
};

// The other 16 bytes; zeros of a keyed name.
using NameRest = Name;

// One node's interest in a name: it has the chunk's bytes in memory.
struct Asker {
  NodeIndex node = kNoNode;
  // Number of the nodes that hold the chunk already, as the asker knows; kNotHeld: it is not in its
  // store. (It is itself one of those that hold it then.)
  std::uint32_t holders = kNotHeld;
  static constexpr std::uint32_t kNotHeld = 0xffffffff;
};

// Names in order, each once, with those who ask. 16 bytes a name, and 12 for each asker. Moves
// only.
class Questions {
 public:
  std::size_t size() const { return names_.size(); }
  const Name& name(std::size_t i) const { return names_[i]; }
  NameRest rest(std::size_t i) const { return rests_.empty() ? NameRest{} : rests_[i]; }
  // In no order that means anything.
  std::span<const Asker> askers(std::size_t i) const {
    return {askers_.data() + first_[i], first_[i + 1] - first_[i]};
  }
  std::size_t askers() const { return askers_.size(); }
  const NodeSet& holders(const Asker& asker) const { return holders_[asker.holders]; }
  // The name again, but for what a keyed one's does not say.
  Fingerprint fingerprint(std::size_t i) const;

  // One node's questions, `count` of them, as a message. Their names begin with `begin` at least
  // and at most with `end`.
  void encode(std::size_t from, std::size_t count, std::uint64_t begin, std::uint64_t end,
              BitWriter& out) const;

 private:
  friend class Gathering;

  std::vector<Name> names_;
  std::vector<NameRest> rests_;             // by name; empty: all are zeros
  std::vector<std::uint32_t> first_ = {0};  // of its askers, by name; one more: their number
  std::vector<Asker> askers_;
  Numbered<NodeSet> holders_;
};

// Brings questions together. 36 bytes for each asker of each, and more while they are sorted.
class Gathering {
 public:
  // All names begin with `begin` at least, and at most with `end`.
  Gathering(std::uint64_t begin, std::uint64_t end);

  void reserve(std::size_t askers);
  // A question of a node of its own, in any order; no fingerprint twice. `held`: who holds it,
  // itself included, if it is in its store; else null. All are the first part.
  void add(const Fingerprint& fingerprint, NodeIndex node, const NodeSet* held);
  // Another part: what `node` sent (Questions::encode()), or an empty message. False if it is none;
  // then nothing is added.
  bool add(std::span<const std::byte> message, NodeIndex node);

  // Questions, and where in them those of each part are, in their order.
  struct Together {
    Questions questions;
    std::vector<std::uint32_t> places;  // of all parts, one after the other
    std::vector<std::size_t> begins;    // of each part in `places`, and the end

    std::span<const std::uint32_t> places_of(std::size_t part) const {
      return std::span(places).subspan(begins[part], begins[part + 1] - begins[part]);
    }
  };
  // Linear in the number of askers, if names are spread evenly.
  Together finish() &&;

 private:
  struct Item {
    Name name;
    NodeIndex node;
  };
  // The first bits of a name, and, behind them, the number of an asker.
  using Key = std::uint64_t;

  bool decode(std::span<const std::byte> message, NodeIndex node);
  // The numbers, here, of those that the message numbers.
  std::vector<std::uint32_t> decode_holders(BitReader& in);
  // Forgets askers from that number on.
  void forget(std::size_t first);

  std::vector<Key> sorted_keys() const;
  // How many have the same first bits as the first one.
  std::size_t count_alike(std::span<const Key> keys) const;
  void put_together(std::span<Key> alike, Together& out) const;
  std::size_t asker_of(Key key) const { return key & ((Key{1} << number_bits()) - 1); }
  unsigned number_bits() const;
  // Of those that have the same first bits: whether they have one name, nearly always. Else they
  // are brought in order, by all of their names.
  bool have_one_name(std::span<Key> keys) const;
  bool are_equal(std::size_t a, std::size_t b) const;
  bool less(std::size_t a, std::size_t b) const;
  NameRest rest(std::size_t asker) const;
  std::uint32_t holders(std::size_t asker) const;

  std::uint64_t begin_;
  std::uint64_t end_;
  unsigned shift_;  // so that what is between begin_ and end_ has 64 bits
  // By asker, part by part; what is behind names, and who holds chunks, as far as there are any.
  std::vector<Item> items_;
  std::vector<NameRest> rests_;
  std::vector<std::uint32_t> held_;
  std::vector<std::size_t> begins_;  // of parts
  Numbered<NodeSet> holders_;
};

// For each question who is to keep the chunk; nobody: no other node has it, and who asked does what
// is right for a chunk of its own.
class Answers {
 public:
  std::size_t size() const { return first_.size() - 1; }
  std::span<const Designated> operator[](std::size_t i) const {
    return {designated_.data() + first_[i], first_[i + 1] - first_[i]};
  }
  // In all.
  std::size_t designated() const { return designated_.size(); }
  void reserve(std::size_t answers, std::size_t designated) {
    first_.reserve(answers + 1);
    designated_.reserve(designated);
  }
  void add(std::span<const Designated> designated) {
    for (const Designated& one : designated) designated_.push_back(one);
    first_.push_back(static_cast<std::uint32_t>(designated_.size()));
  }

  // What is answered to the questions at these places. Nodes are below `nodes`, and at most
  // `copies` are designated for a chunk.
  void encode(std::span<const std::uint32_t> places, unsigned copies, NodeIndex nodes,
              BitWriter& out) const;
  // Adds the answers to `count` questions. False if that is no message of such, and then they say
  // nothing.
  bool decode(std::span<const std::byte> bytes, std::size_t count, unsigned copies,
              NodeIndex nodes);

 private:
  std::vector<std::uint32_t> first_ = {0};
  std::vector<Designated> designated_;
};

}  // namespace dedup::plan
