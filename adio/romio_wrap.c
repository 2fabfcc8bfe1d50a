/* How the driver gets into ROMIO: its calls of these functions are turned into calls of ours, which
 * see to dedup: files and pass everything else on. Beside MPICH the linker's --wrap does so; inside
 * MPICH ROMIO's functions are given other names (add-to-mpich).
 */
#include <strings.h>

#include "adio/ad_dedup.h"
#include "adio/flatten.h"
#include "adio/romio_glue.h"
#include "adio/romio_threads.h"

/* From 4.1 on the result says whether the name has a prefix, which is to be cut off. */
#if MPICH_NUMVERSION >= 40100000
typedef int resolved;
#define RESOLVED(has_prefix) (has_prefix)
#else
typedef void resolved;
#define RESOLVED(has_prefix)
#endif

resolved __real_ADIO_ResolveFileType(MPI_Comm comm, const char* filename, int* fstype,
                                     ADIOI_Fns** ops, int* error_code);
resolved __wrap_ADIO_ResolveFileType(MPI_Comm comm, const char* filename, int* fstype,
                                     ADIOI_Fns** ops, int* error_code);
MPI_File __real_ADIO_Open(MPI_Comm orig_comm, MPI_Comm comm, const char* filename, int file_system,
                          ADIOI_Fns* ops, int access_mode, ADIO_Offset disp, MPI_Datatype etype,
                          MPI_Datatype filetype, MPI_Info info, int perm, int* error_code);
MPI_File __wrap_ADIO_Open(MPI_Comm orig_comm, MPI_Comm comm, const char* filename, int file_system,
                          ADIOI_Fns* ops, int access_mode, ADIO_Offset disp, MPI_Datatype etype,
                          MPI_Datatype filetype, MPI_Info info, int perm, int* error_code);
void __real_ADIO_Set_view(ADIO_File fd, ADIO_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                          MPI_Info info, int* error_code);
void __wrap_ADIO_Set_view(ADIO_File fd, ADIO_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                          MPI_Info info, int* error_code);
void __real_ADIOI_Shfp_fname(ADIO_File fd, int rank, int* error_code);
void __wrap_ADIOI_Shfp_fname(ADIO_File fd, int rank, int* error_code);
void __real_ADIO_Get_shared_fp(ADIO_File fd, ADIO_Offset size, ADIO_Offset* shared_fp,
                               int* error_code);
void __wrap_ADIO_Get_shared_fp(ADIO_File fd, ADIO_Offset size, ADIO_Offset* shared_fp,
                               int* error_code);
ADIOI_Flatlist_node* __real_ADIOI_Flatten_and_find(MPI_Datatype datatype);
ADIOI_Flatlist_node* __wrap_ADIOI_Flatten_and_find(MPI_Datatype datatype);
void __real_ADIOI_Get_position(ADIO_File fd, ADIO_Offset* offset);
void __wrap_ADIOI_Get_position(ADIO_File fd, ADIO_Offset* offset);
void __real_ADIOI_Get_byte_offset(ADIO_File fd, ADIO_Offset offset, ADIO_Offset* byte);
void __wrap_ADIOI_Get_byte_offset(ADIO_File fd, ADIO_Offset offset, ADIO_Offset* byte);
void __real_ADIOI_Get_eof_offset(ADIO_File fd, ADIO_Offset* offset);
void __wrap_ADIOI_Get_eof_offset(ADIO_File fd, ADIO_Offset* offset);
void __real_ADIO_Set_shared_fp(ADIO_File fd, ADIO_Offset offset, int* error_code);
void __wrap_ADIO_Set_shared_fp(ADIO_File fd, ADIO_Offset offset, int* error_code);

static int has_prefix(const char* name) {
  return name != NULL && strncasecmp(name, AD_DEDUP_PREFIX, strlen(AD_DEDUP_PREFIX)) == 0;
}

static int is_ours(ADIO_File fd) {
  return fd->fns == &ADIO_DEDUP_operations;
}

/* ---- Whose a file is --------------------------------------------------------------------------
 */

/* The driver that a name asks for; without a name, kNone. */
enum asked_driver { kNone, kOurs, kAnother, kAny };

/* As in ROMIO, ROMIO_FSTYPE_FORCE comes before the name's own prefix up to 4.0, and from 4.1 on is
 * only for names without a colon. */
static enum asked_driver asked_by(const char* filename) {
  if (filename == NULL) return kNone;
  const char* forced = getenv("ROMIO_FSTYPE_FORCE");
#if MPICH_NUMVERSION >= 40100000
  if (strchr(filename, ':') != NULL) forced = NULL;
#endif
  if (has_prefix(forced != NULL ? forced : filename)) return kOurs;
  return forced != NULL || strchr(filename, ':') != NULL ? kAnother : kAny;
}

