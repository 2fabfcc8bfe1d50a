/* Bytes in and out with explicit offsets, individual, shared and ordered pointers; sizes, seeking,
 * short reads, sync, atomic mode; accesses that are empty, odd, uneven, or far into the file. */
#include "check.h"

enum { kBlock = 4099 }; /* not a multiple of anything */

static MPI_Offset block(int index) {
  return (MPI_Offset)index * kBlock;
}

static void check_blocks(const char* name, uint64_t seed, int blocks) {
  MPI_File file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(blocks));
  CHECK_WRITER(file, 0, seed, block(blocks));
  close_file(&file);
}

static void explicit_offsets(const char* name) {
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < 5; ++i) write_as(file, block(rank * 5 + i), 1, kBlock);
  barrier();
  CHECK_WRITER(file, 0, 1, block(5 * ranks));
  close_file(&file);
  check_blocks(name, 1, 5 * ranks);
}

static void explicit_offsets_collective(const char* name) {
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < 5; ++i) write_all_as(file, block(i * ranks + rank), 1, kBlock);
  barrier();
  unsigned char* found = allocate((size_t)block(5));
  unsigned char* expected = allocate((size_t)block(5));
  MPI_Status status;
  const MPI_Offset mine = block(5 * (ranks - 1 - rank));
  MPI(MPI_File_read_at_all(file, mine, found, 5 * kBlock, MPI_BYTE, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), 5 * kBlock);
  fill(expected, 1, mine, block(5));
  compare(found, expected, mine, block(5), __LINE__);
  free(found);
  free(expected);
  close_file(&file);
  check_blocks(name, 1, 5 * ranks);
}

static void individual_pointers(const char* name) {
  unsigned char data[kBlock], expected[kBlock];
  MPI_Offset position;
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, 0);
  MPI(MPI_File_seek(file, block(rank * 4), MPI_SEEK_SET));
  for (int i = 0; i < 4; ++i) {
    fill(data, 2, block(rank * 4 + i), kBlock);
    if (i % 2 == 0) {
      MPI(MPI_File_write(file, data, kBlock, MPI_BYTE, &status));
    } else {
      MPI(MPI_File_write_all(file, data, kBlock, MPI_BYTE, &status));
    }
    CHECK_INT(count_of(&status, MPI_BYTE), kBlock);
    MPI(MPI_File_get_position(file, &position));
    CHECK_INT(position, block(rank * 4 + i + 1));
  }
  barrier();
  MPI(MPI_File_seek(file, -block(4), MPI_SEEK_CUR));
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 0) {
      MPI(MPI_File_read_all(file, data, kBlock, MPI_BYTE, &status));
    } else {
      MPI(MPI_File_read(file, data, kBlock, MPI_BYTE, &status));
    }
    CHECK_INT(count_of(&status, MPI_BYTE), kBlock);
    fill(expected, 2, block(rank * 4 + i), kBlock);
    compare(data, expected, block(rank * 4 + i), kBlock, __LINE__);
  }
  close_file(&file);
  check_blocks(name, 2, 4 * ranks);
}

static void seeking(const char* name) {
  unsigned char byte, expected;
  MPI_Offset position, offset;
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(rank), 1, kBlock);
  barrier();
  const MPI_Offset end = block(ranks);
  MPI(MPI_File_seek(file, -10, MPI_SEEK_END));
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, end - 10);
  MPI(MPI_File_read(file, &byte, 1, MPI_BYTE, &status));
  expected = byte_at(1, end - 10);
  compare(&byte, &expected, end - 10, 1, __LINE__);
  MPI(MPI_File_seek(file, 3, MPI_SEEK_CUR));
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, end - 6);
  MPI(MPI_File_seek(file, 1000000, MPI_SEEK_END));
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, end + 1000000);
  CHECK_INT(size_of(file), end);
  MPI_FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);

  /* With a view positions count etypes, and the file's holes are not counted. */
  MPI_Datatype filetype;
  MPI(MPI_Type_vector(2, 3, 5, MPI_INT, &filetype));
  MPI(MPI_Type_commit(&filetype));
  MPI(MPI_File_set_view(file, 7, MPI_INT, filetype, "native", MPI_INFO_NULL));
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, 0);
  MPI(MPI_File_seek(file, 4, MPI_SEEK_SET));
  MPI(MPI_File_get_byte_offset(file, 4, &offset));
  CHECK_INT(offset, 7 + (5 + 1) * 4);
  MPI(MPI_File_get_byte_offset(file, 6, &offset));
  CHECK_INT(offset, 7 + 8 * 4);
  int number;
  MPI(MPI_File_read(file, &number, 1, MPI_INT, &status));
  unsigned char bytes[4];
  fill(bytes, 1, 7 + (5 + 1) * 4, 4);
  CHECK(memcmp(bytes, &number, 4) == 0);
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, 5);
  MPI(MPI_File_seek(file, 2, MPI_SEEK_CUR));
  MPI(MPI_File_get_position(file, &position));
  CHECK_INT(position, 7);
  MPI_Type_free(&filetype);
  close_file(&file);
}

