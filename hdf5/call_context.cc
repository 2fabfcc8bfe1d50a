#include "hdf5/call_context.h"

#include <hdf5.h>
#include <mpi.h>

#include <stdexcept>

// As they are in HDF5 1.14.
extern "C" {
__attribute__((weak)) herr_t H5CX_get_io_xfer_mode(H5FD_mpio_xfer_t* mode);
__attribute__((weak)) herr_t H5CX_get_mpio_coll_opt(H5FD_mpio_collective_opt_t* how);
__attribute__((weak)) herr_t H5CX_get_mpi_coll_datatypes(MPI_Datatype* memory, MPI_Datatype* file);
}

namespace dedup::hdf5 {

void check_context() {
  if (H5CX_get_io_xfer_mode != nullptr && H5CX_get_mpio_coll_opt != nullptr &&
      H5CX_get_mpi_coll_datatypes != nullptr) {
    return;
  }
  throw std::runtime_error(
      "this build of HDF5 hides H5CX_get_io_xfer_mode and its like, without which a driver from "
      "outside cannot tell collective calls: open the file on one rank, or use a build that "
      "exports them, as HDF5's own configure makes it");
}

CallContext call_context() {
  CallContext context;
  H5FD_mpio_xfer_t mode = H5FD_MPIO_INDEPENDENT;
  H5FD_mpio_collective_opt_t how = H5FD_MPIO_COLLECTIVE_IO;
  if (H5CX_get_io_xfer_mode(&mode) < 0 || H5CX_get_mpio_coll_opt(&how) < 0 ||
      H5CX_get_mpi_coll_datatypes(&context.memory, &context.file) < 0) {
    throw std::runtime_error("HDF5 does not say whether the call is collective");
  }
  if (mode != H5FD_MPIO_COLLECTIVE) return {};
  context.is_collective = how == H5FD_MPIO_COLLECTIVE_IO;
  return context;
}

}  // namespace dedup::hdf5
