/* More than 2^31 - 1 items or bytes in one call. Memory stays small: large buffers are untouched
 * zero pages, or one piece of memory that a datatype repeats.
 *
 * usage: large_count FILE-NAME [small]     exit: 0 if all is well
 *   small: without the calls that move more than 2 GiB
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int failures, rank;

static void expect(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "large_count: rank %d: %s\n", rank, what);
  failures++;
}

static void call(int result, const char* what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (result == MPI_SUCCESS) return;
  MPI_Error_string(result, text, &length);
  fprintf(stderr, "large_count: rank %d: %s: %s\n", rank, what, text);
  failures++;
}

static MPI_Count bytes_in(MPI_Status* status) {
  MPI_Count count = -1;
  MPI_Get_elements_x(status, MPI_BYTE, &count);
  return count;
}

static char* untouched(MPI_Count size) {
  char* p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    perror("large_count: mmap");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return p;
}

/* Every function once with a small count. */
static void small_counts(MPI_File fh) {
  char out[8] = "1234567", in[8];
  MPI_Status status;
  MPI_Request request;
  const MPI_Offset at = rank * 8;
  call(MPI_File_set_size(fh, 0), "set_size");
  call(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
  call(MPI_File_write_at_c(fh, at, out, 8, MPI_BYTE, &status), "write_at_c");
  expect(bytes_in(&status) == 8, "write_at_c's status");
  call(MPI_File_write_at_all_c(fh, at, out, 8, MPI_BYTE, &status), "write_at_all_c");
  call(MPI_File_write_at_all_begin_c(fh, at, out, 8, MPI_BYTE), "write_at_all_begin_c");
  call(MPI_File_write_at_all_end(fh, out, &status), "write_at_all_end");
  call(MPI_File_iwrite_at_c(fh, at, out, 8, MPI_BYTE, &request), "iwrite_at_c");
  call(MPI_Wait(&request, &status), "wait");
  call(MPI_File_iwrite_at_all_c(fh, at, out, 8, MPI_BYTE, &request), "iwrite_at_all_c");
  call(MPI_Wait(&request, &status), "wait");
  call(MPI_File_seek(fh, at, MPI_SEEK_SET), "seek");
  call(MPI_File_write_c(fh, out, 8, MPI_BYTE, &status), "write_c");
  call(MPI_File_seek(fh, at, MPI_SEEK_SET), "seek");
  call(MPI_File_write_all_c(fh, out, 8, MPI_BYTE, &status), "write_all_c");
  call(MPI_File_seek(fh, at, MPI_SEEK_SET), "seek");
  call(MPI_File_iwrite_c(fh, out, 8, MPI_BYTE, &request), "iwrite_c");
  call(MPI_Wait(&request, &status), "wait");
  call(MPI_File_write_ordered_c(fh, out, 8, MPI_BYTE, &status), "write_ordered_c");
  call(MPI_File_sync(fh), "sync");
  MPI_Barrier(MPI_COMM_WORLD);
  call(MPI_File_read_at_c(fh, at, in, 8, MPI_BYTE, &status), "read_at_c");
  expect(bytes_in(&status) == 8 && memcmp(in, out, 8) == 0, "read_at_c's data");
  memset(in, 0, 8);
  call(MPI_File_read_at_all_c(fh, at, in, 8, MPI_BYTE, &status), "read_at_all_c");
  expect(memcmp(in, out, 8) == 0, "read_at_all_c's data");
  call(MPI_File_iread_at_c(fh, at, in, 8, MPI_BYTE, &request), "iread_at_c");
  call(MPI_Wait(&request, &status), "wait");
  expect(bytes_in(&status) == 8, "iread_at_c's status");
  call(MPI_File_seek(fh, at, MPI_SEEK_SET), "seek");
  call(MPI_File_read_all_c(fh, in, 8, MPI_BYTE, &status), "read_all_c");
  expect(memcmp(in, out, 8) == 0, "read_all_c's data");
  call(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET), "seek_shared");
  call(MPI_File_read_ordered_c(fh, in, 8, MPI_BYTE, &status), "read_ordered_c");
  expect(memcmp(in, out, 8) == 0, "read_ordered_c's data");
}

static const MPI_Count large = ((MPI_Count)1 << 31) + 5;

