/* The engine's C interface: all that the drivers, adio/ and hdf5/, know of the engine, and all the
 * engine gives to them.
 *
 * Plain C, because mpl's headers, which come with ROMIO's, do not compile as C++. No type of ROMIO
 * or HDF5 appears here. No function throws; each that can fail returns an MPI error class
 * (MPI_SUCCESS if all is well) and fills in *error.
 *
 * Thread-safety: calls on different files may run in different threads at once. Two calls on one
 * dedup_file at once must both be ones that MPI allows at once on one handle (independent reads and
 * writes). "Collective" means: called by all ranks of the communicator the file was opened on, in
 * the same order; these and only these communicate over that communicator.
 */
#ifndef DEDUP_ENGINE_DEDUP_H
#define DEDUP_ENGINE_DEDUP_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dedup_file dedup_file; /* an open file on one rank: one per MPI_File, or H5FD_t */

/* What went wrong: text in UTF-8, cut at the end if it is longer than the array. */
typedef struct {
  int error_class; /* MPI_ERR_… class, MPI_SUCCESS if none */
  char text[1024];
} dedup_error;

/* Puts `text` into `out`, which has room for `size` bytes with the zero at its end; if it does not
 * fit, long paths in it are shortened first. */
void dedup_abbreviate(const char* text, char* out, size_t size);

/* ---- The job -------------------------------------------------------------------------------- */

/* Right after MPI_Init or MPI_Init_thread succeeded, on every rank of MPI_COMM_WORLD: finds out
 * which ranks share a node, starts one service thread a node, and exchanges addresses and a secret.
 * Collective over MPI_COMM_WORLD. Costs one small allgather over nodes. A failure is kept and
 * reported by dedup_open: a program that opens no dedup: file must not notice. */
void dedup_job_begin(void);

/* For who comes in later than MPI_Init, before dedup_open, dedup_delete and the like: the files of
 * comm's ranks are opened in one job, the largest that all of them are in already or else a new one
 * of theirs. Collective over comm. */
int dedup_job_of(MPI_Comm comm, dedup_error* error);

/* Right before MPI_Finalize: a barrier over the ranks of each job that this one is in, then their
 * services end. */
void dedup_job_end(void);

/* ---- Opening and closing -------------------------------------------------------------------- */

/* The absolute path of a file name without prefix: links in the directory part resolved where it
 * exists, without . and .. and double slashes. Empty if the name is. From malloc; NULL if memory is
 * short or the working directory is gone. */
char* dedup_absolute_path(const char* name);

/* Collective over comm, which stays the caller's and must live until dedup_close returns. `path`:
 * the file's name without its prefix. `amode`: MPI_MODE_… flags as the program gave them. `info`:
 * the program's hints (MPI_INFO_NULL if none). `hints_file`: the system's hints (from ROMIO_HINTS,
 * or HDF5_DRIVER_CONFIG), as an info (MPI_INFO_NULL if none). On failure *file is NULL, and all
 * ranks return the same error class. If a node of the job is lost, the ranks of comm begin a job of
 * their nodes: files that are open in the job before are errors from then on. */
int dedup_open(MPI_Comm comm, const char* path, int amode, MPI_Info info, MPI_Info hints_file,
               dedup_file** file, dedup_error* error);

/* Collective. Commits what was written (unless opened read-only), frees *file always. If the file
 * was opened with MPI_MODE_DELETE_ON_CLOSE, removes it in place of committing. */
int dedup_close(dedup_file* file, dedup_error* error);

/* Not collective; any rank, whether or not it has files open. MPI_ERR_NO_SUCH_FILE if there is no
 * such file. `hints_file` as above: says where the store is, together with the environment. */
int dedup_delete(const char* path, MPI_Info hints_file, dedup_error* error);

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Collective over comm. MPI_ERR_NOT_SAME on all ranks unless the ranks' arguments are equal: lines
 * of the form name=value. `file` and `call` are for the error's text. *any becomes nonzero if it is
 * on some rank. */
int dedup_same_arguments(MPI_Comm comm, const char* file, const char* call, const char* arguments,
                         int* any, dedup_error* error);

