// Checkpoints in parallel HDF5, and the result. All functions are collective; any failure ends the
// program with a message (see fail()).
#pragma once

#include <string>

#include "heat.h"

namespace heat3d {

// The size of the grid in the checkpoint `name`.
Cells checkpoint_size(MPI_Comm comm, const std::string& name);

// Replaces the checkpoint `name`. Each rank writes its box, all together.
void write_checkpoint(const Grid& grid, const State& state, const std::string& name);

// Reads what any number of ranks wrote. The checksum in the file must be that of what was read.
void read_checkpoint(const Grid& grid, State& state, const std::string& name);

// Writes the temperatures of the whole grid to the file `name`: native doubles and nothing else.
void write_result(const Grid& grid, const Field& temperature, const std::string& name);

}  // namespace heat3d
