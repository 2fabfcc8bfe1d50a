/* The table of operations, and those that are neither reading nor writing. */
#include "adio/ad_dedup.h"

#include <pthread.h>

#include "adio/romio_threads.h"
#include "adio_extern.h"
#include "mpioimpl.h"

/* ---- Errors -----------------------------------------------------------------------------------
 */

/* MPICH keeps this much of a text that is an argument of a message. */
enum { kTextThatSurvives = 200 };

int ad_dedup_error_code(const char* where, int line, const dedup_error* error) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static char printed[sizeof error->text];
  char text[kTextThatSurvives + 1];
  dedup_abbreviate(error->text, text, sizeof text);
  if (strcmp(text, error->text) != 0) {
    pthread_mutex_lock(&lock);
    if (strcmp(printed, error->text) != 0) {
      snprintf(printed, sizeof printed, "%s", error->text);
      fprintf(stderr, "dedup: %s\n", error->text);
    }
    pthread_mutex_unlock(&lock);
  }
  return MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, where, line, error->error_class,
                              "**io", "**io %s", text);
}

static void set_result(int error_class, const dedup_error* error, const char* where, int line,
                       int* error_code) {
  *error_code = error_class == MPI_SUCCESS ? MPI_SUCCESS : ad_dedup_error_code(where, line, error);
}

static void fail(int error_class, const char* text, const char* where, int line, int* error_code) {
  dedup_error error = {.error_class = error_class};
  snprintf(error.text, sizeof error.text, "%s", text);
  *error_code = ad_dedup_error_code(where, line, &error);
}

/* ---- Hints ------------------------------------------------------------------------------------
 */

static void show_hints(ADIO_File fd) {
  if (fd->info != MPI_INFO_NULL) dedup_get_info(ad_dedup(fd)->engine, fd->info);
}

int ad_dedup_take_hints(ADIO_File fd, MPI_Info info) {
  dedup_error error;
  const int entered = dedup_cs_suspend();
  const int error_class = dedup_set_info(ad_dedup(fd)->engine, info, &error);
  dedup_cs_resume(entered);
  show_hints(fd);
  return error_class == MPI_SUCCESS ? MPI_SUCCESS
                                    : ad_dedup_error_code("ad_dedup_take_hints", __LINE__, &error);
}

/* At open ROMIO calls this before OpenColl and drops the verdict: the hints are kept for
 * dedup_open, which judges them. Later calls come from set_info and set_view, on all ranks. */
static void ADIOI_DEDUP_SetInfo(ADIO_File fd, MPI_Info users_info, int* error_code) {
  ADIOI_GEN_SetInfo(fd, users_info, error_code);
  if (*error_code != MPI_SUCCESS) return;

  struct ad_dedup_file* file = ad_dedup(fd);
  if (file == NULL) {
    file = ADIOI_Calloc(1, sizeof *file);
    file->info = MPI_INFO_NULL;
    if (users_info != MPI_INFO_NULL) PMPI_Info_dup(users_info, &file->info);
    fd->fs_ptr = file;
    return;
  }
  ad_dedup_forget_view(&file->view);
  if (file->engine == NULL) return;
  if (file->hints_taken) {
    show_hints(fd);
  } else {
    *error_code = ad_dedup_take_hints(fd, users_info);
  }
}

/* ---- Open, close, delete ----------------------------------------------------------------------
 */

_Static_assert(ADIO_CREATE == MPI_MODE_CREATE && ADIO_RDONLY == MPI_MODE_RDONLY &&
                   ADIO_WRONLY == MPI_MODE_WRONLY && ADIO_RDWR == MPI_MODE_RDWR &&
                   ADIO_DELETE_ON_CLOSE == MPI_MODE_DELETE_ON_CLOSE &&
                   ADIO_UNIQUE_OPEN == MPI_MODE_UNIQUE_OPEN && ADIO_EXCL == MPI_MODE_EXCL &&
                   ADIO_APPEND == MPI_MODE_APPEND && ADIO_SEQUENTIAL == MPI_MODE_SEQUENTIAL,
               "ADIO's access modes are MPI's");

static void free_file(ADIO_File fd) {
  struct ad_dedup_file* file = ad_dedup(fd);
  if (file == NULL) return;
  ad_dedup_forget_view(&file->view);
  if (file->info != MPI_INFO_NULL) PMPI_Info_free(&file->info);
  ADIOI_Free(file);
  fd->fs_ptr = NULL;
}

static int open_engine(ADIO_File fd, int access_mode, dedup_error* error) {
  struct ad_dedup_file* file = ad_dedup(fd);
  char* path = dedup_absolute_path(fd->filename);
  const int error_class = dedup_open(fd->comm, path != NULL ? path : "", access_mode, file->info,
                                     ADIOI_syshints, &file->engine, error);
  free(path);
  return error_class;
}