static void shared_pointer(const char* name) {
  /* Who gets which place is open; that each place is taken once is not. */
  enum { kEach = 12, kRecord = 1000 };
  unsigned char data[kRecord];
  MPI_Status status;
  MPI_Offset position;
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < kEach; ++i) {
    fill(data, 5, (MPI_Offset)(rank * kEach + i) * kRecord, kRecord);
    data[0] = (unsigned char)rank;
    data[1] = (unsigned char)i;
    MPI(MPI_File_write_shared(file, data, kRecord, MPI_BYTE, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), kRecord);
  }
  barrier();
  MPI(MPI_File_get_position_shared(file, &position));
  CHECK_INT(position, (MPI_Offset)ranks * kEach * kRecord);
  CHECK_INT(size_of(file), position);
  barrier();
  MPI(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  int* seen = allocate(sizeof(int) * (size_t)(ranks * kEach));
  for (int i = 0; i < ranks * kEach; ++i) {
    unsigned char expected[kRecord];
    MPI(MPI_File_read_at(file, (MPI_Offset)i * kRecord, data, kRecord, MPI_BYTE, &status));
    CHECK(data[0] < ranks && data[1] < kEach);
    const int record = data[0] * kEach + data[1];
    CHECK_INT(seen[record], 0);
    seen[record] = 1;
    fill(expected, 5, (MPI_Offset)record * kRecord, kRecord);
    compare(data + 2, expected + 2, 2, kRecord - 2, __LINE__);
  }
  /* Each record is read once by somebody. */
  memset(seen, 0, sizeof(int) * (size_t)(ranks * kEach));
  for (int i = 0; i < kEach; ++i) {
    MPI(MPI_File_read_shared(file, data, kRecord, MPI_BYTE, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), kRecord);
    ++seen[data[0] * kEach + data[1]];
  }
  MPI(MPI_Allreduce(MPI_IN_PLACE, seen, ranks * kEach, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < ranks * kEach; ++i) CHECK_INT(seen[i], 1);
  free(seen);
  close_file(&file);
}

static void ordered(const char* name) {
  /* Amounts differ from rank to rank; one writes nothing. */
  unsigned char* data = allocate(kBlock * 7);
  unsigned char* expected = allocate(kBlock * 7);
  MPI_Status status;
  MPI_Offset at = 0, before = 0;
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < 4; ++i) {
    MPI_Offset mine = at;
    for (int r = 0; r < ranks; ++r) {
      const int bytes = (r + i) % 3 * 777;
      if (r < rank) mine += bytes;
      at += bytes;
    }
    const int bytes = (rank + i) % 3 * 777;
    fill(data, 6, mine, bytes);
    MPI(MPI_File_write_ordered(file, data, bytes, MPI_BYTE, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), bytes);
  }
  barrier();
  CHECK_WRITER(file, 0, 6, at);
  CHECK_INT(size_of(file), at);
  MPI(MPI_File_seek_shared(file, 5, MPI_SEEK_SET));
  MPI(MPI_File_get_position_shared(file, &before));
  CHECK_INT(before, 5);
  barrier();
  MPI_Offset mine = 5;
  for (int r = 0; r < rank; ++r) mine += r % 2 * 99;
  if (mine + 99 <= at) {
    const int bytes = rank % 2 * 99;
    MPI(MPI_File_read_ordered(file, data, bytes, MPI_BYTE, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), bytes);
    fill(expected, 6, mine, bytes);
    compare(data, expected, mine, bytes, __LINE__);
  } else {
    MPI(MPI_File_read_ordered(file, data, 0, MPI_BYTE, &status));
  }
  close_file(&file);
  free(data);
  free(expected);
}

