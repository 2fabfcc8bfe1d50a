// Data with the redundancy of real applications, for benchmarks.
//
// What applications' memory consists of, in units of 4 KiB: units of zeros; units that all ranks
// have ("all or nothing": what more than one rank has, nearly all have); units that only one rank
// has; and repetitions within a rank. A profile gives the shares, as they were measured. The
// content of a rank's unit is a function of profile, seed, number of ranks, rank, time step and the
// unit's number, so any byte can be made again where it is read back. Pure; safe to share by
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace dedup::bench {

inline constexpr std::size_t kUnit = 4096;

// Shares of all bytes.
struct Profile {
  std::string_view name;
  unsigned ranks = 0;      // it was measured on; with others `shared` and the rest stay as they are
                           // there. 0: `global` holds for any number of ranks, as far as it can
  double mib_a_rank = 0;   // as measured; only for who wants to have it as large
  double local = 0;        // left after deduplication in each rank
  double global = 0;       // left after deduplication across all
  double zero = 0;         // zeros
  double overlap = 0;      // of a time step, what the same rank had in the step before
  bool measured = true;    // on an application; else it is one of the extremes
  bool scattered = false;  // what a time step has anew stands unit by unit, not in runs
};

std::span<const Profile> profiles();
// nullptr if there is none of that name.
const Profile* find_profile(std::string_view name);

// Numbers of units of one rank, and what they say of all ranks.
struct Shares {
  std::uint64_t units = 0;
  std::uint64_t zero = 0;
  std::uint64_t shared = 0;    // on all ranks
  std::uint64_t own = 0;       // on this rank only
  std::uint64_t repeated = 0;  // further appearances of what the rank has
};

class Data {
 public:
  // `skew`, 0 to 1: how unequal the ranks' own shares are; they go from 1 - skew to 1 + skew times
  // the average, as far as there is room. kArgument if a rank would have no bytes.
  static Result<Data> create(const Profile& profile, std::uint64_t seed, unsigned ranks,
                             std::uint64_t bytes_a_rank, double skew = 0);

  const Profile& profile() const { return *profile_; }
  unsigned ranks() const { return ranks_; }
  std::uint64_t bytes_a_rank() const { return bytes_a_rank_; }
  Shares shares(unsigned rank) const;

  // Bytes [offset, offset + out.size()) of a rank's data at a time step.
  void fill(unsigned rank, unsigned step, std::uint64_t offset, std::span<std::byte> out) const;

  // Equal keys mean equal content; 0 means zeros.
  std::uint64_t key(unsigned rank, unsigned step, std::uint64_t unit) const;

 private:
  Data(const Profile& profile, std::uint64_t seed, unsigned ranks, std::uint64_t bytes_a_rank,
       double skew);

  std::uint64_t own_of(unsigned rank) const;
  std::uint64_t place(std::uint64_t unit) const;

  const Profile* profile_;
  std::uint64_t seed_;
  unsigned ranks_;
  std::uint64_t bytes_a_rank_;
  std::uint64_t units_;
  std::uint64_t zero_;
  std::uint64_t shared_;
  std::uint64_t changing_;     // units that each step has anew
  double own_;                 // on average
  double skew_;                // as far as there is room
  std::uint64_t run_stride_;   // spreads runs of units of one kind over the data
  std::uint64_t unit_stride_;  // likewise units
  unsigned rank_stride_;       // spreads the shares over the ranks
};

}  // namespace dedup::bench