/* Collective over fd->comm. ROMIO's generic one would open on MPI_COMM_SELF first. */
static void ADIOI_DEDUP_OpenColl(ADIO_File fd, int rank, int access_mode, int* error_code) {
  (void)rank;
  dedup_error error;
  struct ad_dedup_file* file = ad_dedup(fd);
  fd->access_mode = access_mode;
  fd->fd_sys = -1;

  const int entered = dedup_cs_suspend();
  int error_class = open_engine(fd, access_mode, &error);
  MPI_Offset size = 0;
  if (error_class == MPI_SUCCESS && (access_mode & ADIO_APPEND)) {
    /* Local, but all ranks have to agree on what comes of it. */
    int worst;
    error_class = dedup_get_size(file->engine, &size, &error);
    PMPI_Allreduce(&error_class, &worst, 1, MPI_INT, MPI_MAX, fd->comm);
    if (worst != MPI_SUCCESS) {
      dedup_error ignored;
      if (error_class == MPI_SUCCESS) {
        error.error_class = worst;
        snprintf(error.text, sizeof error.text, "%s: another rank cannot get the file's size",
                 fd->filename);
      }
      error_class = worst;
      dedup_close(file->engine, &ignored);
      file->engine = NULL;
    }
  }
  dedup_cs_resume(entered);

  set_result(error_class, &error, "ADIOI_DEDUP_OpenColl", __LINE__, error_code);
  if (error_class != MPI_SUCCESS) {
    free_file(fd);
    return;
  }
  if (file->info != MPI_INFO_NULL) PMPI_Info_free(&file->info);
  if (access_mode & ADIO_APPEND) fd->fp_ind = size;
  fd->blksize = 4096;
  fd->is_open = 1;
  fd->dirty_write = 0;
  show_hints(fd);
}

/* ROMIO opens a single rank only if Feature allows to defer opens, which it does not. */
static void ADIOI_DEDUP_Open(ADIO_File fd, int* error_code) {
  (void)fd;
  fail(MPI_ERR_INTERN, "dedup: a file is opened by all ranks", "ADIOI_DEDUP_Open", __LINE__,
       error_code);
}

static void ADIOI_DEDUP_Close(ADIO_File fd, int* error_code) {
  dedup_error error;
  int error_class = MPI_SUCCESS;
  if (ad_dedup(fd) != NULL && ad_dedup(fd)->engine != NULL) {
    const int entered = dedup_cs_suspend();
    error_class = dedup_close(ad_dedup(fd)->engine, &error);
    dedup_cs_resume(entered);
  }
  set_result(error_class, &error, "ADIOI_DEDUP_Close", __LINE__, error_code);
  free_file(fd);
  /* The engine has removed it; ROMIO would unlink the path on the real file system. */
  fd->access_mode &= ~ADIO_DELETE_ON_CLOSE;
}

/* ROMIO reads its hints file when it opens the first file, which may be yet to come. */
static void ADIOI_DEDUP_Delete(const char* filename, int* error_code) {
  dedup_error error;
  MPI_Info hints = ADIOI_syshints;
  if (hints == MPI_INFO_NULL) {
    struct ADIOI_FileD self = {.comm = MPI_COMM_SELF};
    PMPI_Info_create(&hints);
    ADIOI_process_system_hints(&self, hints);
  }
  char* path = dedup_absolute_path(filename);
  const int entered = dedup_cs_suspend();
  const int error_class = dedup_delete(path != NULL ? path : "", hints, &error);
  dedup_cs_resume(entered);
  free(path);
  if (hints != ADIOI_syshints) PMPI_Info_free(&hints);
  set_result(error_class, &error, "ADIOI_DEDUP_Delete", __LINE__, error_code);
}

/* ---- Size, commit, modes ----------------------------------------------------------------------
 */

static void ADIOI_DEDUP_Flush(ADIO_File fd, int* error_code) {
  dedup_error error;
  const int entered = dedup_cs_suspend();
  const int error_class = dedup_sync(ad_dedup(fd)->engine, &error);
  dedup_cs_resume(entered);
  set_result(error_class, &error, "ADIOI_DEDUP_Flush", __LINE__, error_code);
  if (error_class == MPI_SUCCESS) fd->dirty_write = 0;
  show_hints(fd);
}

static void ADIOI_DEDUP_Resize(ADIO_File fd, ADIO_Offset size, int* error_code) {
  dedup_error error;
  const int entered = dedup_cs_suspend();
  const int error_class = dedup_set_size(ad_dedup(fd)->engine, size, &error);
  dedup_cs_resume(entered);
  set_result(error_class, &error, "ADIOI_DEDUP_Resize", __LINE__, error_code);
}

