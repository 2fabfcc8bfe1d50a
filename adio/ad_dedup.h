/* The dedup: driver of ROMIO: a table of operations that translates ADIO's calls into those of the
 * engine's C interface. All of ROMIO that this project knows is in this folder.
 *
 * Thread-safety: ROMIO calls with its critical section entered; it is given up around every call of
 * the engine (romio_threads.h).
 */
#ifndef DEDUP_ADIO_AD_DEDUP_H
#define DEDUP_ADIO_AD_DEDUP_H

#include "adio.h"
#include "engine/dedup.h"

/* The item counts in ADIO's table of operations. */
#if MPICH_NUMVERSION >= 40100000
typedef MPI_Aint ad_dedup_count;
#else
typedef int ad_dedup_count;
#endif

#define AD_DEDUP_PREFIX "dedup:"
#ifndef ADIO_DEDUP
#define ADIO_DEDUP 199 /* a number that ROMIO's own drivers do not use */
#endif

extern struct ADIOI_Fns_struct ADIO_DEDUP_operations;

/* The file's view, as data bytes: what the filetype's pieces let through, counted without the
 * holes. Built from fd->filetype at the first access after the view was set. */
struct ad_dedup_view {
  int built;
  dedup_flat
      filetype; /* its arrays may be ROMIO's flattened type, which lives as long as the view */
  MPI_Offset* before; /* for each piece: data bytes of a repetition before it; NULL: contiguous */
};

/* What fd->fs_ptr points to, from the first SetInfo to Close. */
struct ad_dedup_file {
  dedup_file* engine; /* NULL until opened */
  MPI_Info info;      /* the program's hints, from SetInfo to OpenColl; MPI_INFO_NULL otherwise */
  int shared_used;    /* this rank used the shared file pointer in this view */
  int hints_taken; /* a view is being set: what hints come with it are taken or refused already */
  struct ad_dedup_view view;
};

static inline struct ad_dedup_file* ad_dedup(ADIO_File fd) {
  return fd->fs_ptr;
}

/* Makes an MPI error code from an engine's error; also prints a text that MPI cuts off. */
int ad_dedup_error_code(const char* where, int line, const dedup_error* error);

/* Collective: takes the hints of MPI_File_set_info or MPI_File_set_view. Returns an MPI error code.
 */
int ad_dedup_take_hints(ADIO_File fd, MPI_Info info);

/* ---- View (ad_dedup_view.c) -------------------------------------------------------------------
 */

void ad_dedup_forget_view(struct ad_dedup_view* view);
const struct ad_dedup_view* ad_dedup_view(ADIO_File fd);
/* The file byte that data byte number `data` of the view is at. */
MPI_Offset ad_dedup_file_byte(ADIO_File fd, MPI_Offset data);
/* The reverse. A position in a hole counts as the start of the piece that follows. */
MPI_Offset ad_dedup_data_byte(ADIO_File fd, MPI_Offset file_byte);
/* A type that is `bytes` bytes long and has no holes; `store` keeps its one piece. */
dedup_flat ad_dedup_contiguous(MPI_Offset bytes, MPI_Offset store[2]);

/* ---- Names ------------------------------------------------------------------------------------
 */

/* Whether the driver is meant by this name, which may be NULL: by its prefix, or by the
 * environment. In romio_wrap.c. */
int ad_dedup_is_name(const char* name);

/* ---- Operations (ad_dedup_io.c) ---------------------------------------------------------------
 */

void ADIOI_DEDUP_ReadContig(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                            int file_ptr_type, ADIO_Offset offset, ADIO_Status* status,
                            int* error_code);
void ADIOI_DEDUP_WriteContig(ADIO_File fd, const void* buf, ad_dedup_count count,
                             MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                             ADIO_Status* status, int* error_code);
void ADIOI_DEDUP_ReadStrided(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Status* status,
                             int* error_code);
void ADIOI_DEDUP_WriteStrided(ADIO_File fd, const void* buf, ad_dedup_count count,
                              MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                              ADIO_Status* status, int* error_code);
void ADIOI_DEDUP_ReadStridedColl(ADIO_File fd, void* buf, ad_dedup_count count,
                                 MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                 ADIO_Status* status, int* error_code);
void ADIOI_DEDUP_WriteStridedColl(ADIO_File fd, const void* buf, ad_dedup_count count,
                                  MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                  ADIO_Status* status, int* error_code);
void ADIOI_DEDUP_IreadContig(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Request* request,
                             int* error_code);
void ADIOI_DEDUP_IwriteContig(ADIO_File fd, const void* buf, ad_dedup_count count,
                              MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                              ADIO_Request* request, int* error_code);
void ADIOI_DEDUP_IreadStrided(ADIO_File fd, void* buf, ad_dedup_count count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Request* request,
                              int* error_code);
void ADIOI_DEDUP_IwriteStrided(ADIO_File fd, const void* buf, ad_dedup_count count,
                               MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                               ADIO_Request* request, int* error_code);
void ADIOI_DEDUP_IreadStridedColl(ADIO_File fd, void* buf, ad_dedup_count count,
                                  MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                  ADIO_Request* request, int* error_code);
void ADIOI_DEDUP_IwriteStridedColl(ADIO_File fd, const void* buf, ad_dedup_count count,
                                   MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset,
                                   ADIO_Request* request, int* error_code);
ADIO_Offset ADIOI_DEDUP_SeekIndividual(ADIO_File fd, ADIO_Offset offset, int whence,
                                       int* error_code);

#endif