static void empty_accesses(const char* name) {
  MPI_Status status;
  unsigned char byte = 1;
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_write_at_all(file, 0, &byte, 0, MPI_BYTE, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), 0);
  CHECK_INT(size_of(file), 0);
  barrier();
  /* Only odd ranks have data; then only the last one. */
  write_all_as(file, block(rank / 2), 1, rank % 2 * kBlock);
  write_all_as(file, block(ranks / 2), 1, rank == ranks - 1 ? kBlock : 0);
  MPI(MPI_File_write_at(file, 1 << 30, &byte, 0, MPI_BYTE, &status));
  barrier();
  CHECK_INT(size_of(file), block(ranks / 2 + 1));
  MPI(MPI_File_read_at_all(file, 3, &byte, rank % 2, MPI_BYTE, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), rank % 2);
  close_file(&file);
  check_blocks(name, 1, ranks / 2 + 1);
}

static void odd_sizes(const char* name) {
  static const int sizes[] = {1, 2, 3, 7, 511, 513, 4095, 4096, 4097, 65537, 0, 12289, 1, 100003};
  enum { kSizes = sizeof sizes / sizeof sizes[0] };
  MPI_File file = open_all(name, kCreate);
  MPI_Offset at = 13; /* a hole first */
  for (int i = 0; i < kSizes * ranks; ++i) {
    const int bytes = sizes[i % kSizes];
    if (i % ranks == rank) write_as(file, at, 1, bytes);
    at += bytes;
  }
  barrier();
  CHECK_ZEROS(file, 0, 13);
  CHECK_WRITER(file, 13, 1, at - 13);
  MPI(MPI_File_sync(file));
  barrier();
  CHECK_WRITER(file, 13, 1, at - 13);
  /* Single bytes across the chunks of what is committed now. */
  barrier();
  for (MPI_Offset i = 13 + rank; i < at; i += 5003 * ranks) write_as(file, i, 2, 1);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  unsigned char* expected = allocate((size_t)at);
  fill(expected + 13, 1, 13, at - 13);
  for (int r = 0; r < ranks; ++r) {
    for (MPI_Offset i = 13 + r; i < at; i += 5003 * ranks) expected[i] = byte_at(2, i);
  }
  CHECK_BYTES(file, 0, expected, at);
  CHECK_INT(size_of(file), at);
  free(expected);
  close_file(&file);
}

static void uneven_amounts(const char* name) {
  /* The last rank writes a thousand times what the first one does, and the middle ones nothing. */
  const MPI_Offset small = 1234, large = 1234567;
  MPI_File file = open_all(name, kCreate);
  const MPI_Offset mine = rank == ranks - 1 ? large : rank == 0 ? small : 0;
  const MPI_Offset at = rank == ranks - 1 && ranks > 1 ? small : 0;
  write_all_as(file, at, 1, mine);
  barrier();
  const MPI_Offset all = ranks > 1 ? small + large : large;
  CHECK_INT(size_of(file), all);
  CHECK_WRITER(file, 0, 1, all);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 1, all);
  close_file(&file);
}

static void short_reads(const char* name) {
  unsigned char data[3 * kBlock], expected[3 * kBlock];
  MPI_Status status;
  MPI_Offset position;
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(rank), 1, kBlock);
  for (int round = 0; round < 2; ++round) {
    barrier();
    const MPI_Offset end = block(ranks);
    MPI(MPI_File_read_at(file, end - 100, data, kBlock, MPI_BYTE, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), 100);
    fill(expected, 1, end - 100, 100);
    compare(data, expected, end - 100, 100, __LINE__);
    MPI(MPI_File_read_at_all(file, end - 100 * (rank + 1), data, kBlock, MPI_BYTE, &status));
    /* ROMIO's two-phase reads report what was asked for. */
    if (is_dedup(name)) CHECK_INT(count_of(&status, MPI_BYTE), 100 * (rank + 1));
    fill(expected, 1, end - 100 * (rank + 1), 100 * (rank + 1));
    compare(data, expected, end - 100 * (rank + 1), 100 * (rank + 1), __LINE__);
    MPI(MPI_File_read_at(file, end, data, kBlock, MPI_BYTE, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), 0);
    MPI(MPI_File_read_at(file, end + 100000, data, kBlock, MPI_BYTE, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), 0);
    MPI(MPI_File_read_at_all(file, end + 100000, data, kBlock, MPI_BYTE, &status));
    if (is_dedup(name)) CHECK_INT(count_of(&status, MPI_BYTE), 0);
    MPI(MPI_File_seek(file, end - 8, MPI_SEEK_SET));
    MPI(MPI_File_read(file, data, 5, MPI_INT, &status));
    CHECK_INT(count_of(&status, MPI_INT), 2);
    MPI(MPI_File_get_position(file, &position));
    CHECK_INT(position, end);
    if (round == 0) MPI(MPI_File_sync(file));
  }
  close_file(&file);
}

