#include "hdf5/mpi_session.h"

#include <hdf5.h>
#include <mpi.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "engine/dedup.h"

namespace dedup::hdf5 {
namespace {

std::atomic<int> open_files = 0;

// MPI_Finalize deletes attributes of MPI_COMM_SELF first, the last one set before the others. HDF5
// hangs its own end there, too, and did so before: without H5close() it would close its files when
// the jobs have ended.
int end_jobs(MPI_Comm /*comm*/, int keyval, void* /*value*/, void* /*extra*/) {
  if (open_files > 0) H5close();
  dedup_job_end();
  return PMPI_Comm_free_keyval(&keyval);
}

// HDF5's own exit handler was registered before, so that it runs after this one.
void end_mpi() {
  int is_over = 0;
  PMPI_Finalized(&is_over);
  if (is_over == 0) PMPI_Finalize();
}

}  // namespace

void be_in_mpi() {
  int has_begun = 0;
  int is_over = 0;
  PMPI_Initialized(&has_begun);
  PMPI_Finalized(&is_over);
  if (is_over != 0) {
    throw std::runtime_error("MPI_Finalize was called: files of the dedup driver need MPI");
  }
  if (has_begun == 0) {
    int provided = 0;
    if (PMPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
      throw std::runtime_error("MPI_Init_thread failed: files of the dedup driver need MPI");
    }
    std::atexit(end_mpi);
  }
  static bool is_hung = false;
  if (is_hung) return;
  int keyval = MPI_KEYVAL_INVALID;
  if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_jobs, &keyval, nullptr) != MPI_SUCCESS ||
      PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr) != MPI_SUCCESS) {
    throw std::runtime_error("MPI_Comm_set_attr failed on MPI_COMM_SELF");
  }
  is_hung = true;
}

void file_opened() {
  ++open_files;
}
void file_closed() {
  --open_files;
}

}  // namespace dedup::hdf5
