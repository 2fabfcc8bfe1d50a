#include "base/erasure.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <cassert>

namespace dedup {
namespace {

// ISA-L takes pointers to what it only reads as if it wrote there.
unsigned char* pointer(std::span<const std::byte> bytes) {
  return const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
}

constexpr std::size_t kTable = 32;  // bytes for each coefficient

}  // namespace

ErasureCode::ErasureCode(unsigned k, unsigned m)
    : k_(k), m_(m), matrix_(std::size_t{k + m} * k), tables_(kTable * k * m) {
  assert(k >= 1 && m >= 1 && m <= kMostParities && k + m <= kMostUnits);
  gf_gen_cauchy1_matrix(matrix_.data(), static_cast<int>(k + m), static_cast<int>(k));
  std::uint8_t* const parities = matrix_.data() + std::size_t{k} * k;
  if (m == 1) std::fill_n(parities, k, std::uint8_t{1});
  ec_init_tables(static_cast<int>(k), static_cast<int>(m), parities, tables_.data());
}

void ErasureCode::add(unsigned unit, std::span<const std::byte> bytes,
                      std::span<const std::span<std::byte>> parities) const {
  assert(unit < k_ && parities.size() == m_);
  unsigned char* out[kMostParities];
  for (unsigned p = 0; p < m_; ++p) {
    assert(parities[p].size() >= bytes.size());
    out[p] = reinterpret_cast<unsigned char*>(parities[p].data());
  }
  if (bytes.empty()) return;
  ec_encode_data_update(static_cast<int>(bytes.size()), static_cast<int>(k_), static_cast<int>(m_),
                        static_cast<int>(unit), const_cast<unsigned char*>(tables_.data()),
                        pointer(bytes), out);
}

bool ErasureCode::restore(std::span<const unsigned> which,
                          std::span<const std::span<const std::byte>> bytes, unsigned wanted,
                          std::span<std::byte> out) const {
  if (which.size() < k_ || bytes.size() != which.size() || wanted >= k_ + m_) return false;
  const auto there = std::find(which.begin(), which.end(), wanted);
  if (there != which.end()) {
    const std::span<const std::byte> same = bytes[static_cast<std::size_t>(there - which.begin())];
    std::copy_n(same.begin(), std::min(same.size(), out.size()), out.begin());
    return same.size() == out.size();
  }
  std::vector<unsigned char*> in;
  for (unsigned i = 0; i < k_; ++i) {
    if (bytes[i].size() != out.size()) return false;
    in.push_back(pointer(bytes[i]));
  }
  const std::optional<Sum> sum = sum_of(which.first(k_), wanted);
  if (!sum) return false;
  unsigned char* to = reinterpret_cast<unsigned char*>(out.data());
  ec_encode_data(static_cast<int>(out.size()), static_cast<int>(k_), 1,
                 const_cast<unsigned char*>(sum->tables_.data()), in.data(), &to);
  return true;
}

std::optional<ErasureCode::Sum> ErasureCode::sum_of(std::span<const unsigned> which,
                                                    unsigned wanted) const {
  if (which.size() != k_ || wanted >= k_ + m_) return std::nullopt;
  // As the units give them; turned round, the units as these give them.
  std::vector<std::uint8_t> given;
  for (const unsigned one : which) {
    if (one >= k_ + m_) return std::nullopt;
    const auto row = matrix_.begin() + static_cast<std::ptrdiff_t>(std::size_t{one} * k_);
    given.insert(given.end(), row, row + k_);
  }
  std::vector<std::uint8_t> units(given.size());
  if (gf_invert_matrix(given.data(), units.data(), static_cast<int>(k_)) != 0) return std::nullopt;
  std::vector<std::uint8_t> row(k_);
  for (unsigned c = 0; c < k_; ++c) {
    for (unsigned i = 0; i < k_; ++i) {
      row[c] ^= gf_mul(matrix_[std::size_t{wanted} * k_ + i], units[std::size_t{i} * k_ + c]);
    }
  }
  Sum sum;
  sum.tables_.resize(kTable * k_);
  ec_init_tables(static_cast<int>(k_), 1, row.data(), sum.tables_.data());
  return sum;
}

void ErasureCode::Sum::add(std::size_t position, std::span<const std::byte> bytes,
                           std::span<std::byte> out) const {
  assert(position < tables_.size() / kTable && bytes.size() <= out.size());
  if (bytes.empty()) return;
  unsigned char* to = reinterpret_cast<unsigned char*>(out.data());
  ec_encode_data_update(static_cast<int>(bytes.size()), static_cast<int>(tables_.size() / kTable),
                        1, static_cast<int>(position), const_cast<unsigned char*>(tables_.data()),
                        pointer(bytes), &to);
}

}  // namespace dedup
