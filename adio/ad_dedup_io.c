/* Reading, writing and seeking. ADIO gives a position in one of two ways: an explicit offset, in
 * bytes of the file for the contiguous operations and in etypes of the view for the others, or
 * "individual": at fd->fp_ind, which is always a byte of the file.
 */
#include "adio/ad_dedup.h"
#include "adio/flatten.h"
#include "adio/romio_threads.h"

/* An access, with the memory that its one-piece types need. */
struct transfer {
  dedup_access access;
  MPI_Offset file_piece[2], memory_piece[2];
  int in_view;    /* positions count the view's data, not the file's bytes */
  int individual; /* moves fd->fp_ind */
};

static void describe_memory(struct transfer* t, void* buf, ad_dedup_count count,
                            MPI_Datatype datatype) {
  int contiguous;
  MPI_Count size, lb, extent;
  PMPI_Type_size_x(datatype, &size);
  t->access.buf = buf;
  t->access.bytes = (MPI_Offset)count * size;
  ADIOI_Datatype_iscontig(datatype, &contiguous);
  if (contiguous || t->access.bytes == 0) {
    t->access.memtype = ad_dedup_contiguous(t->access.bytes, t->memory_piece);
    return;
  }
  PMPI_Type_get_extent_x(datatype, &lb, &extent);
  const ADIOI_Flatlist_node* flat = dedup_flatten(datatype);
  t->access.memtype = (dedup_flat){.count = flat->count,
                                   .offsets = flat->indices,
                                   .lengths = flat->blocklens,
                                   .extent = extent,
                                   .size = size};
}

/* The file side of a contiguous operation. */
static void describe_bytes(struct transfer* t, ADIO_File fd, int file_ptr_type,
                           ADIO_Offset offset) {
  t->individual = file_ptr_type == ADIO_INDIVIDUAL;
  t->in_view = 0;
  t->access.disp = 0;
  t->access.start = t->individual ? fd->fp_ind : offset;
  t->access.filetype = ad_dedup_contiguous(t->access.start + t->access.bytes, t->file_piece);
}

/* The file side of any other operation. */
static void describe_view(struct transfer* t, ADIO_File fd, int file_ptr_type, ADIO_Offset offset) {
  const struct ad_dedup_view* view = ad_dedup_view(fd);
  t->individual = file_ptr_type == ADIO_INDIVIDUAL;
  t->in_view = 1;
  t->access.disp = fd->disp;
  t->access.start =
      t->individual ? ad_dedup_data_byte(fd, fd->fp_ind) : offset * (ADIO_Offset)fd->etype_size;
  t->access.filetype = view->before != NULL
                           ? view->filetype
                           : ad_dedup_contiguous(t->access.start + t->access.bytes, t->file_piece);
}

static ADIO_Offset position_after(const struct transfer* t, ADIO_File fd, MPI_Offset bytes) {
  const MPI_Offset end = t->access.start + bytes;
  return t->in_view ? ad_dedup_file_byte(fd, end) : end;
}

/* The individual pointer moves before the transfer, in which another thread may use the handle, and
 * is put right if less was transferred. */
static MPI_Offset write_data(ADIO_File fd, const struct transfer* t, enum dedup_how how,
                             int* error_code) {
  dedup_error error = {.error_class = MPI_SUCCESS};
  const ADIO_Offset before = fd->fp_ind;
  const ADIO_Offset after = t->individual ? position_after(t, fd, t->access.bytes) : before;
  fd->fp_ind = after;

  const int entered = dedup_cs_suspend();
  const int error_class = dedup_write(ad_dedup(fd)->engine, &t->access, how, &error);
  dedup_cs_resume(entered);

  if (error_class == MPI_SUCCESS) {
    fd->dirty_write = 1;
    *error_code = MPI_SUCCESS;
    return t->access.bytes;
  }
  if (t->individual && fd->fp_ind == after) fd->fp_ind = before;
  *error_code = ad_dedup_error_code("ADIOI_DEDUP_Write", __LINE__, &error);
  return 0;
}

