/* What ROMIO asks of the MPICH it is built into, for a ROMIO beside it; and the check that it is
 * beside the right one.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adio.h"
#include "adio/romio_glue.h"
#include "mpir_ext.h"

int MPIR_Ext_init(void) {
  return MPI_SUCCESS;
}

/* MPI has no call that tells; MPICH itself checks types in the calls that ROMIO makes with them. */
int MPIR_Ext_datatype_iscommitted(MPI_Datatype datatype) {
  (void)datatype;
  return MPI_SUCCESS;
}

/* From 4.3 on ROMIO asks for a copy of a buffer in a GPU's memory; NULL says that it is not in one.
 * This form does not take such buffers, as it does not with older versions. */
void* MPIR_Ext_gpu_host_alloc(const void* buffer, MPI_Aint count, MPI_Datatype datatype) {
  (void)buffer;
  (void)count;
  (void)datatype;
  return NULL;
}

void* MPIR_Ext_gpu_host_swap(const void* buffer, MPI_Aint count, MPI_Datatype datatype) {
  return MPIR_Ext_gpu_host_alloc(buffer, count, datatype);
}

void MPIR_Ext_gpu_host_free(void* host, MPI_Aint count, MPI_Datatype datatype) {
  (void)host;
  (void)count;
  (void)datatype;
}

void MPIR_Ext_gpu_swap_back(void* host, void* buffer, MPI_Aint count, MPI_Datatype datatype) {
  (void)buffer;
  MPIR_Ext_gpu_host_free(host, count, datatype);
}

static void check_mpi_version(void) {
  static const char want[] = "MPICH Version:";
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  if (PMPI_Get_library_version(text, &length) != MPI_SUCCESS) text[0] = '\0';
  const char* found = strstr(text, want);
  if (found != NULL) {
    found += strlen(want);
    found += strspn(found, " \t");
    const size_t size = strcspn(found, " \t\r\n");
    if (size == strlen(MPICH_VERSION) && strncmp(found, MPICH_VERSION, size) == 0) return;
  }
  text[strcspn(text, "\r\n")] = '\0';
  fprintf(stderr,
          "libromio-dedup.so is built for MPICH %s, but this program runs with \"%s\". Build it "
          "again for that library (./configure --with-mpich-source=DIR), or do not preload it.\n",
          MPICH_VERSION, text);
  exit(EXIT_FAILURE);
}

void dedup_check_mpi_version(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, check_mpi_version);
}
