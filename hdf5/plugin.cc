// How programs get the driver: HDF5 loads it by its name, or they name it themselves.
#include <H5PLextern.h>
#include <hdf5.h>

#include <cstdlib>
#include <string>

#include "hdf5/dedup_hdf5.h"
#include "hdf5/driver.h"
#include "hdf5/error_stack.h"

using dedup::hdf5::driver_class;
using dedup::hdf5::kDriverName;

H5PL_type_t H5PLget_plugin_type(void) {
  return H5PL_TYPE_VFD;
}

const void* H5PLget_plugin_info(void) {
  return &driver_class;
}

hid_t H5FDdedup_init(void) {
  static hid_t number = H5I_INVALID_HID;
  if (H5Iget_type(number) != H5I_VFL) number = H5FDregister(&driver_class);
  return number;
}

herr_t H5Pset_fapl_dedup(hid_t fapl_id, MPI_Comm comm, MPI_Info info) {
  if (H5FDis_driver_registered_by_name(kDriverName) <= 0 && H5FDdedup_init() < 0) return -1;
  const char* const config = std::getenv("HDF5_DRIVER_CONFIG");
  if (H5Pset_driver_by_name(fapl_id, kDriverName, config) < 0) return -1;
  return H5Pset_mpi_params(fapl_id, comm, info);
}