static MPI_Offset read_data(ADIO_File fd, const struct transfer* t, enum dedup_how how,
                            int* error_code) {
  dedup_error error = {.error_class = MPI_SUCCESS};
  MPI_Offset bytes = 0;
  const ADIO_Offset before = fd->fp_ind;
  const ADIO_Offset after = t->individual ? position_after(t, fd, t->access.bytes) : before;
  fd->fp_ind = after;

  const int entered = dedup_cs_suspend();
  const int error_class = dedup_read(ad_dedup(fd)->engine, &t->access, how, &bytes, &error);
  dedup_cs_resume(entered);

  *error_code = MPI_SUCCESS;
  if (error_class != MPI_SUCCESS) {
    bytes = 0;
    *error_code = ad_dedup_error_code("ADIOI_DEDUP_Read", __LINE__, &error);
  }
  if (t->individual && bytes < t->access.bytes && fd->fp_ind == after) {
    fd->fp_ind = bytes == 0 ? before : position_after(t, fd, bytes);
  }
  return bytes;
}

static void set_status(ADIO_Status* status, MPI_Datatype datatype, MPI_Offset bytes) {
  if (status != NULL) MPIR_Status_set_bytes(status, datatype, bytes);
}

/* A nonblocking operation is done when it is started: see DEDUP_INDEPENDENT. */
static void finish_request(ADIO_File fd, MPI_Offset bytes, ADIO_Request* request, int* error_code) {
  if (*error_code == MPI_SUCCESS) {
    MPIO_Completed_request_create(&fd, bytes, error_code, request);
  } else {
    *request = MPI_REQUEST_NULL;
  }
}

/* ROMIO calls no error handler for independent nonblocking operations; a fatal one must be. */
static void finish_independent_request(ADIO_File fd, MPI_Offset bytes, ADIO_Request* request,
                                       int* error_code) {
  finish_request(fd, bytes, request, error_code);
  if (*error_code != MPI_SUCCESS) *error_code = MPIO_Err_return_file(fd, *error_code);
}

/* What a collective function of ROMIO asks for: a split one must not synchronise when it begins. */
static enum dedup_how collective(ADIO_File fd) {
  return fd->split_coll_count > 0 ? DEDUP_INDEPENDENT : DEDUP_COLLECTIVE;
}

/* ---- Contiguous in memory and in the file -----------------------------------------------------
 */

void ADIOI_DEDUP_ReadContig(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                            int file_ptr_type, ADIO_Offset offset, ADIO_Status* status,
                            int* error_code) {
  struct transfer t;
  describe_memory(&t, buf, count, datatype);
  describe_bytes(&t, fd, file_ptr_type, offset);
  set_status(status, datatype, read_data(fd, &t, DEDUP_INDEPENDENT, error_code));
}

void ADIOI_DEDUP_WriteContig(ADIO_File fd, const void* buf, ad_dedup_count count,
                             MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                             ADIO_Status* status, int* error_code) {
  struct transfer t;
  describe_memory(&t, (void*)buf, count, datatype);
  describe_bytes(&t, fd, file_ptr_type, offset);
  set_status(status, datatype, write_data(fd, &t, DEDUP_INDEPENDENT, error_code));
}

void ADIOI_DEDUP_IreadContig(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Request* request,
                             int* error_code) {
  struct transfer t;
  describe_memory(&t, buf, count, datatype);
  describe_bytes(&t, fd, file_ptr_type, offset);
  const MPI_Offset bytes = read_data(fd, &t, DEDUP_INDEPENDENT, error_code);
  finish_independent_request(fd, bytes, request, error_code);
}

void ADIOI_DEDUP_IwriteContig(ADIO_File fd, const void* buf, ad_dedup_count count,
                              MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                              ADIO_Request* request, int* error_code) {
  struct transfer t;
  describe_memory(&t, (void*)buf, count, datatype);
  describe_bytes(&t, fd, file_ptr_type, offset);
  const MPI_Offset bytes = write_data(fd, &t, DEDUP_INDEPENDENT, error_code);
  finish_independent_request(fd, bytes, request, error_code);
}