/* Whether a placeholder, sound or not, stands at `path`, a name as the system takes it, without a
 * prefix. Local; for files of another size a single look. */
int dedup_is_placeholder(const char* path);

/* ---- Hints ---------------------------------------------------------------------------------- */

/* Sets every dedup_ hint in force, and after a commit dedup_last_…, in `info`. Local. */
void dedup_get_info(dedup_file* file, MPI_Info info);

/* MPI_File_set_info / set_view's info: takes hints that may change while a file is open; a bad
 * value is an error, and so is one that is not the same on all ranks but must be
 * (MPI_ERR_NOT_SAME); then, and where a hint cannot change, all is kept as it was. Collective. */
int dedup_set_info(dedup_file* file, MPI_Info info, dedup_error* error);

/* ---- Reading and writing -------------------------------------------------------------------- */

/* A flattened datatype: one repetition's pieces, in the order in which data fills them. Piece i
 * covers `lengths[i]` bytes at `offsets[i]` from the start of the repetition; the next repetition
 * starts `extent` bytes further on. Pieces of length 0 are allowed. */
typedef struct {
  MPI_Count count;
  const MPI_Offset* offsets;
  const MPI_Offset* lengths;
  MPI_Offset extent;
  MPI_Offset size; /* sum of the lengths */
} dedup_flat;

/* One access of one rank. File side: data byte number `start` of the view (not counting the
 * filetype's holes), the view beginning at file byte `disp` and repeating `filetype`. Memory side:
 * `memtype` repeated from `buf` until `bytes` bytes are transferred. Offsets in a filetype never
 * decrease (MPI demands it); those in a memtype may. */
typedef struct {
  MPI_Offset disp;
  dedup_flat filetype;
  MPI_Offset start;
  void* buf;
  dedup_flat memtype;
  MPI_Offset bytes;
} dedup_access;

/* A datatype's pieces, of one repetition, in the order of the data, none of them empty, neighbours
 * joined: for a dedup_flat. Both arrays are from malloc. Zero, and an empty list, if memory is
 * short. Any thread. */
typedef struct {
  MPI_Count count;
  MPI_Offset* offsets;
  MPI_Offset* lengths;
} dedup_pieces;
int dedup_get_pieces(MPI_Datatype datatype, dedup_pieces* pieces);

enum dedup_how {
  DEDUP_INDEPENDENT = 0, /* communicates with services only: also right for nonblocking and split
                            collectives, which must not synchronise when they are started */
  DEDUP_COLLECTIVE = 1   /* all ranks call; each may have 0 bytes */
};

/* Writes all of access->bytes or fails. */
int dedup_write(dedup_file* file, const dedup_access* access, enum dedup_how how,
                dedup_error* error);

/* Reads up to access->bytes; *bytes_read counts data bytes up to the file's end (a short read is no
 * error). On an error no byte of the buffer can be relied on. */
int dedup_read(dedup_file* file, const dedup_access* access, enum dedup_how how,
               MPI_Offset* bytes_read, dedup_error* error);

/* Collective: commits a generation if anything changed. */
int dedup_sync(dedup_file* file, dedup_error* error);

/* ---- Size, shared file pointer, atomic mode -------------------------------------------------- */

int dedup_get_size(dedup_file* file, MPI_Offset* size, dedup_error* error); /* local */
int dedup_set_size(dedup_file* file, MPI_Offset size, dedup_error* error);  /* collective */
/* Not collective: called by one rank. The file becomes at least `size` bytes long. */
int dedup_preallocate(dedup_file* file, MPI_Offset size, dedup_error* error);

/* The shared file pointer of this handle (one for all its ranks), in the unit the caller chooses.
 * Not collective. fetch_add returns the value before the addition. */
int dedup_shared_fetch_add(dedup_file* file, MPI_Offset increment, MPI_Offset* before,
                           dedup_error* error);
int dedup_shared_set(dedup_file* file, MPI_Offset value, dedup_error* error);

/* Local; the caller sees to it that all ranks agree. */
void dedup_set_atomicity(dedup_file* file, int atomic);

#ifdef __cplusplus
}
#endif

#endif
