// A stripe with uneven units of random chunks, each named after its content.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "base/hasher.h"
#include "plan/stripe_content.h"

namespace dedup::plan {

struct RandomStripe {
  std::vector<UnitChunks> units;
  std::vector<Bytes> bytes;  // of units, then of parities
  std::size_t nodes() const { return bytes.size(); }

  RandomStripe(unsigned k, unsigned m, std::uint64_t seed) : units(k), bytes(k) {
    std::mt19937_64 random(seed);
    std::size_t longest = 0;
    for (unsigned u = 0; u < k; ++u) {
      for (std::size_t count = 1 + random() % 9; count > 0; --count) {
        Bytes chunk(1 + random() % 700);
        for (std::byte& byte : chunk) byte = static_cast<std::byte>(random());
        NamedChunk named{{}, static_cast<std::uint32_t>(chunk.size())};
        named.fingerprint.bytes = sha256(chunk);
        units[u].push_back(named);
        bytes[u].insert(bytes[u].end(), chunk.begin(), chunk.end());
      }
      longest = std::max(longest, bytes[u].size());
    }
    const ErasureCode code(k, m);
    std::vector<Bytes> parities(m, Bytes(longest));
    std::vector<std::span<std::byte>> spans(parities.begin(), parities.end());
    for (unsigned u = 0; u < k; ++u) code.add(u, bytes[u], spans);
    for (Bytes& parity : parities) bytes.push_back(std::move(parity));
  }

  std::span<const std::byte> chunk(unsigned unit, std::size_t number) const {
    const auto at = stretch_of(units[unit], number, number + 1);
    return std::span(bytes[unit]).subspan(at.begin, at.size());
  }

  void give(StripeRebuild& rebuild, unsigned slot) const {
    if (slot >= units.size()) {
      ASSERT_TRUE(rebuild.give_parity(slot, bytes[slot]));
      return;
    }
    rebuild.give_chunks(slot, chunks_for(rebuild, slot));
  }
  void add(StripeSum& sum, const StripeRebuild& same, unsigned slot) const {
    if (slot >= units.size()) {
      ASSERT_TRUE(sum.add_parity(slot, bytes[slot]));
    } else {
      sum.add_chunks(slot, chunks_for(same, slot));
    }
  }

 private:
  std::vector<std::span<const std::byte>> chunks_for(const StripeRebuild& rebuild,
                                                     unsigned slot) const {
    const auto [first, second] = rebuild.chunks_of(slot);
    std::vector<std::span<const std::byte>> chunks;
    for (std::size_t i = first; i < second; ++i) chunks.push_back(chunk(slot, i));
    return chunks;
  }
};

}  // namespace dedup::plan