/* ---- Through a view, or from memory in pieces -------------------------------------------------
 */

static MPI_Offset read_view(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                            int file_ptr_type, ADIO_Offset offset, enum dedup_how how,
                            int* error_code) {
  struct transfer t;
  describe_memory(&t, buf, count, datatype);
  describe_view(&t, fd, file_ptr_type, offset);
  return read_data(fd, &t, how, error_code);
}

static MPI_Offset write_view(ADIO_File fd, const void* buf, ad_dedup_count count,
                             MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                             enum dedup_how how, int* error_code) {
  struct transfer t;
  describe_memory(&t, (void*)buf, count, datatype);
  describe_view(&t, fd, file_ptr_type, offset);
  return write_data(fd, &t, how, error_code);
}

void ADIOI_DEDUP_ReadStrided(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Status* status,
                             int* error_code) {
  set_status(
      status, datatype,
      read_view(fd, buf, count, datatype, file_ptr_type, offset, DEDUP_INDEPENDENT, error_code));
}

void ADIOI_DEDUP_WriteStrided(ADIO_File fd, const void* buf, ad_dedup_count count,
                              MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                              ADIO_Status* status, int* error_code) {
  set_status(
      status, datatype,
      write_view(fd, buf, count, datatype, file_ptr_type, offset, DEDUP_INDEPENDENT, error_code));
}

void ADIOI_DEDUP_ReadStridedColl(ADIO_File fd, void* buf, ad_dedup_count count,
                                 MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                 ADIO_Status* status, int* error_code) {
  set_status(
      status, datatype,
      read_view(fd, buf, count, datatype, file_ptr_type, offset, collective(fd), error_code));
}

void ADIOI_DEDUP_WriteStridedColl(ADIO_File fd, const void* buf, ad_dedup_count count,
                                  MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                  ADIO_Status* status, int* error_code) {
  set_status(
      status, datatype,
      write_view(fd, buf, count, datatype, file_ptr_type, offset, collective(fd), error_code));
}

void ADIOI_DEDUP_IreadStrided(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Request* request,
                              int* error_code) {
  const MPI_Offset bytes =
      read_view(fd, buf, count, datatype, file_ptr_type, offset, DEDUP_INDEPENDENT, error_code);
  finish_independent_request(fd, bytes, request, error_code);
}

void ADIOI_DEDUP_IwriteStrided(ADIO_File fd, const void* buf, ad_dedup_count count,
                               MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                               ADIO_Request* request, int* error_code) {
  const MPI_Offset bytes =
      write_view(fd, buf, count, datatype, file_ptr_type, offset, DEDUP_INDEPENDENT, error_code);
  finish_independent_request(fd, bytes, request, error_code);
}

void ADIOI_DEDUP_IreadStridedColl(ADIO_File fd, void* buf, ad_dedup_count count,
                                  MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                  ADIO_Request* request, int* error_code) {
  const MPI_Offset bytes =
      read_view(fd, buf, count, datatype, file_ptr_type, offset, DEDUP_INDEPENDENT, error_code);
  finish_request(fd, bytes, request, error_code);
}

void ADIOI_DEDUP_IwriteStridedColl(ADIO_File fd, const void* buf, ad_dedup_count count,
                                   MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                   ADIO_Request* request, int* error_code) {
  const MPI_Offset bytes =
      write_view(fd, buf, count, datatype, file_ptr_type, offset, DEDUP_INDEPENDENT, error_code);
  finish_request(fd, bytes, request, error_code);
}

/* ---- Seeking ----------------------------------------------------------------------------------
 */

/* ROMIO has turned every kind of seek into one from the view's start; `offset` counts etypes. */
ADIO_Offset ADIOI_DEDUP_SeekIndividual(ADIO_File fd, ADIO_Offset offset, int whence,
                                       int* error_code) {
  (void)whence;
  fd->fp_ind = ad_dedup_file_byte(fd, offset * (ADIO_Offset)fd->etype_size);
  *error_code = MPI_SUCCESS;
  return fd->fp_ind;
}