int ad_dedup_is_name(const char* filename) {
  return asked_by(filename) == kOurs;
}

/* As MPI_File_open and MPI_File_delete find the path in a name. */
static const char* path_of(const char* filename) {
  if (filename == NULL) return "(no name)";
  const char* colon = strchr(filename, ':');
  return colon > filename + 1 ? colon + 1 : filename;
}

static int is_placeholder(const char* path) {
  const int entered = dedup_cs_suspend();
  const int is_one = dedup_is_placeholder(path);
  dedup_cs_resume(entered);
  return is_one;
}

static int refuse(int error_class, const char* filename, const char* why, int line) {
  dedup_error error = {.error_class = error_class};
  snprintf(error.text, sizeof error.text, "%s: %s", path_of(filename), why);
  return ad_dedup_error_code("ADIO_ResolveFileType", line, &error);
}

/* Collective. Finds out whether a placeholder stands at the path of a name that does not ask for
 * our driver: rank 0 looks for all. Returns an error code, the same class on all ranks. */
static int look_for_placeholder(MPI_Comm comm, const char* filename, enum asked_driver asked,
                                int* found) {
  int rank;
  PMPI_Comm_rank(comm, &rank);
  const int mine[] = {(int)asked, -(int)asked,
                      rank == 0 && asked >= kAnother && is_placeholder(path_of(filename))};
  int all[3];
  const int code = PMPI_Allreduce(mine, all, 3, MPI_INT, MPI_MAX, comm);
  if (code != MPI_SUCCESS) return code;
  *found = all[2];
  if (all[0] != -all[1]) {
    return refuse(MPI_ERR_NOT_SAME, filename,
                  "ranks ask for different drivers, by the file's prefix or ROMIO_FSTYPE_FORCE",
                  __LINE__);
  }
  if (*found && asked == kAnother) {
    return refuse(
        MPI_ERR_IO, filename,
        "its data is in the stores of " AD_DEDUP_PREFIX
        ", and another driver would take their placeholder for it; use the prefix " AD_DEDUP_PREFIX
        " or none",
        __LINE__);
  }
  return MPI_SUCCESS;
}

/* A name without a prefix is ours where a placeholder stands: the other drivers would take that for
 * the file's data. */
resolved __wrap_ADIO_ResolveFileType(MPI_Comm comm, const char* filename, int* fstype,
                                     ADIOI_Fns** ops, int* error_code) {
#ifndef ROMIO_DEDUP /* inside MPICH there are no two versions */
  dedup_check_mpi_version();
#endif
  const enum asked_driver asked = asked_by(filename);
  int placeholder = 0;
  *error_code = look_for_placeholder(comm, filename, asked, &placeholder);
  if (*error_code != MPI_SUCCESS) return RESOLVED(0);
  if (asked != kOurs && !placeholder) {
    return __real_ADIO_ResolveFileType(comm, filename, fstype, ops, error_code);
  }
  *fstype = ADIO_DEDUP;
  *ops = &ADIO_DEDUP_operations;
  return RESOLVED(has_prefix(filename));
}

/* True while ROMIO opens the hidden file in which its other drivers keep a shared pointer. */
static __thread int opening_hidden_file;

/* A file inherits the error handler that MPI_FILE_NULL has at that moment. The library keeps that
 * one; ROMIO's own variable never hears of it. */
MPI_File __wrap_ADIO_Open(MPI_Comm orig_comm, MPI_Comm comm, const char* filename, int file_system,
                          ADIOI_Fns* ops, int access_mode, ADIO_Offset disp, MPI_Datatype etype,
                          MPI_Datatype filetype, MPI_Info info, int perm, int* error_code) {
  MPI_File file = __real_ADIO_Open(orig_comm, comm, filename, file_system, ops, access_mode, disp,
                                   etype, filetype, info, perm, error_code);
  if (file != MPI_FILE_NULL && !opening_hidden_file) file->err_handler = dedup_default_errhandler();
  return file;
}

/* Makes the name of that hidden file: not for ours, which have none, and a name that is too long
 * for it would make rank 0 fail alone. */
void __wrap_ADIOI_Shfp_fname(ADIO_File fd, int rank, int* error_code) {
  if (is_ours(fd)) {
    fd->shared_fp_fname = ADIOI_Strdup("");
  } else {
    __real_ADIOI_Shfp_fname(fd, rank, error_code);
  }
}

