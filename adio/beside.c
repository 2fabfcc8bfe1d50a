/* What ROMIO asks of the MPICH it is built into, for a ROMIO beside it; and the check that it is
 * beside the right one.
 */
#include <dlfcn.h>
#include <link.h>
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
          "dedup: error: libromio-dedup.so is built for MPICH %s, but this program runs with "
          "\"%s\": %s\n",
          MPICH_VERSION, text,
          found != NULL
              ? "build the driver again for that MPICH (./configure --with-mpich-source=DIR), or "
                "run the "
                "program with the one that it is built for"
              : "it works with MPICH alone; doc/mpich.md says what can be done with other MPIs");
  exit(EXIT_FAILURE);
}

void dedup_check_mpi_version(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, check_mpi_version);
}

/* The file of Open MPI's library if the program has loaded it, or NULL. Its functions have the
 * names of MPICH's, which is preloaded with this library and so comes first; its handles are other
 * things. */
static const char* open_mpi(void) {
  void* const program = dlopen(NULL, RTLD_LAZY);
  struct link_map* loaded = NULL;
  const char* found = NULL;
  if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, &loaded) != 0) return NULL;
  for (; loaded != NULL && found == NULL; loaded = loaded->l_next) {
    void* const library = dlopen(loaded->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) continue;
    /* Libraries that need it have its symbol as well. */
    Dl_info about;
    const void* const symbol = dlsym(library, "ompi_mpi_comm_world");
    if (symbol != NULL && dladdr(symbol, &about) != 0) found = about.dli_fname;
    dlclose(library);
  }
  dlclose(program);
  return found;
}

void dedup_check_no_other_mpi(void) {
  const char* const found = open_mpi();
  int rank, size, first;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  const int mine = found != NULL ? rank : size;
  if (PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) != MPI_SUCCESS) return;
  if (first == size) return;
  if (rank == first) {
    fprintf(stderr,
            "dedup: error: this program is built for Open MPI (%s), and the dedup: driver is for "
            "MPICH: build it, or for Python mpi4py and h5py, with mpicc.mpich\n",
            found);
  }
  PMPI_Finalize();
  exit(EXIT_FAILURE);
}
