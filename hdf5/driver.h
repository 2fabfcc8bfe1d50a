// The driver's table of operations for HDF5.
#pragma once

#include <H5FDdevelop.h>

namespace dedup::hdf5 {

// HDF5 keeps a copy of it.
extern const H5FD_class_t driver_class;

inline constexpr char kDriverName[] = "dedup";

}  // namespace dedup::hdf5
