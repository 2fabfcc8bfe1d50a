/* Nonblocking and split forms, and orders of starting and waiting that are legal and would deadlock
 * if anything collective happened when one is started or while a request is tested. */
#include "check.h"

enum { kBlock = 4111, kMany = 8 };

static MPI_Offset block(int index) {
  return (MPI_Offset)index * kBlock;
}

static unsigned char* filled(uint64_t seed, MPI_Offset at, MPI_Offset bytes) {
  unsigned char* data = allocate((size_t)bytes);
  fill(data, seed, at, bytes);
  return data;
}

static void check_blocks(const char* name, uint64_t seed, int blocks) {
  MPI_File file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(blocks));
  CHECK_WRITER(file, 0, seed, block(blocks));
  close_file(&file);
}

/* Completes one request, checks its count, and frees the data. */
static void finish(MPI_Request* request, unsigned char* data, int count) {
  MPI_Status status;
  MPI(MPI_Wait(request, &status));
  CHECK(*request == MPI_REQUEST_NULL);
  CHECK_INT(count_of(&status, MPI_BYTE), count);
  free(data);
}

static void explicit_offsets(const char* name) {
  unsigned char *data[kMany], expected[kBlock];
  MPI_Request requests[kMany];
  MPI_Status statuses[kMany];
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < kMany; ++i) {
    data[i] = filled(1, block(rank * kMany + i), kBlock);
    MPI(MPI_File_iwrite_at(file, block(rank * kMany + i), data[i], kBlock, MPI_BYTE, &requests[i]));
  }
  MPI(MPI_Waitall(kMany, requests, statuses));
  for (int i = 0; i < kMany; ++i) CHECK_INT(count_of(&statuses[i], MPI_BYTE), kBlock);
  barrier();
  for (int i = 0; i < kMany; ++i) {
    memset(data[i], 0, kBlock);
    MPI(MPI_File_iread_at(file, block(rank + ranks * i), data[i], kBlock, MPI_BYTE, &requests[i]));
  }
  MPI(MPI_Waitall(kMany, requests, statuses));
  for (int i = 0; i < kMany; ++i) {
    CHECK_INT(count_of(&statuses[i], MPI_BYTE), kBlock);
    fill(expected, 1, block(rank + ranks * i), kBlock);
    compare(data[i], expected, block(rank + ranks * i), kBlock, __LINE__);
    free(data[i]);
  }
  /* Beyond the end. */
  MPI_Request request;
  MPI_Status status;
  barrier();
  MPI(MPI_File_iread_at(file, block(ranks * kMany) - 7, expected, 100, MPI_BYTE, &request));
  MPI(MPI_Wait(&request, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), 7);
  close_file(&file);
  check_blocks(name, 1, ranks * kMany);
}

static void explicit_offsets_collective(const char* name) {
  unsigned char *data[kMany], expected[kBlock];
  MPI_Request requests[kMany];
  MPI_Status statuses[kMany];
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < kMany; ++i) {
    data[i] = filled(1, block(i * ranks + rank), kBlock);
    MPI(MPI_File_iwrite_at_all(file, block(i * ranks + rank), data[i], kBlock, MPI_BYTE,
                               &requests[i]));
  }
  MPI(MPI_Waitall(kMany, requests, statuses));
  for (int i = 0; i < kMany; ++i) CHECK_INT(count_of(&statuses[i], MPI_BYTE), kBlock);
  barrier();
  for (int i = 0; i < kMany; ++i) {
    memset(data[i], 0, kBlock);
    MPI(MPI_File_iread_at_all(file, block(rank * kMany + i), data[i], kBlock, MPI_BYTE,
                              &requests[i]));
  }
  MPI(MPI_Waitall(kMany, requests, statuses));
  for (int i = 0; i < kMany; ++i) {
    CHECK_INT(count_of(&statuses[i], MPI_BYTE), kBlock);
    fill(expected, 1, block(rank * kMany + i), kBlock);
    compare(data[i], expected, block(rank * kMany + i), kBlock, __LINE__);
    free(data[i]);
  }
  close_file(&file);
  check_blocks(name, 1, ranks * kMany);
}

