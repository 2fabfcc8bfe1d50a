/* Writes a file collectively and prints the peak resident size of the ranks.
 *
 *   memory FILE MIB_PER_RANK CALLS PIECE_BYTES
 *
 * Each rank fills a buffer with bytes that no other rank has and writes it in CALLS collective
 * calls. PIECE_BYTES 0: each call writes one contiguous piece. Otherwise ranks take turns in the
 * file with pieces of that size. Prints, on rank 0, the largest peak over the ranks in KiB. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 5) {
    if (rank == 0) fprintf(stderr, "usage: memory FILE MIB_PER_RANK CALLS PIECE_BYTES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const size_t bytes = (size_t)atol(argv[2]) << 20;
  const int calls = atoi(argv[3]);
  const int piece = atoi(argv[4]);

  uint64_t* data = malloc(bytes);
  if (data == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  uint64_t state = 0x9e3779b97f4a7c15u * (uint64_t)(rank + 1);
  for (size_t i = 0; i < bytes / 8; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    data[i] = state;
  }

  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                      &file),
        "open");
  const size_t each = bytes / (size_t)calls;
  if (piece != 0) {
    MPI_Datatype contiguous;
    MPI_Datatype spread;
    MPI_Type_contiguous(piece, MPI_BYTE, &contiguous);
    MPI_Type_create_resized(contiguous, 0, (MPI_Aint)piece * ranks, &spread);
    MPI_Type_commit(&spread);
    check(MPI_File_set_view(file, (MPI_Offset)rank * piece, MPI_BYTE, spread, "native",
                            MPI_INFO_NULL),
          "set_view");
    MPI_Type_free(&spread);
    MPI_Type_free(&contiguous);
  }
  for (int call = 0; call < calls; ++call) {
    const MPI_Offset mine = piece != 0 ? 0 : (MPI_Offset)rank * (MPI_Offset)bytes;
    check(MPI_File_write_at_all(file, mine + (MPI_Offset)call * (MPI_Offset)each,
                                (char*)data + (size_t)call * each, (int)(each / 8), MPI_UINT64_T,
                                MPI_STATUS_IGNORE),
          "write");
  }
  check(MPI_File_close(&file), "close");

  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  long peak = usage.ru_maxrss;
  long largest = 0;
  MPI_Reduce(&peak, &largest, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%ld\n", largest);
  free(data);
  MPI_Finalize();
  return 0;
}