/* A large count of data with gaps, with a file of 10 bytes, the last of them a 1. */
static void large_count_with_gaps(MPI_File fh) {
  MPI_Datatype gaps;
  MPI_Status status;
  char* spread = untouched(3 * large);
  MPI_Type_vector(2, 1, 2, MPI_BYTE, &gaps);
  MPI_Type_commit(&gaps);
#if MPICH_NUMVERSION < 40100000
  int error_class;
  MPI_Error_class(MPI_File_write_at_c(fh, 0, spread, large, gaps, &status), &error_class);
  expect(error_class == MPI_ERR_COUNT, "a large count of data with gaps is not MPI_ERR_COUNT");
#else /* takes any; to write so many pieces would be too slow for a test */
  call(MPI_File_read_at_c(fh, 0, spread, large, gaps, &status), "read_at_c of data with gaps");
  expect(bytes_in(&status) == 10 && spread[14] == 1 && spread[13] == 0,
         "a short read of much data with gaps");
#endif
  MPI_Type_free(&gaps);
  munmap(spread, (size_t)(3 * large));
}

/* Counts that do not fit an int. */
static void large_counts(MPI_File fh, int small) {
  char* zeros = untouched(large);
  char byte = 1;
  MPI_Status status;
  MPI_Offset size;

  /* A short read into a large buffer. */
  MPI_Barrier(MPI_COMM_WORLD);
  call(MPI_File_set_size(fh, 0), "set_size");
  MPI_Barrier(MPI_COMM_WORLD);
  call(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
  if (rank == 0) call(MPI_File_write_at(fh, 9, &byte, 1, MPI_BYTE, &status), "write_at");
  MPI_Barrier(MPI_COMM_WORLD);
  call(MPI_File_read_at_c(fh, 0, zeros, large, MPI_BYTE, &status), "read_at_c, large count");
  expect(bytes_in(&status) == 10 && zeros[9] == 1 && zeros[8] == 0, "a short read of much");

  large_count_with_gaps(fh);

  if (!small) {
    MPI_Barrier(MPI_COMM_WORLD);
    zeros[9] = 0;
    zeros[large - 1] = 7;
    call(MPI_File_write_at_all_c(fh, 100, zeros, rank == 0 ? large : 0, MPI_BYTE, &status),
         "write_at_all_c, large count");
    expect(bytes_in(&status) == (rank == 0 ? large : 0), "write_at_all_c's status");
    MPI_Barrier(MPI_COMM_WORLD);
    call(MPI_File_get_size(fh, &size), "get_size");
    expect(size == 100 + large, "the size after a large write");
    byte = 0;
    call(MPI_File_read_at(fh, 99 + large, &byte, 1, MPI_BYTE, &status), "read_at");
    expect(byte == 7, "the last byte of a large write");
  }
  munmap(zeros, (size_t)large);
}

/* An int count of a larger type, more than 2^31 bytes in all, from 1 MiB of memory. */
static void large_type(MPI_File fh) {
  enum { kPiece = 1 << 20, kPieces = 2049 };
  char *piece = malloc(kPiece), *back = malloc(kPiece);
  MPI_Datatype whole, again;
  MPI_Status status;
  for (int i = 0; i < kPiece; ++i) piece[i] = (char)(i * 2654435761u >> 24);
  MPI_Type_contiguous(kPiece, MPI_BYTE, &whole);
  MPI_Type_create_resized(whole, 0, 0, &again);
  MPI_Type_commit(&again);
  MPI_Barrier(MPI_COMM_WORLD);
  call(MPI_File_set_size(fh, 0), "set_size");
  MPI_Barrier(MPI_COMM_WORLD);
  call(MPI_File_write_at_all(fh, 3, piece, rank == 0 ? kPieces : 0, again, &status),
       "write_at_all of a larger type");
  expect(bytes_in(&status) == (rank == 0 ? (MPI_Count)kPiece * kPieces : 0),
         "write_at_all's status");
  MPI_Barrier(MPI_COMM_WORLD);
  call(
      MPI_File_read_at(fh, 3 + (MPI_Offset)kPiece * (kPieces - 1), back, kPiece, MPI_BYTE, &status),
      "read_at");
  expect(bytes_in(&status) == kPiece && memcmp(piece, back, kPiece) == 0,
         "the end of a write of a larger type");
  MPI_Type_free(&again);
  MPI_Type_free(&whole);
  free(piece);
  free(back);
}

int main(int argc, char** argv) {
  MPI_File fh;
  int all_failures;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 2) {
    fprintf(stderr, "usage: large_count FILE-NAME [small]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int small = argc > 2 && strcmp(argv[2], "small") == 0;
  call(
      MPI_File_open(MPI_COMM_WORLD, argv[1],
                    MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &fh),
      "open");
  if (failures == 0) {
    small_counts(fh);
    large_counts(fh, small);
    if (!small) large_type(fh);
    call(MPI_File_close(&fh), "close");
  }
  MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf(all_failures ? "large_count: %d failures\n" : "large_count: ok\n", all_failures);
  }
  MPI_Finalize();
  return all_failures != 0;
}