static void individual_pointers(const char* name) {
  unsigned char expected[kBlock];
  MPI_Request request;
  MPI_Offset position;
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_seek(file, block(rank * 4), MPI_SEEK_SET));
  for (int i = 0; i < 4; ++i) {
    unsigned char* data = filled(1, block(rank * 4 + i), kBlock);
    if (i % 2 == 0) {
      MPI(MPI_File_iwrite(file, data, kBlock, MPI_BYTE, &request));
    } else {
      MPI(MPI_File_iwrite_all(file, data, kBlock, MPI_BYTE, &request));
    }
    MPI(MPI_File_get_position(file, &position));
    CHECK_INT(position, block(rank * 4 + i + 1));
    finish(&request, data, kBlock);
  }
  barrier();
  MPI(MPI_File_seek(file, block(rank * 4), MPI_SEEK_SET));
  for (int i = 0; i < 4; ++i) {
    unsigned char* data = allocate(kBlock);
    MPI_Status status;
    if (i % 2 == 0) {
      MPI(MPI_File_iread_all(file, data, kBlock, MPI_BYTE, &request));
    } else {
      MPI(MPI_File_iread(file, data, kBlock, MPI_BYTE, &request));
    }
    MPI(MPI_Wait(&request, &status));
    CHECK_INT(count_of(&status, MPI_BYTE), kBlock);
    fill(expected, 1, block(rank * 4 + i), kBlock);
    compare(data, expected, block(rank * 4 + i), kBlock, __LINE__);
    free(data);
  }
  close_file(&file);
  check_blocks(name, 1, ranks * 4);
}

