/* Writes data of a certain redundancy, commits it, prints what the commit says of itself
 * ("KEY VALUE" for each dedup_last_ hint of rank 0), and reads it back:
 *
 *   redundancy FILE KIND BYTES [SHIFT]
 *
 *   same          every rank writes the same BYTES, at rank * (BYTES + SHIFT) + SHIFT
 *   same-alone    the same with independent writes
 *   same-pieces   the same through a view, in contiguous pieces of 64 KiB that ranks take in turn
 *   unique        every rank writes BYTES of its own
 *   zeros         every rank writes BYTES zeros
 *   interleaved   BYTES a rank, every rank each n-th double; the file's content is unique
 *   interleaved-repeated
 *                 the same, and the file's content is one stretch of 64 KiB again and again
 *   overwritten   unique data is overwritten by other unique data before it is committed
 */
#include "check.h"

enum { kStretch = 65536 };

static MPI_Offset bytes, shift;
static unsigned char *data, *expected;

/* `bytes` of the file, which the ranks write in pieces of `piece` bytes that they take in turn. */
static void write_in_turn(MPI_File file, int piece) {
  MPI_Datatype pieces, type;
  MPI(MPI_Type_contiguous(piece, MPI_BYTE, &pieces));
  MPI(MPI_Type_create_resized(pieces, 0, (MPI_Aint)piece * ranks, &type));
  MPI(MPI_Type_commit(&type));
  MPI(MPI_File_set_view(file, (MPI_Offset)rank * piece + shift, MPI_BYTE, type, "native",
                        MPI_INFO_NULL));
  MPI(MPI_File_write_all(file, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  MPI_Type_free(&type);
  MPI_Type_free(&pieces);
}

/* The ranks' data of a file of that content, in pieces that they take in turn. */
static void deal(int piece) {
  for (MPI_Offset i = 0; i < bytes; ++i) {
    data[i] = expected[i / piece * piece * ranks + rank * piece + i % piece];
  }
}

static void print_last_commit(MPI_File file) {
  MPI_Info info;
  int keys, found;
  MPI(MPI_File_get_info(file, &info));
  MPI(MPI_Info_get_nkeys(info, &keys));
  for (int i = 0; i < keys && rank == 0; ++i) {
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    MPI(MPI_Info_get_nthkey(info, i, key));
    if (strncmp(key, "dedup_last_", 11) != 0) continue;
    MPI(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found));
    printf("%s %s\n", key, value);
  }
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(argc == 4 || argc == 5);
  const char *name = argv[1], *kind = argv[2];
  running = kind;
  bytes = atoll(argv[3]);
  shift = argc == 5 ? atoll(argv[4]) : 0;
  const MPI_Offset stride = bytes + shift, size = ranks * bytes;
  data = allocate((size_t)bytes);
  expected = allocate((size_t)(ranks * stride + shift));

  MPI_File file = open_all(name, kCreate);
  MPI_Offset end = ranks * stride;
  if (strcmp(kind, "same") == 0 || strcmp(kind, "same-alone") == 0) {
    fill(data, 1, 0, bytes);
    for (int r = 0; r < ranks; ++r) {
      memcpy(expected + r * stride + shift, data, (size_t)bytes);
    }
    const MPI_Offset at = rank * stride + shift;
    if (strcmp(kind, "same") == 0) {
      MPI(MPI_File_write_at_all(file, at, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else {
      MPI(MPI_File_write_at(file, at, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    }
  } else if (strcmp(kind, "same-pieces") == 0) {
    fill(data, 1, 0, bytes);
    for (MPI_Offset i = 0; i < size; ++i) {
      expected[shift + i] = data[i / kStretch / ranks * kStretch + i % kStretch];
    }
    end = size + shift;
    write_in_turn(file, kStretch);
  } else if (strcmp(kind, "unique") == 0) {
    fill(expected, 1, 0, size);
    end = size;
    memcpy(data, expected + rank * bytes, (size_t)bytes);
    MPI(MPI_File_write_at_all(file, rank * bytes, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  } else if (strcmp(kind, "zeros") == 0) {
    end = size;
    MPI(MPI_File_write_at_all(file, rank * bytes, data, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
  } else if (strcmp(kind, "interleaved") == 0) {
    fill(expected + shift, 1, 0, size);
    end = size + shift;
    expected += shift;
    deal(8);
    expected -= shift;
    write_in_turn(file, 8);
  } else if (strcmp(kind, "interleaved-repeated") == 0) {
    fill(expected, 1, 0, kStretch);
    for (MPI_Offset i = kStretch; i < size; ++i) expected[i] = expected[i - kStretch];
    memmove(expected + shift, expected, (size_t)size);
    memset(expected, 0, (size_t)shift);
    end = size + shift;
    expected += shift;
    deal(8);
    expected -= shift;
    write_in_turn(file, 8);
  } else if (strcmp(kind, "overwritten") == 0) {
    end = size;
    for (uint64_t seed = 1; seed <= 3; ++seed) write_all_as(file, rank * bytes, seed, bytes);
    fill(expected, 3, 0, size);
  } else {
    FAIL("no such kind");
  }
  MPI(MPI_File_sync(file));
  print_last_commit(file);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), end);
  CHECK_BYTES(file, 0, expected, end);
  close_file(&file);
  free(data);
  free(expected);
  MPI_Finalize();
  return 0;
}