/* Size and preallocation may come from one rank alone. */
static void ADIOI_DEDUP_Fcntl(ADIO_File fd, int flag, ADIO_Fcntl_t* fcntl_struct, int* error_code) {
  dedup_error error;
  dedup_file* engine = ad_dedup(fd)->engine;
  int error_class = MPI_SUCCESS;
  MPI_Offset size = 0;
  const int entered = dedup_cs_suspend();
  switch (flag) {
    case ADIO_FCNTL_GET_FSIZE:
      error_class = dedup_get_size(engine, &size, &error);
      fcntl_struct->fsize = size;
      break;
    case ADIO_FCNTL_SET_DISKSPACE:
      error_class = dedup_preallocate(engine, fcntl_struct->diskspace, &error);
      break;
    case ADIO_FCNTL_SET_ATOMICITY:
      fd->atomicity = fcntl_struct->atomicity != 0;
      dedup_set_atomicity(engine, fd->atomicity);
      break;
    default:
      error_class = error.error_class = MPI_ERR_ARG;
      snprintf(error.text, sizeof error.text, "dedup: fcntl %d is unknown", flag);
  }
  dedup_cs_resume(entered);
  set_result(error_class, &error, "ADIOI_DEDUP_Fcntl", __LINE__, error_code);
}

/* No to locks and sieving: the engine orders writes itself, and never reads holes to write them
 * back. No to two-phase, or ROMIO would defer opens. Yes to scalable open for the same reason. */
static int ADIOI_DEDUP_Feature(ADIO_File fd, int flag) {
  (void)fd;
  switch (flag) {
    case ADIO_SHARED_FP:
    case ADIO_ATOMIC_MODE:
    case ADIO_SCALABLE_OPEN:
    case ADIO_SCALABLE_RESIZE:
    case ADIO_UNLINK_AFTER_CLOSE:
      return 1;
    default:
      return 0;
  }
}

/* ROMIO locks around shared-pointer accesses in atomic mode without asking Feature. */
static int ADIOI_DEDUP_SetLock(ADIO_File fd, int cmd, int type, ADIO_Offset offset, int whence,
                               ADIO_Offset len) {
  (void)fd;
  (void)cmd;
  (void)type;
  (void)offset;
  (void)whence;
  (void)len;
  return MPI_SUCCESS;
}

struct ADIOI_Fns_struct ADIO_DEDUP_operations = {
    .ADIOI_xxx_Open = ADIOI_DEDUP_Open,
    .ADIOI_xxx_OpenColl = ADIOI_DEDUP_OpenColl,
    .ADIOI_xxx_ReadContig = ADIOI_DEDUP_ReadContig,
    .ADIOI_xxx_WriteContig = ADIOI_DEDUP_WriteContig,
    .ADIOI_xxx_ReadStridedColl = ADIOI_DEDUP_ReadStridedColl,
    .ADIOI_xxx_WriteStridedColl = ADIOI_DEDUP_WriteStridedColl,
    .ADIOI_xxx_SeekIndividual = ADIOI_DEDUP_SeekIndividual,
    .ADIOI_xxx_Fcntl = ADIOI_DEDUP_Fcntl,
    .ADIOI_xxx_SetInfo = ADIOI_DEDUP_SetInfo,
    .ADIOI_xxx_ReadStrided = ADIOI_DEDUP_ReadStrided,
    .ADIOI_xxx_WriteStrided = ADIOI_DEDUP_WriteStrided,
    .ADIOI_xxx_Close = ADIOI_DEDUP_Close,
    .ADIOI_xxx_IreadContig = ADIOI_DEDUP_IreadContig,
    .ADIOI_xxx_IwriteContig = ADIOI_DEDUP_IwriteContig,
    /* Requests are complete when they are made; ROMIO's own functions for that case. */
    .ADIOI_xxx_ReadDone = ADIOI_FAKE_IODone,
    .ADIOI_xxx_WriteDone = ADIOI_FAKE_IODone,
    .ADIOI_xxx_ReadComplete = ADIOI_FAKE_IOComplete,
    .ADIOI_xxx_WriteComplete = ADIOI_FAKE_IOComplete,
    .ADIOI_xxx_IreadStrided = ADIOI_DEDUP_IreadStrided,
    .ADIOI_xxx_IwriteStrided = ADIOI_DEDUP_IwriteStrided,
    .ADIOI_xxx_Flush = ADIOI_DEDUP_Flush,
    .ADIOI_xxx_Resize = ADIOI_DEDUP_Resize,
    .ADIOI_xxx_Delete = ADIOI_DEDUP_Delete,
    .ADIOI_xxx_Feature = ADIOI_DEDUP_Feature,
    .fsname = "DEDUP: node-local stores, deduplicated and replicated",
    .ADIOI_xxx_IreadStridedColl = ADIOI_DEDUP_IreadStridedColl,
    .ADIOI_xxx_IwriteStridedColl = ADIOI_DEDUP_IwriteStridedColl,
    .ADIOI_xxx_SetLock = ADIOI_DEDUP_SetLock,
};
