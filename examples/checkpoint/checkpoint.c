/* The smallest checkpoint: each rank's part of an array, written and read back collectively.
 *
 *   checkpoint write FILE      on any number of ranks
 *   checkpoint check FILE      on any other number of ranks
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCells = 1 << 20 };

/* Half the array is a table that repeats, as lookup tables and boundary values do; half is data. */
static double cell(long i) {
  return i % 2048 < 1024 ? (double)(i % 1024) : (double)i * 0.5;
}

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
  if (argc != 3 || (strcmp(argv[1], "write") != 0 && strcmp(argv[1], "check") != 0)) {
    if (rank == 0) fprintf(stderr, "usage: checkpoint write|check FILE\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int write = strcmp(argv[1], "write") == 0;
  const long begin = (long)kCells * rank / ranks;
  const long end = (long)kCells * (rank + 1) / ranks;
  double* cells = malloc((size_t)(end - begin) * sizeof *cells);

  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, argv[2],
                      write ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL,
                      &file),
        "open");
  const MPI_Offset offset = begin * (MPI_Offset)sizeof *cells;
  const int count = (int)(end - begin);
  long wrong = 0;
  if (write) {
    for (long i = begin; i < end; ++i) cells[i - begin] = cell(i);
    check(MPI_File_write_at_all(file, offset, cells, count, MPI_DOUBLE, MPI_STATUS_IGNORE),
          "write");
  } else {
    check(MPI_File_read_at_all(file, offset, cells, count, MPI_DOUBLE, MPI_STATUS_IGNORE), "read");
    for (long i = begin; i < end; ++i) wrong += cells[i - begin] != cell(i);
  }
  check(MPI_File_close(&file), "close");

  long all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && write) printf("wrote %d cells on %d ranks\n", kCells, ranks);
  if (rank == 0 && !write)
    printf("read %d cells on %d ranks, %ld wrong\n", kCells, ranks, all_wrong);
  free(cells);
  MPI_Finalize();
  return all_wrong != 0;
}
