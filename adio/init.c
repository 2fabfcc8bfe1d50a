/* MPI_Init and MPI_Init_thread of libromio-dedup.so: the library's own, and then the driver's
 * start. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "adio/job.h"
#include "adio/romio_glue.h"

/* The next function of that name: a tool's that is linked behind this library, or MPICH's. */
static void* next(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  if (function == NULL) {
    fprintf(stderr, "libromio-dedup.so: there is no %s behind it: not an MPI program?\n", name);
    exit(EXIT_FAILURE);
  }
  return function;
}

static void start(void) {
  dedup_check_no_other_mpi();
  dedup_start_job();
}

static int init(const char* name, int* argc, char*** argv) {
  int (*function)(int*, char***) = (int (*)(int*, char***))next(name);
  dedup_check_mpi_version();
  const int result = function(argc, argv);
  if (result == MPI_SUCCESS) start();
  return result;
}

static int init_thread(const char* name, int* argc, char*** argv, int required, int* provided) {
  int (*function)(int*, char***, int, int*) = (int (*)(int*, char***, int, int*))next(name);
  dedup_check_mpi_version();
  const int result = function(argc, argv, required, provided);
  if (result == MPI_SUCCESS) start();
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
