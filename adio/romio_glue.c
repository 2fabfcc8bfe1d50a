#include "adio/romio_glue.h"

#include "adio.h"
#include "adio/romio_threads.h"
#include "adio_extern.h"
#include "mpioimpl.h"

/* ---- MPI_File structures ----------------------------------------------------------------------
 */

/* MPI_File_close frees the structure and then reports an error on it. So it is kept, linked through
 * a member that is unused by then, until the thread leaves the function. */
static __thread ADIO_File closed_files;

MPI_File MPIO_File_create(int size) {
  return ADIOI_Calloc(1, (size_t)size);
}

ADIO_File MPIO_File_resolve(MPI_File file) {
  return file;
}

void MPIO_File_free(MPI_File* file) {
  (*file)->shared_fp_fd = closed_files;
  closed_files = *file;
  *file = MPI_FILE_NULL;
}

void dedup_free_closed_files(void) {
  while (closed_files != NULL) {
    ADIO_File next = closed_files->shared_fp_fd;
    closed_files->cookie = 0;
    ADIOI_Free(closed_files);
    closed_files = next;
  }
}

/* Fortran's handles: indices of a table, of which 0 is MPI_FILE_NULL. */
MPI_File MPIO_File_f2c(MPI_Fint handle) {
  if (handle <= 0 || handle > ADIOI_Ftable_ptr) return MPI_FILE_NULL;
  return ADIOI_Ftable[handle];
}

MPI_Fint MPIO_File_c2f(MPI_File file) {
  if (file == MPI_FILE_NULL || file->cookie != ADIOI_FILE_COOKIE) return 0;
  if (file->fortran_handle != -1) return file->fortran_handle;
  /* ROMIO puts MPI_FILE_NULL into the slot of a file that it closes. */
  int slot = 1;
  while (slot <= ADIOI_Ftable_ptr && ADIOI_Ftable[slot] != MPI_FILE_NULL) ++slot;
  if (slot >= ADIOI_Ftable_max) {
    const int larger = slot + 1024;
    ADIOI_Ftable = ADIOI_Realloc(ADIOI_Ftable, (size_t)larger * sizeof *ADIOI_Ftable);
    for (int i = ADIOI_Ftable_max; i < larger; ++i) ADIOI_Ftable[i] = MPI_FILE_NULL;
    ADIOI_Ftable_max = larger;
  }
  if (slot > ADIOI_Ftable_ptr) ADIOI_Ftable_ptr = slot;
  ADIOI_Ftable[slot] = file;
  file->fortran_handle = slot;
  return slot;
}

/* ---- Errors -----------------------------------------------------------------------------------
 */

MPI_Errhandler dedup_default_errhandler(void) {
  MPI_Errhandler handler;
  if (PMPI_File_get_errhandler(MPI_FILE_NULL, &handler) != MPI_SUCCESS) return MPI_ERRORS_RETURN;
  return handler;
}

/* The handler may do anything: call MPI_File functions, leave by longjmp. So it runs outside of the
 * critical section. */
int MPIO_Err_return_file(MPI_File file, int error_code) {
  const int entered = dedup_cs_suspend();
  PMPI_File_call_errhandler(file, error_code);
  dedup_cs_resume(entered);
  return error_code;
}

int MPIO_Err_return_comm(MPI_Comm comm, int error_code) {
  const int entered = dedup_cs_suspend();
  PMPI_Comm_call_errhandler(comm, error_code);
  dedup_cs_resume(entered);
  return error_code;
}
