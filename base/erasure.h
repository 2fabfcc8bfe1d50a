// Erasure codes: of k units of equal length m parities are made, and of any k of these k + m the
// others. Reed–Solomon over GF(2^8) with a Cauchy matrix (J. Blömer et al., "An XOR-based
// erasure-resilient coding scheme", 1995), of which every square part can be inverted; with one
// parity, the exclusive or. The arithmetic is ISA-L's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/codec.h"

namespace dedup {

// Immutable, so safe to share by threads.
class ErasureCode {
 public:
  static constexpr unsigned kMostUnits = 64;  // k + m
  static constexpr unsigned kMostParities = 8;

  // 1 <= m <= kMostParities, 1 <= k, k + m <= kMostUnits.
  ErasureCode(unsigned k, unsigned m);

  unsigned k() const { return k_; }
  unsigned m() const { return m_; }

  // Adds what the `unit`-th of the k says to the m parities, which begin as zeros and are as long
  // as the longest unit: of a shorter one zeros are missing.
  void add(unsigned unit, std::span<const std::byte> bytes,
           std::span<const std::span<std::byte>> parities) const;

  // How k units and parities give another one: as a sum, to which each is added when it comes.
  class Sum {
   public:
    // The part of the `position`-th of the k: of a shorter one zeros are missing. `out` begins as
    // zeros.
    void add(std::size_t position, std::span<const std::byte> bytes,
             std::span<std::byte> out) const;

   private:
    friend class ErasureCode;
    std::vector<std::uint8_t> tables_;  // as ISA-L wants them
  };
  // `which`: k different ones, without the `wanted`-th. None if it cannot be told from these.
  std::optional<Sum> sum_of(std::span<const unsigned> which, unsigned wanted) const;

  // Of k units and parities that are there, all of one length, the `wanted`-th of the k + m.
  // `which`: their numbers, ascending, none twice. False if it cannot be told from these.
  bool restore(std::span<const unsigned> which, std::span<const std::span<const std::byte>> bytes,
               unsigned wanted, std::span<std::byte> out) const;

 private:
  unsigned k_;
  unsigned m_;
  std::vector<std::uint8_t> matrix_;  // (k + m) x k: the units themselves, then the parities
  std::vector<std::uint8_t> tables_;  // of the parities, as ISA-L wants them
};

}  // namespace dedup
