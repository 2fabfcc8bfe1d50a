// What HDF5 knows of the call that it passes to a driver.
#pragma once

#include <mpi.h>

namespace dedup::hdf5 {

// A driver for several ranks has to know which calls all of them make. HDF5 tells its own drivers
// by functions that it exports but does not document: a dataset's transfer property list says what
// the program wished for, and HDF5 goes by that only where it can.
//
// Throws if this HDF5 does not export them.
void check_context();

struct CallContext {
  bool is_collective = false;  // all ranks make this call
  // Of a single piece: what it is in memory, and in the file. HDF5 makes it of many where it does
  // not pass them one by one.
  MPI_Datatype memory = MPI_BYTE;
  MPI_Datatype file = MPI_BYTE;

  bool is_bytes() const { return memory == MPI_BYTE && file == MPI_BYTE; }
};

// After check_context().
CallContext call_context();

}  // namespace dedup::hdf5