static void sizes(const char* name) {
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_set_size(file, 10000));
  CHECK_INT(size_of(file), 10000);
  CHECK_ZEROS(file, 0, 10000);
  MPI(MPI_File_preallocate(file, 5000));
  CHECK_INT(size_of(file), 10000);
  MPI(MPI_File_preallocate(file, 20000));
  CHECK_INT(size_of(file), 20000);
  barrier();
  write_all_as(file, block(rank), 1, kBlock);
  MPI(MPI_File_set_size(file, 777));
  CHECK_INT(size_of(file), 777);
  CHECK_WRITER(file, 0, 1, 777);
  MPI(MPI_File_set_size(file, 9000));
  CHECK_WRITER(file, 0, 1, 777);
  CHECK_ZEROS(file, 777, 9000 - 777);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  /* ROMIO asks on rank 0 alone. */
  CHECK((MPI_File_preallocate(file, 20000) != MPI_SUCCESS) == (rank == 0));
  CHECK_INT(size_of(file), 9000);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDWR);
  CHECK_INT(size_of(file), 9000);
  CHECK_WRITER(file, 0, 1, 777);
  CHECK_ZEROS(file, 777, 9000 - 777);
  MPI(MPI_File_set_size(file, 0));
  CHECK_INT(size_of(file), 0);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDWR);
  CHECK_INT(size_of(file), 0);
  MPI(MPI_File_set_size(file, 5000));
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), 5000);
  CHECK_ZEROS(file, 0, 5000);
  close_file(&file);
}

static void sync_many_times(const char* name) {
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < 5; ++i) {
    if (i % 2 == 0) {
      write_all_as(file, block(i * ranks + rank), 1, kBlock);
    } else {
      write_as(file, block(i * ranks + rank), 1, kBlock);
    }
    MPI(MPI_File_sync(file));
    barrier();
    CHECK_WRITER(file, 0, 1, block((i + 1) * ranks));
    MPI(MPI_File_sync(file)); /* nothing changed */
    barrier();
  }
  close_file(&file);
  check_blocks(name, 1, 5 * ranks);
}

static void overwriting(const char* name) {
  /* What is committed is overwritten in part, collectively and not, at other boundaries. */
  const MPI_Offset end = block(3 * ranks);
  unsigned char* expected = allocate((size_t)end);
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(3 * rank), 1, block(3));
  fill(expected, 1, 0, end);
  close_file(&file);
  for (int round = 2; round < 6; ++round) {
    file = open_all(name, MPI_MODE_RDWR);
    for (int r = 0; r < ranks; ++r) {
      const MPI_Offset at = block(3 * r) + 1000 * (round - 1), bytes = 500 + 3000 * (round % 2);
      if (r == rank && round < 4) write_as(file, at, (uint64_t)round, bytes);
      if (r == rank && round >= 4) write_all_as(file, at, (uint64_t)round, bytes);
      fill(expected + at, (uint64_t)round, at, bytes);
    }
    barrier();
    CHECK_BYTES(file, 0, expected, end);
    close_file(&file);
    file = open_all(name, MPI_MODE_RDONLY);
    CHECK_BYTES(file, 0, expected, end);
    CHECK_INT(size_of(file), end);
    close_file(&file);
  }
  free(expected);
}

static void same_data_everywhere(const char* name) {
  /* Equal chunks at different places, and all ranks writing the same bytes to the same place. */
  unsigned char* data = allocate(kBlock);
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  fill(data, 1, 0, kBlock);
  MPI(MPI_File_write_at_all(file, block(rank), data, kBlock, MPI_BYTE, &status));
  MPI(MPI_File_write_at_all(file, block(ranks), data, kBlock, MPI_BYTE, &status));
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  for (int i = 0; i <= ranks; ++i) CHECK_BYTES(file, block(i), data, kBlock);
  CHECK_INT(size_of(file), block(ranks + 1));
  free(data);
  close_file(&file);
}

static void zeros(const char* name) {
  /* Zeros that are written are data: they hide what was there before. */
  unsigned char* data = allocate(5 * kBlock);
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(5 * rank), 1, block(5));
  MPI(MPI_File_sync(file));
  MPI(MPI_File_write_at_all(file, block(5 * rank + 1), data, 3 * kBlock, MPI_BYTE, &status));
  close_file(&file);
  file = open_all(name, MPI_MODE_RDWR);
  for (int r = 0; r < ranks; ++r) {
    CHECK_WRITER(file, block(5 * r), 1, kBlock);
    CHECK_ZEROS(file, block(5 * r + 1), block(3));
    CHECK_WRITER(file, block(5 * r + 4), 1, kBlock);
  }
  barrier();
  MPI(MPI_File_write_at(file, block(5 * rank), data, kBlock, MPI_BYTE, &status));
  barrier();
  CHECK_ZEROS(file, block(5 * rank), block(4));
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  for (int r = 0; r < ranks; ++r) CHECK_ZEROS(file, block(5 * r), block(4));
  free(data);
  close_file(&file);
}

