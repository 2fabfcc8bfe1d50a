#include "bench/programs/beyond/sets.h"

#include <algorithm>
#include <cmath>

using namespace dedup;

namespace beyond {
namespace {

constexpr double kTwo64 = 18446744073709551616.0;

// A fingerprint at `position` of all, between 0 and 1; the rest of it is random.
Fingerprint fingerprint_at(double position, Random& random) {
  Fingerprint out;
  const auto front = static_cast<std::uint64_t>(position * kTwo64);
  for (int i = 0; i < 8; ++i) out.bytes[i] = static_cast<std::uint8_t>(front >> (56 - 8 * i));
  for (int word = 1; word < 4; ++word) {
    const std::uint64_t bits = random();
    std::memcpy(out.bytes.data() + 8 * word, &bits, sizeof bits);
  }
  return out;
}

double between_0_and_1(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

void put_element(Encoder& e, const Fingerprint& f, std::uint32_t frequency,
                 std::span<const NodeIndex> nodes) {
  e.put(f);
  e.put(kChunk);
  e.put(frequency);
  e.put(frequency);
  e.put(static_cast<std::uint16_t>(nodes.size()));
  for (const NodeIndex node : nodes) {
    e.put(node);
    e.put(std::uint8_t{2});  // has the data
  }
}

}  // namespace

Data::Data(std::uint32_t nodes, std::uint32_t threshold, std::uint32_t copies,
           std::uint32_t in_common)
    : limits{std::min(copies, nodes), threshold, static_cast<NodeIndex>(nodes)}, shared(in_common) {
  Random random(1);
  for (std::uint32_t i = 0; i < shared; ++i) {
    common.push_back(fingerprint_at(between_0_and_1(random), random));
  }
}

plan::FrequentSet leaf(const Data& data, std::uint32_t node) {
  Random random(1000 + node);
  const auto index = static_cast<NodeIndex>(node);
  plan::FrequentSet set;
  set.reserve(data.limits.threshold, data.limits.threshold);
  for (const Fingerprint& f : data.common) set.add(f, kChunk, 1, index, false, {});
  for (std::uint32_t i = 0; i < data.unique(); ++i) {
    set.add(fingerprint_at(between_0_and_1(random), random), kChunk, 1, index, false, {});
  }
  set.finish(data.limits);
  return set;
}

plan::FrequentSet merged(const Data& data, std::uint32_t first, std::uint32_t count) {
  if (count == 1) return leaf(data, first);
  const std::uint32_t half = count / 2;
  const auto low = merged(data, first, half);
  return plan::FrequentSet::merge(low, merged(data, first + half, half), data.limits);
}

Bytes drawn(const Data& data, std::uint32_t first, std::uint32_t count) {
  Random random(2000 + first);
  Encoder elements;
  std::vector<Fingerprint> common = data.common;
  std::sort(common.begin(), common.end());
  const std::uint32_t copies = std::min(data.limits.copies, count);
  std::vector<NodeIndex> nodes(copies);
  std::uint32_t next = 0;
  const auto put_common = [&](const Fingerprint& f) {
    for (NodeIndex& node : nodes) node = static_cast<NodeIndex>(first + next++ % count);
    std::sort(nodes.begin(), nodes.end());
    put_element(elements, f, count, nodes);
  };
  // The smallest of all unique ones, in order; each is one of those that its node has left.
  std::vector<std::uint32_t> kept(count);
  double left = static_cast<double>(count) * data.unique();
  double position = 0;
  auto shared = common.begin();
  for (std::uint32_t i = 0; i < data.unique(); ++i, --left) {
    position += (1 - position) * -std::expm1(std::log1p(-between_0_and_1(random)) / left);
    std::uint32_t node;
    do {
      node = static_cast<std::uint32_t>(random() % count);
    } while (random() % data.unique() < kept[node]);
    ++kept[node];
    const Fingerprint f = fingerprint_at(position, random);
    for (; shared != common.end() && *shared < f; ++shared) put_common(*shared);
    const auto owner = static_cast<NodeIndex>(first + node);
    put_element(elements, f, 1, {&owner, 1});
  }
  for (; shared != common.end(); ++shared) put_common(*shared);

  Encoder out;
  out.put(data.limits.threshold);
  out.put_raw(elements.bytes().data(), elements.size());
  plan::FrequentSet::Loads loads;
  for (std::uint32_t node = 0; node < count; ++node) {
    if (kept[node] == data.unique()) continue;
    loads.emplace_back(static_cast<NodeIndex>(first + node), data.unique() - kept[node]);
  }
  plan::FrequentSet::encode_loads(loads, out);
  return out.take();
}

}  // namespace beyond