void __wrap_ADIO_Get_shared_fp(ADIO_File fd, ADIO_Offset size, ADIO_Offset* shared_fp,
                               int* error_code) {
  if (!is_ours(fd)) {
    opening_hidden_file = 1;
    __real_ADIO_Get_shared_fp(fd, size, shared_fp, error_code);
    opening_hidden_file = 0;
    return;
  }
  dedup_error error;
  MPI_Offset before = 0;
  ad_dedup(fd)->shared_used = 1;
  const int entered = dedup_cs_suspend();
  const int error_class = dedup_shared_fetch_add(ad_dedup(fd)->engine, size, &before, &error);
  dedup_cs_resume(entered);
  *shared_fp = before;
  *error_code = MPI_SUCCESS;
  if (error_class != MPI_SUCCESS) {
    *error_code = ad_dedup_error_code("ADIO_Get_shared_fp", __LINE__, &error);
  }
}

void __wrap_ADIO_Set_shared_fp(ADIO_File fd, ADIO_Offset offset, int* error_code) {
  if (!is_ours(fd)) {
    opening_hidden_file = 1;
    __real_ADIO_Set_shared_fp(fd, offset, error_code);
    opening_hidden_file = 0;
    return;
  }
  dedup_error error;
  ad_dedup(fd)->shared_used = 1;
  const int entered = dedup_cs_suspend();
  const int error_class = dedup_shared_set(ad_dedup(fd)->engine, offset, &error);
  dedup_cs_resume(entered);
  *error_code = MPI_SUCCESS;
  if (error_class != MPI_SUCCESS) {
    *error_code = ad_dedup_error_code("ADIO_Set_shared_fp", __LINE__, &error);
  }
}

/* ---- Views ------------------------------------------------------------------------------------
 */

/* True while ROMIO sets the view of a file of ours. */
static __thread int setting_our_view;

/* ROMIO checks the types of a new view by its own lists, which can be wrong (flatten.h). */
ADIOI_Flatlist_node* __wrap_ADIOI_Flatten_and_find(MPI_Datatype datatype) {
  return setting_our_view ? dedup_flatten(datatype) : __real_ADIOI_Flatten_and_find(datatype);
}

/* A new view starts with both pointers at 0. ROMIO sets the shared one only where its hidden file
 * is open; here each rank does that used it, before the barrier that ends MPI_File_set_view. */
void __wrap_ADIO_Set_view(ADIO_File fd, ADIO_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                          MPI_Info info, int* error_code) {
  setting_our_view = is_ours(fd);
  __real_ADIO_Set_view(fd, disp, etype, filetype, info, error_code);
  setting_our_view = 0;
  if (!is_ours(fd)) return;
  ad_dedup_forget_view(&ad_dedup(fd)->view);
  if (*error_code != MPI_SUCCESS) return;
  fd->fp_ind = ad_dedup_file_byte(fd, 0);
  if (ad_dedup(fd)->shared_used) {
    __wrap_ADIO_Set_shared_fp(fd, 0, error_code);
    ad_dedup(fd)->shared_used = 0;
  }
}

/* ROMIO steps through the view from its start for these. All of them count etypes. */

void __wrap_ADIOI_Get_position(ADIO_File fd, ADIO_Offset* offset) {
  if (!is_ours(fd)) {
    __real_ADIOI_Get_position(fd, offset);
  } else {
    *offset = ad_dedup_data_byte(fd, fd->fp_ind) / (ADIO_Offset)fd->etype_size;
  }
}

void __wrap_ADIOI_Get_byte_offset(ADIO_File fd, ADIO_Offset offset, ADIO_Offset* byte) {
  if (!is_ours(fd)) {
    __real_ADIOI_Get_byte_offset(fd, offset, byte);
  } else {
    *byte = ad_dedup_file_byte(fd, offset * (ADIO_Offset)fd->etype_size);
  }
}

/* The first etype that begins at or behind the file's end. */
void __wrap_ADIOI_Get_eof_offset(ADIO_File fd, ADIO_Offset* offset) {
  if (!is_ours(fd)) {
    __real_ADIOI_Get_eof_offset(fd, offset);
    return;
  }
  ADIO_Fcntl_t get = {0};
  int error_code;
  ADIO_Fcntl(fd, ADIO_FCNTL_GET_FSIZE, &get, &error_code);
  const ADIO_Offset etype = (ADIO_Offset)fd->etype_size;
  *offset = get.fsize <= fd->disp ? 0 : (ad_dedup_data_byte(fd, get.fsize) + etype - 1) / etype;
}
