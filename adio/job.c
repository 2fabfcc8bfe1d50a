/* The end hangs on MPI_COMM_SELF as its first attribute: MPI_Finalize deletes them before anything
 * else, the first one last, so files that others (HDF5, for one) close from such an attribute are
 * closed by then.
 */
#include "adio/job.h"

#include <mpi.h> /* not adio.h: it would rename the functions */

#include "adio/romio_glue.h"
#include "engine/dedup.h"

static int end_job(MPI_Comm comm, int keyval, void* value, void* extra) {
  (void)comm;
  (void)value;
  (void)extra;
  dedup_job_end();
  dedup_flatten_end();
  return PMPI_Comm_free_keyval(&keyval);
}

/* Where the driver is preloaded, MPI_Init and PMPI_Init may both pass through here, one inside the
 * other. */
void dedup_start_job(void) {
  static int begun;
  int keyval;
  if (begun) return;
  begun = 1;
  dedup_job_begin();
  if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_job, &keyval, NULL) == MPI_SUCCESS) {
    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  }
}