static void atomic_mode(const char* name) {
  /* Overlapping writes in atomic mode: each place has one rank's bytes, whole. */
  enum { kSize = 50000 };
  unsigned char* data = allocate(kSize);
  MPI_Status status;
  int atomic;
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_get_atomicity(file, &atomic));
  CHECK_INT(atomic, 0);
  MPI(MPI_File_set_atomicity(file, 1));
  MPI(MPI_File_get_atomicity(file, &atomic));
  CHECK_INT(atomic, 1);
  for (int i = 0; i < 5; ++i) {
    memset(data, rank + 1, kSize);
    MPI(MPI_File_write_at(file, 100, data, kSize, MPI_BYTE, &status));
    MPI(MPI_File_read_at(file, 100, data, kSize, MPI_BYTE, &status));
    CHECK(data[0] >= 1 && data[0] <= ranks);
    for (int j = 1; j < kSize; ++j) CHECK_INT(data[j], data[0]);
  }
  barrier();
  MPI(MPI_File_read_at_all(file, 100, data, kSize, MPI_BYTE, &status));
  int first = data[0], all;
  for (int j = 1; j < kSize; ++j) CHECK_INT(data[j], first);
  MPI(MPI_Allreduce(&first, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  CHECK_INT(all, first);
  MPI(MPI_File_set_atomicity(file, 0));
  free(data);
  close_file(&file);
}

static void far_offsets(const char* name) {
  /* Nothing in between is stored, or the test would not fit anywhere. */
  const MPI_Offset far = (MPI_Offset)5 << 30;
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, far + block(rank) + 3, 1, kBlock);
  if (rank == 0) write_as(file, 100, 2, 100);
  for (int round = 0; round < 2; ++round) {
    barrier();
    CHECK_INT(size_of(file), far + block(ranks) + 3);
    CHECK_WRITER(file, far + 3, 1, block(ranks));
    CHECK_WRITER(file, 100, 2, 100);
    CHECK_ZEROS(file, 200, 100000);
    CHECK_ZEROS(file, far / 5 + 11, 300000);
    CHECK_ZEROS(file, ((MPI_Offset)1 << 32) - 50000, 100000);
    CHECK_ZEROS(file, far - 100000, 100003);
    MPI_Offset position;
    MPI(MPI_File_seek(file, far + 3, MPI_SEEK_SET));
    MPI(MPI_File_get_position(file, &position));
    CHECK_INT(position, far + 3);
    unsigned char byte, expected = byte_at(1, far + 3);
    MPI(MPI_File_read(file, &byte, 1, MPI_BYTE, &status));
    compare(&byte, &expected, far + 3, 1, __LINE__);
    barrier();
    close_file(&file);
    file = open_all(name, MPI_MODE_RDONLY);
  }
  close_file(&file);
  if (rank == 0) MPI(MPI_File_delete(name, MPI_INFO_NULL));
}

static void large_blocks(const char* name) {
  /* More than a recipe's block and a dump's round. */
  const MPI_Offset bytes = 9 << 20, shift = 12345;
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, rank * bytes + shift, 1, bytes);
  barrier();
  CHECK_WRITER(file, (rank + 1) % ranks * bytes + shift, 1, bytes);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), ranks * bytes + shift);
  CHECK_WRITER(file, (rank + 1) % ranks * bytes + shift, 1, bytes);
  if (ranks > 1) {
    const MPI_Offset border = (rank + 1) % ranks * bytes + shift;
    if (border > shift) CHECK_WRITER(file, border - 5000, 1, 10000);
  }
  close_file(&file);
  if (rank == 0) MPI(MPI_File_delete(name, MPI_INFO_NULL));
}

static const struct check_case kCases[] = {
    CASE(explicit_offsets),
    CASE(explicit_offsets_collective),
    CASE(individual_pointers),
    CASE(seeking),
    CASE(shared_pointer),
    CASE(ordered),
    CASE(empty_accesses),
    CASE(odd_sizes),
    CASE(uneven_amounts),
    CASE(short_reads),
    CASE(sizes),
    CASE(sync_many_times),
    CASE(overwriting),
    CASE(same_data_everywhere),
    CASE(zeros),
    CASE(atomic_mode),
    CASE(far_offsets),
    CASE(large_blocks),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, kCases);
}
