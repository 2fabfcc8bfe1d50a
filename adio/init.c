/* MPI_Init and MPI_Init_thread: the library's own, and then the driver's start.
 *
 * The end hangs on MPI_COMM_SELF as its first attribute: MPI_Finalize deletes them before anything
 * else, the first one last, so files that others (HDF5, for one) close from such an attribute are
 * closed by then.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

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

/* The names with and without P may both pass through here, one inside the other. */
static void begin_job(void) {
  static int begun;
  int keyval;
  if (begun) return;
  begun = 1;
  dedup_job_begin();
  if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_job, &keyval, NULL) == MPI_SUCCESS) {
    PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
  }
}

/* The next function of that name: a tool's that is linked behind this library, or MPICH's. */
static void* next(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  if (function == NULL) {
    fprintf(stderr, "libromio-dedup.so: there is no %s behind it: not an MPI program?\n", name);
    exit(EXIT_FAILURE);
  }
  return function;
}

static int init(const char* name, int* argc, char*** argv) {
  int (*function)(int*, char***) = (int (*)(int*, char***))next(name);
  dedup_check_mpi_version();
  const int result = function(argc, argv);
  if (result == MPI_SUCCESS) begin_job();
  return result;
}

static int init_thread(const char* name, int* argc, char*** argv, int required, int* provided) {
  int (*function)(int*, char***, int, int*) = (int (*)(int*, char***, int, int*))next(name);
  dedup_check_mpi_version();
  const int result = function(argc, argv, required, provided);
  if (result == MPI_SUCCESS) begin_job();
  return result;
}

int MPI_Init(int* argc, char*** argv) {
  return init("MPI_Init", argc, argv);
}
int PMPI_Init(int* argc, char*** argv) {
  return init("PMPI_Init", argc, argv);
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return init_thread("MPI_Init_thread", argc, argv, required, provided);
}
int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return init_thread("PMPI_Init_thread", argc, argv, required, provided);
}
