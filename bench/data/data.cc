#include "bench/data/data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

namespace dedup::bench {
namespace {

// Units of one kind stand together in runs, as in memory.
constexpr std::uint64_t kRun = 16;

// Whole-process memory of mini-applications under MPI, in units of 4 KiB. Those of 408 ranks have
// local and global shares from B. Nicolae, IPDPS 2015, V-C, and the rest from the smaller runs;
// CM1's overlap as far as its unique share allows.
constexpr std::array<Profile, 22> kProfiles = {{
    {"hpccg-8", 8, 86.2, 0.450, 0.210, 0.000, 0.92, true},
    {"hpccg-16", 16, 86.3, 0.446, 0.159, 0.000, 0.92, true},
    {"hpccg-32", 32, 29.0, 0.525, 0.245, 0.000, 0.92, true},
    {"cloverleaf-8", 8, 95.1, 0.238, 0.135, 0.33, 0.92, true},
    {"lulesh-8", 8, 29.8, 0.463, 0.314, 0.36, 0.99, true},
    {"cm1-8", 8, 107.5, 0.521, 0.454, 0.42, 0.63, true},
    {"hpcg-8", 8, 95.0, 0.702, 0.666, 0.002, 0.94, true},
    {"comd-8", 8, 144.9, 0.963, 0.959, 0.037, 0.08, true},
    {"minife-8", 8, 67.1, 0.994, 0.993, 0.001, 0.92, true},
    {"cm1-restart-8", 8, 12.1, 0.483, 0.469, 0.51, 0.55, true},
    {"hpccg-408", 0, 1536, 0.33, 0.06, 0.000, 0.92, true},
    {"cm1-408", 0, 800, 0.30, 0.05, 0.42, 0.71, true},
    {"unique", 0, 0, 1, 1, 0, 0, false},
    {"same", 0, 0, 1, 0, 0, 0, false},
    {"zero", 0, 0, 0, 0, 1, 1, false},
    // As "unique", with so many per cent of it new in each step, in runs or unit by unit.
    {"changing-0", 0, 0, 1, 1, 0, 1, false},
    {"changing-1", 0, 0, 1, 1, 0, 0.99, false},
    {"changing-10", 0, 0, 1, 1, 0, 0.9, false},
    {"changing-50", 0, 0, 1, 1, 0, 0.5, false},
    {"scattered-1", 0, 0, 1, 1, 0, 0.99, false, true},
    {"scattered-10", 0, 0, 1, 1, 0, 0.9, false, true},
    {"scattered-50", 0, 0, 1, 1, 0, 0.5, false, true},
}};

// Steps of splitmix64 (S. Vigna).
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t key_of(std::uint64_t seed, std::uint64_t owner, std::uint64_t number,
                     std::uint64_t version) {
  std::uint64_t x = mix(seed + kGolden);
  for (const std::uint64_t part : {owner, number, version}) x = mix(x + kGolden * (part + 1));
  return x | 1;  // never that of zeros
}

// As many words at once as a vector instruction takes.
using Lanes = std::uint64_t __attribute__((vector_size(64)));

// Marsaglia's xorshift in eight lanes, which the key seeds: about as fast as memory takes it.
void fill_unit(std::uint64_t key, std::byte* out) {
  if (key == 0) {
    std::memset(out, 0, kUnit);
    return;
  }
  Lanes state;
  for (std::size_t i = 0; i < sizeof state / sizeof key; ++i) state[i] = mix(key + kGolden * i) | 1;
  for (std::size_t at = 0; at < kUnit; at += sizeof state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(out + at, &state, sizeof state);
  }
}

// About the golden section of `count`, and without a common divisor.
std::uint64_t stride_over(std::uint64_t count) {
  auto stride =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(0.618 * static_cast<double>(count)), 1);
  while (std::gcd(stride, count) != 1) ++stride;
  return stride;
}

std::uint64_t of(double share, std::uint64_t units) {
  return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(units)));
}

// What every rank has, of all it has: `ranks` of them keep one between them.
double shared_share(const Profile& profile, unsigned ranks) {
  const unsigned measured = profile.ranks == 0 ? ranks : profile.ranks;
  if (measured < 2) return 0;
  return std::min(profile.local, (profile.local - profile.global) * measured / (measured - 1.0));
}

}  // namespace

std::span<const Profile> profiles() {
  return kProfiles;
}

const Profile* find_profile(std::string_view name) {
  const auto found = std::find_if(kProfiles.begin(), kProfiles.end(),
                                  [&](const Profile& profile) { return profile.name == name; });
  return found == kProfiles.end() ? nullptr : &*found;
}

