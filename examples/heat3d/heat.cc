#include "heat.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace heat3d {
namespace {

constexpr int kPlates = 6;
constexpr double kAmbient = 300.0, kHot = 1500.0, kHeaterPower = 600.0;
constexpr double kTimeStep = 0.125;  // stable: below capacity / (6 * conductivity) of any material

// Spreads the bits of `x` (the finaliser of splitmix64).
std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// The number of cell `at` in a grid of `size`, in the order of memory and files; from 1 on.
std::uint64_t cell_number(const Cells& size, const Cells& at) {
  std::uint64_t number = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    number = number * static_cast<std::uint64_t>(size[a]) + static_cast<std::uint64_t>(at[a]);
  }
  return number + 1;
}

template <typename Function>
void for_each_cell(const Grid& grid, Function function) {
  for (int z = 0; z < grid.count()[0]; ++z) {
    for (int y = 0; y < grid.count()[1]; ++y) {
      for (int x = 0; x < grid.count()[2]; ++x) function(z, y, x);
    }
  }
}

}  // namespace

void start(const Grid& grid, State& state) {
  const Cells& size = grid.size();
  const int plate = std::max(2, (size[0] + kPlates - 1) / kPlates);  // its thickness
  const int radius = *std::min_element(size.begin(), size.end()) / 14 + 1;
  const Cells centre = {plate + plate / 2, size[1] / 3, size[2] / 3};
  for_each_cell(grid, [&](int z, int y, int x) {
    const Cells at = {grid.begin()[0] + z, grid.begin()[1] + y, grid.begin()[2] + x};
    const int in_plate = at[0] % plate;
    const bool insulates = in_plate == plate - 1;
    const bool fibre = (at[1] / 4 + at[2] / 4) % 2 == 0;
    const bool heats = std::abs(at[1] - size[1] / 3) < size[1] / 6 + 1 &&
                       scramble(cell_number(size, {in_plate, at[1], at[2]})) % 32 == 0;
    const std::int64_t dz = at[0] - centre[0], dy = at[1] - centre[1], dx = at[2] - centre[2];
    const bool hot = at[0] / plate == 1 && dz * dz + dy * dy + dx * dx < radius * radius;
    state.temperature(z, y, x) = hot && !insulates ? kHot : kAmbient;
    state.conductivity(z, y, x) = insulates ? 0.0 : fibre ? 1.0 : 0.6;
    state.capacity(z, y, x) = insulates ? 2.0 : 1.0;
    state.power(z, y, x) = heats && !insulates ? kHeaterPower : 0.0;
  });
  state.step = 0;
}

void fill_ghosts(const Grid& grid, State& state) {
  grid.exchange(state.temperature);
  grid.exchange(state.conductivity);
}

void advance(const Grid& grid, State& state, Field& scratch) {
  const double* t = state.temperature.data();
  const double* k = state.conductivity.data();
  const double* c = state.capacity.data();
  const double* p = state.power.data();
  const std::size_t up = state.temperature.stride(0), row = state.temperature.stride(1);
  // A face conducts as well as the worse of its two cells; ghosts outside of the grid do not at
  // all.
  const auto flux = [&](std::size_t from, std::size_t to) {
    return std::min(k[from], k[to]) * (t[from] - t[to]);
  };
  for_each_cell(grid, [&](int z, int y, int x) {
    const std::size_t i = state.temperature.at(z, y, x);
    const double heat = p[i] + flux(i - up, i) + flux(i + up, i) + flux(i - row, i) +
                        flux(i + row, i) + flux(i - 1, i) + flux(i + 1, i);
    scratch.data()[i] = t[i] + kTimeStep * heat / c[i];
  });
  std::swap(state.temperature, scratch);
  grid.exchange(state.temperature);
  ++state.step;
}

std::uint64_t checksum(const Grid& grid, const Field& temperature) {
  const Cells& begin = grid.begin();
  std::uint64_t sum = 0;
  for_each_cell(grid, [&](int z, int y, int x) {
    const auto number = cell_number(grid.size(), {begin[0] + z, begin[1] + y, begin[2] + x});
    sum += scramble(std::bit_cast<std::uint64_t>(temperature(z, y, x)) + scramble(number));
  });
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, grid.comm());
  return sum;
}

}  // namespace heat3d