static void shared_pointer(const char* name) {
  unsigned char data[kMany][100];
  int* seen = allocate(sizeof(int) * (size_t)(ranks * kMany));
  MPI_Request requests[kMany];
  MPI_Status statuses[kMany];
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < kMany; ++i) {
    memset(data[i], rank * kMany + i, 100);
    MPI(MPI_File_iwrite_shared(file, data[i], 100, MPI_BYTE, &requests[i]));
  }
  MPI(MPI_Waitall(kMany, requests, statuses));
  barrier();
  CHECK_INT(size_of(file), ranks * kMany * 100);
  MPI(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  for (int i = 0; i < kMany; ++i) {
    MPI(MPI_File_iread_shared(file, data[i], 100, MPI_BYTE, &requests[i]));
  }
  MPI(MPI_Waitall(kMany, requests, statuses));
  for (int i = 0; i < kMany; ++i) {
    for (int j = 1; j < 100; ++j) CHECK_INT(data[i][j], data[i][0]);
    CHECK(data[i][0] < ranks * kMany);
    ++seen[data[i][0]];
  }
  MPI(MPI_Allreduce(MPI_IN_PLACE, seen, ranks * kMany, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  for (int i = 0; i < ranks * kMany; ++i) CHECK_INT(seen[i], 1);
  free(seen);
  close_file(&file);
}

static void split_collectives(const char* name) {
  unsigned char found[kBlock], expected[kBlock];
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  unsigned char* data = filled(1, block(rank), kBlock);
  MPI(MPI_File_write_at_all_begin(file, block(rank), data, kBlock, MPI_BYTE));
  MPI(MPI_File_write_at_all_end(file, data, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), kBlock);
  free(data);
  data = filled(1, block(ranks + rank), kBlock);
  MPI(MPI_File_seek(file, block(ranks + rank), MPI_SEEK_SET));
  MPI(MPI_File_write_all_begin(file, data, kBlock, MPI_BYTE));
  MPI(MPI_File_write_all_end(file, data, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), kBlock);
  free(data);
  data = filled(1, block(2 * ranks + rank), kBlock);
  MPI(MPI_File_seek_shared(file, block(2 * ranks), MPI_SEEK_SET));
  MPI(MPI_File_write_ordered_begin(file, data, kBlock, MPI_BYTE));
  MPI(MPI_File_write_ordered_end(file, data, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), kBlock);
  free(data);
  barrier();
  CHECK_WRITER(file, 0, 1, block(3 * ranks));

  const int from = ranks - 1 - rank;
  MPI(MPI_File_read_at_all_begin(file, block(from), found, kBlock, MPI_BYTE));
  MPI(MPI_File_read_at_all_end(file, found, &status));
  fill(expected, 1, block(from), kBlock);
  compare(found, expected, block(from), kBlock, __LINE__);
  MPI(MPI_File_seek(file, block(from), MPI_SEEK_SET));
  MPI(MPI_File_read_all_begin(file, found, kBlock, MPI_BYTE));
  MPI(MPI_File_read_all_end(file, found, &status));
  compare(found, expected, block(from), kBlock, __LINE__);
  barrier();
  MPI(MPI_File_seek_shared(file, block(ranks), MPI_SEEK_SET));
  MPI(MPI_File_read_ordered_begin(file, found, kBlock, MPI_BYTE));
  MPI(MPI_File_read_ordered_end(file, found, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), kBlock);
  fill(expected, 1, block(ranks + rank), kBlock);
  compare(found, expected, block(ranks + rank), kBlock, __LINE__);
  close_file(&file);
  check_blocks(name, 1, 3 * ranks);
}

static void views(const char* name) {
  /* Interleaved ints, in all nonblocking and split forms that take a view. */
  enum { kInts = 500, kForms = 5 };
  MPI_Datatype type, interleaved;
  MPI_Status status;
  int data[kForms][kInts], found[kInts];
  MPI_Request requests[kForms];
  MPI(MPI_Type_vector(kInts, 1, ranks, MPI_INT, &type));
  MPI(MPI_Type_create_resized(type, 0, (MPI_Aint)kInts * ranks * 4, &interleaved));
  MPI(MPI_Type_commit(&interleaved));
  MPI_Type_free(&type);
  MPI_File file = open_all(name, kCreate);
  if (!is_dedup(name)) MPI(MPI_File_set_size(file, (MPI_Offset)kForms * kInts * ranks * 4));
  MPI(MPI_File_set_view(file, rank * 4, MPI_INT, interleaved, "native", MPI_INFO_NULL));
  for (int f = 0; f < kForms; ++f) {
    for (int i = 0; i < kInts; ++i) data[f][i] = (f * kInts + i) * ranks + rank + 1;
  }
  MPI(MPI_File_iwrite_at(file, 0 * kInts, data[0], kInts, MPI_INT, &requests[0]));
  MPI(MPI_Wait(&requests[0], &status));
  MPI(MPI_File_iwrite_at_all(file, 1 * kInts, data[1], kInts, MPI_INT, &requests[1]));
  MPI(MPI_Wait(&requests[1], &status));
  MPI(MPI_File_write_at_all_begin(file, 2 * kInts, data[2], kInts, MPI_INT));
  MPI(MPI_File_write_at_all_end(file, data[2], &status));
  MPI(MPI_File_seek(file, 3 * kInts, MPI_SEEK_SET));
  MPI(MPI_File_iwrite(file, data[3], kInts, MPI_INT, &requests[3]));
  MPI(MPI_Wait(&requests[3], &status));
  MPI(MPI_File_iwrite_all(file, data[4], kInts, MPI_INT, &requests[4]));
  MPI(MPI_Wait(&requests[4], &status));
  CHECK_INT(count_of(&status, MPI_INT), kInts);
  barrier();
  MPI(MPI_File_iread_at_all(file, 2 * kInts, found, kInts, MPI_INT, &requests[0]));
  MPI(MPI_Wait(&requests[0], &status));
  CHECK_INT(count_of(&status, MPI_INT), kInts);
  CHECK(memcmp(found, data[2], sizeof found) == 0);
  MPI(MPI_File_read_at_all_begin(file, 4 * kInts, found, kInts, MPI_INT));
  MPI(MPI_File_read_at_all_end(file, found, &status));
  CHECK(memcmp(found, data[4], sizeof found) == 0);
  MPI(MPI_File_iread_at(file, 1 * kInts, found, kInts, MPI_INT, &requests[0]));
  MPI(MPI_Wait(&requests[0], &status));
  CHECK(memcmp(found, data[1], sizeof found) == 0);
  MPI(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  int* all = allocate(sizeof(int) * kForms * kInts * (size_t)ranks);
  MPI(MPI_File_read_at(file, 0, all, kForms * kInts * ranks, MPI_INT, &status));
  CHECK_INT(count_of(&status, MPI_INT), kForms * kInts * ranks);
  for (int i = 0; i < kForms * kInts * ranks; ++i) CHECK_INT(all[i], i + 1);
  free(all);
  MPI_Type_free(&interleaved);
  close_file(&file);
}

static void start_then_send(const char* name) {
  /* Rank 0 starts and then sends; the others receive and then start. */
  unsigned char* data = filled(1, block(rank), kBlock);
  MPI_Request request;
  int token = 7;
  MPI_File file = open_all(name, kCreate);
  for (int round = 0; round < 3; ++round) {
    if (rank == 0) {
      MPI(MPI_File_iwrite_at_all(file, block(rank), data, kBlock, MPI_BYTE, &request));
      for (int r = 1; r < ranks; ++r) MPI(MPI_Ssend(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD));
    } else {
      MPI(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      MPI(MPI_File_iwrite_at_all(file, block(rank), data, kBlock, MPI_BYTE, &request));
    }
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* The same with a split collective, which MPI allows to synchronise when it begins. */
    if (!is_dedup(name)) continue;
    if (rank == 0) {
      MPI(MPI_File_write_at_all_begin(file, block(ranks + rank), data, kBlock, MPI_BYTE));
      for (int r = 1; r < ranks; ++r) MPI(MPI_Ssend(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD));
    } else {
      MPI(MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      MPI(MPI_File_write_at_all_begin(file, block(ranks + rank), data, kBlock, MPI_BYTE));
    }
    MPI(MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE));
  }
  free(data);
  barrier();
  CHECK_WRITER(file, 0, 1, block(ranks));
  close_file(&file);
}

static void opposite_order(const char* name) {
  /* Two requests, waited for in opposite orders on even and odd ranks. */
  MPI_Request requests[2];
  MPI_File file = open_all(name, kCreate);
  for (int round = 0; round < 3; ++round) {
    unsigned char* first = filled(1, block(2 * ranks * round + rank), kBlock);
    unsigned char* second = filled(1, block(2 * ranks * round + ranks + rank), kBlock);
    MPI(MPI_File_iwrite_at_all(file, block(2 * ranks * round + rank), first, kBlock, MPI_BYTE,
                               &requests[0]));
    MPI(MPI_File_iwrite_at_all(file, block(2 * ranks * round + ranks + rank), second, kBlock,
                               MPI_BYTE, &requests[1]));
    finish(&requests[rank % 2], rank % 2 ? second : first, kBlock);
    finish(&requests[1 - rank % 2], rank % 2 ? first : second, kBlock);
  }
  close_file(&file);
  check_blocks(name, 1, 6 * ranks);
}

static void two_files(const char* name) {
  /* Requests on two files, started in the same order and waited for in opposite ones. */
  char other[4200];
  snprintf(other, sizeof other, "%s.other", name);
  unsigned char* data = filled(1, block(rank), kBlock);
  MPI_Request requests[2];
  MPI_File files[2] = {open_all(name, kCreate), open_all(other, kCreate)};
  for (int f = 0; f < 2; ++f) {
    MPI(MPI_File_iwrite_at_all(files[f], block(rank), data, kBlock, MPI_BYTE, &requests[f]));
  }
  MPI(MPI_Wait(&requests[rank % 2], MPI_STATUS_IGNORE));
  MPI(MPI_Wait(&requests[1 - rank % 2], MPI_STATUS_IGNORE));
  free(data);
  close_file(&files[1]);
  close_file(&files[0]);
  check_blocks(name, 1, ranks);
  check_blocks(other, 1, ranks);
}

static void testing(const char* name) {
  /* MPI_Test, MPI_Testsome, MPI_Testall and MPI_Waitany until all is done. */
  unsigned char* data[kMany];
  MPI_Request requests[kMany];
  MPI_Status statuses[kMany];
  int indices[kMany], done = 0, finished, index;
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < kMany; ++i) {
    data[i] = filled(1, block(i * ranks + rank), kBlock);
    MPI(MPI_File_iwrite_at_all(file, block(i * ranks + rank), data[i], kBlock, MPI_BYTE,
                               &requests[i]));
  }
  while (done < kMany) {
    MPI(MPI_Testsome(kMany, requests, &finished, indices, statuses));
    CHECK(finished != MPI_UNDEFINED);
    for (int i = 0; i < finished; ++i) {
      CHECK_INT(count_of(&statuses[i], MPI_BYTE), kBlock);
      CHECK(requests[indices[i]] == MPI_REQUEST_NULL);
    }
    done += finished;
  }
  for (int i = 0; i < kMany; ++i) {
    MPI(MPI_File_iread_at_all(file, block(i * ranks + rank), data[i], kBlock, MPI_BYTE,
                              &requests[i]));
  }
  for (finished = 0; !finished;) MPI(MPI_Testall(kMany, requests, &finished, statuses));
  for (int i = 0; i < kMany; ++i) {
    MPI(MPI_File_iread_at(file, block(i * ranks + rank), data[i], kBlock, MPI_BYTE, &requests[i]));
  }
  for (int i = 0; i < kMany; ++i) MPI(MPI_Waitany(kMany, requests, &index, &statuses[0]));
  MPI(MPI_File_iread_at(file, block(rank), data[0], kBlock, MPI_BYTE, &requests[0]));
  for (finished = 0; !finished;) MPI(MPI_Test(&requests[0], &finished, &statuses[0]));
  for (int i = 0; i < kMany; ++i) free(data[i]);
  close_file(&file);
  check_blocks(name, 1, kMany * ranks);
}

static void only_one_waits_late(const char* name) {
  /* A rank may finish, sync included, only with the others; but it may wait long before them. */
  unsigned char* data = filled(1, block(rank), kBlock);
  MPI_Request request;
  int token = 0;
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_iwrite_at_all(file, block(rank), data, kBlock, MPI_BYTE, &request));
  /* A chain: each waits only after the rank before it told it so. A standard-conforming wait for a
   * collective may depend on the others' starts, which have all happened. */
  if (is_dedup(name)) {
    if (rank > 0) {
      MPI(MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank + 1 < ranks) MPI(MPI_Ssend(&token, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD));
  } else {
    MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  free(data);
  MPI(MPI_File_sync(file));
  barrier();
  CHECK_WRITER(file, 0, 1, block(ranks));
  close_file(&file);
}

static void empty_requests(const char* name) {
  unsigned char byte = 1;
  MPI_Request request;
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_iwrite_at_all(file, rank, &byte, rank % 2, MPI_BYTE, &request));
  MPI(MPI_Wait(&request, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), rank % 2);
  MPI(MPI_File_iread_at(file, 0, &byte, 0, MPI_BYTE, &request));
  MPI(MPI_Wait(&request, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), 0);
  barrier();
  CHECK_INT(size_of(file), ranks / 2 * 2); /* the last odd rank's byte */
  close_file(&file);
}

static const struct check_case kCases[] = {
    CASE(explicit_offsets),    CASE(explicit_offsets_collective),
    CASE(individual_pointers), CASE(shared_pointer),
    CASE(split_collectives),   CASE(views),
    CASE(start_then_send),     CASE(opposite_order),
    CASE(two_files),           CASE(testing),
    CASE(only_one_waits_late), CASE(empty_requests),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, kCases);
}