Result<Data> Data::create(const Profile& profile, std::uint64_t seed, unsigned ranks,
                          std::uint64_t bytes_a_rank, double skew) {
  if (ranks == 0 || bytes_a_rank == 0 || skew < 0 || skew > 1) {
    return Status(Code::kArgument, "data of " + std::to_string(ranks) + " ranks with " +
                                       std::to_string(bytes_a_rank) + " bytes each and skew " +
                                       std::to_string(skew) +
                                       ": give one rank and byte at least, and 0 to 1");
  }
  return Data(profile, seed, ranks, bytes_a_rank, skew);
}

Data::Data(const Profile& profile, std::uint64_t seed, unsigned ranks, std::uint64_t bytes_a_rank,
           double skew)
    : profile_(&profile),
      seed_(seed),
      ranks_(ranks),
      bytes_a_rank_(bytes_a_rank),
      units_((bytes_a_rank + kUnit - 1) / kUnit),
      zero_(of(profile.zero, units_)),
      shared_(std::min(of(shared_share(profile, ranks), units_), units_ - zero_)),
      changing_(of(1 - profile.overlap, units_)),
      own_(std::max(profile.local - shared_share(profile, ranks), 0.0) *
           static_cast<double>(units_)),
      run_stride_(stride_over(std::max<std::uint64_t>(units_ / kRun, 1))),
      unit_stride_(stride_over(units_)),
      rank_stride_(static_cast<unsigned>(stride_over(ranks))) {
  const auto room = static_cast<double>(units_ - zero_ - shared_);
  skew_ = own_ > 0 ? std::clamp(room / own_ - 1, 0.0, skew) : 0;
}

std::uint64_t Data::own_of(unsigned rank) const {
  double times = 1;
  if (ranks_ > 1) {
    const auto place = static_cast<double>(std::uint64_t{rank} * rank_stride_ % ranks_);
    times += skew_ * (2 * place / (ranks_ - 1) - 1);
  }
  return std::min(static_cast<std::uint64_t>(std::llround(own_ * times)), units_ - zero_ - shared_);
}

Shares Data::shares(unsigned rank) const {
  const std::uint64_t own = own_of(rank);
  return {units_, zero_, shared_, own, units_ - zero_ - shared_ - own};
}

// Whole runs change places; what is left over at the end stays.
std::uint64_t Data::place(std::uint64_t unit) const {
  const std::uint64_t runs = units_ / kRun;
  if (unit / kRun >= runs) return unit;
  return unit / kRun * run_stride_ % runs * kRun + unit % kRun;
}

// In the order of places: what all have, zeros, the rank's own, repetitions. So ranks lay out alike
// what they have alike, as programs do.
std::uint64_t Data::key(unsigned rank, unsigned step, std::uint64_t unit) const {
  const std::uint64_t everybody = ranks_;
  const std::uint64_t own = own_of(rank);
  // A step changes what is the rank's own first, and keeps what is repeated.
  const std::uint64_t own_changing = std::min(changing_, own);
  const std::uint64_t shared_kept = shared_ - std::min(changing_ - own_changing, shared_);
  std::uint64_t at = place(unit);
  const auto shared_key = [&](std::uint64_t number) {
    return key_of(seed_, everybody, number, number < shared_kept ? 0 : step);
  };
  const auto own_key = [&](std::uint64_t number) {
    const std::uint64_t order = profile_->scattered ? number * unit_stride_ % units_ : number;
    return key_of(seed_, rank, number, order < own_changing ? step : 0);
  };
  if (at < shared_) return shared_key(at);
  at -= shared_;
  if (at < zero_) return 0;
  at -= zero_;
  if (at < own) return own_key(at);
  at -= own;
  const std::uint64_t any = mix(seed_ + kGolden * (at + 1));
  if (shared_ > 0) return shared_key(any % (shared_kept > 0 ? shared_kept : shared_));
  return own > 0 ? own_key(own - 1 - any % (own > own_changing ? own - own_changing : own)) : 0;
}

void Data::fill(unsigned rank, unsigned step, std::uint64_t offset,
                std::span<std::byte> out) const {
  while (!out.empty()) {
    const std::size_t skip = offset % kUnit;
    const std::size_t length = std::min(out.size(), kUnit - skip);
    const std::uint64_t key = this->key(rank, step, offset / kUnit);
    if (length == kUnit) {
      fill_unit(key, out.data());
    } else {
      std::array<std::byte, kUnit> unit;
      fill_unit(key, unit.data());
      std::memcpy(out.data(), unit.data() + skip, length);
    }
    out = out.subspan(length);
    offset += length;
  }
}

}  // namespace dedup::bench
