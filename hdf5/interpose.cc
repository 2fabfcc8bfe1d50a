// Preloaded or linked before HDF5, with HDF5_DRIVER=dedup in the environment: what programs say to
// HDF5's parallel driver they say to this one.
#include <dlfcn.h>
#include <hdf5.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "hdf5/dedup_hdf5.h"
#include "hdf5/driver.h"
#include "hdf5/error_stack.h"

namespace {

bool is_wanted() {
  const char* const driver = std::getenv("HDF5_DRIVER");
  return driver != nullptr && std::string_view(driver) == dedup::hdf5::kDriverName;
}

template <typename Function>
Function* next(const char* name) {
  auto* const function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  if (function == nullptr) {
    dedup::hdf5::push_error(name, std::string("there is no ") + name + " behind libhdf5_dedup.so");
  }
  return function;
}

// Either may be null, as with the original, and is not asked for then.
herr_t get_params(hid_t fapl_id, MPI_Comm* comm, MPI_Info* info) {
  if (comm == nullptr && info == nullptr) return 0;
  MPI_Comm the_comm = MPI_COMM_NULL;
  MPI_Info the_info = MPI_INFO_NULL;
  if (H5Pget_mpi_params(fapl_id, &the_comm, &the_info) < 0) return -1;
  if (comm != nullptr) {
    *comm = the_comm;
  } else if (the_comm != MPI_COMM_NULL) {
    PMPI_Comm_free(&the_comm);
  }
  if (info != nullptr) {
    *info = the_info;
  } else if (the_info != MPI_INFO_NULL) {
    PMPI_Info_free(&the_info);
  }
  return 0;
}

}  // namespace

herr_t H5Pset_fapl_mpio(hid_t fapl_id, MPI_Comm comm, MPI_Info info) {
  if (is_wanted()) return H5Pset_fapl_dedup(fapl_id, comm, info);
  auto* const original = next<decltype(H5Pset_fapl_mpio)>("H5Pset_fapl_mpio");
  return original == nullptr ? -1 : original(fapl_id, comm, info);
}

herr_t H5Pget_fapl_mpio(hid_t fapl_id, MPI_Comm* comm, MPI_Info* info) {
  if (is_wanted()) return get_params(fapl_id, comm, info);
  auto* const original = next<decltype(H5Pget_fapl_mpio)>("H5Pget_fapl_mpio");
  return original == nullptr ? -1 : original(fapl_id, comm, info);
}
