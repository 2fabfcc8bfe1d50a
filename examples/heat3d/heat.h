// Heat conduction in a solid of several materials.
#pragma once

#include <cstdint>

#include "grid.h"

namespace heat3d {

// All there is to know at one time step: what a checkpoint holds.
struct State {
  explicit State(const Cells& count)
      : temperature(count), conductivity(count), capacity(count), power(count) {}

  std::int64_t step = 0;
  Field temperature;   // K
  Field conductivity;  // a face conducts as well as the worse of its two cells
  Field capacity;      // of a cell
  Field power;         // that heats a cell
};

// A stack of equal plates, insulated from each other, at ambient temperature; in each there are
// small heaters in the same places, and in the second one a hot ball.
void start(const Grid& grid, State& state);

// After start() or a restart, before the first step. Collective.
void fill_ghosts(const Grid& grid, State& state);

// One explicit step with the 7-point stencil; no heat goes through the surface of the stack. Every
// cell's new value depends on old values only, added in a fixed order: the result does not depend
// on how the grid is split. `scratch` is a field of the same shape. Collective.
void advance(const Grid& grid, State& state, Field& scratch);

// The same for equal temperatures in the whole grid, however it is split: integer additions, which
// come to the same in any order. Collective.
std::uint64_t checksum(const Grid& grid, const Field& temperature);

}  // namespace heat3d
