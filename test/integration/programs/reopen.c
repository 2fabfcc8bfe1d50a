/* A file whose content does not depend on how many ranks write it:
 *
 *   reopen write|patch|check|check-patched FILE
 *
 * `patch` overwrites parts of what `write` wrote and makes the file longer.
 */
#include "check.h"

enum {
  kBlock = 10007,
  kBlocks = 211,
  kPatch = 1237, /* bytes from the middle of every seventh block */
  kPatchAt = 4001,
  kMore = 50001 /* bytes behind the end */
};

static MPI_Offset block(int index) {
  return (MPI_Offset)index * kBlock;
}

static void write_file(const char* name) {
  MPI_File file = open_all(name, kCreate);
  const int collective = (kBlocks + ranks - 1) / ranks;
  for (int i = 0; i < collective; ++i) {
    const int mine = i * ranks + rank;
    /* Every fourth round independently; in the others the last ranks may have nothing. */
    const MPI_Offset bytes = mine < kBlocks ? kBlock : 0;
    if (i % 4 == 3) {
      write_as(file, block(mine), 1, bytes);
    } else {
      write_all_as(file, block(mine), 1, bytes);
    }
  }
  close_file(&file);
}

static void patch(const char* name) {
  MPI_File file = open_all(name, MPI_MODE_RDWR);
  for (int i = rank * 7; i < kBlocks; i += ranks * 7) {
    write_as(file, block(i) + kPatchAt, 2, kPatch);
  }
  const int part = (kMore + ranks - 1) / ranks, from = rank * part;
  const int bytes = from >= kMore ? 0 : from + part > kMore ? kMore - from : part;
  write_all_as(file, block(kBlocks) + from, 3, bytes);
  close_file(&file);
}

static void check(const char* name, int patched) {
  const MPI_Offset size = block(kBlocks) + (patched ? kMore : 0);
  unsigned char* expected = allocate((size_t)size);
  fill(expected, 1, 0, block(kBlocks));
  if (patched) {
    for (int i = 0; i < kBlocks; i += 7) {
      fill(expected + block(i) + kPatchAt, 2, block(i) + kPatchAt, kPatch);
    }
    fill(expected + block(kBlocks), 3, block(kBlocks), kMore);
  }
  MPI_File file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), size);
  /* Each a part, then all everything. */
  const MPI_Offset from = size * rank / ranks, to = size * (rank + 1) / ranks;
  unsigned char* found = allocate((size_t)(to - from));
  MPI_Status status;
  MPI(MPI_File_read_at_all(file, from, found, (int)(to - from), MPI_BYTE, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), to - from);
  compare(found, expected + from, from, to - from, __LINE__);
  free(found);
  CHECK_BYTES(file, 0, expected, size);
  close_file(&file);
  free(expected);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(argc == 3);
  running = argv[1];
  if (strcmp(running, "write") == 0) {
    write_file(argv[2]);
  } else if (strcmp(running, "patch") == 0) {
    patch(argv[2]);
  } else if (strcmp(running, "check") == 0) {
    check(argv[2], 0);
  } else if (strcmp(running, "check-patched") == 0) {
    check(argv[2], 1);
  } else {
    FAIL("no such command");
  }
  MPI_Finalize();
  return 0;
}
