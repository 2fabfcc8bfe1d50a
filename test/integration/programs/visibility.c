/* A write that has returned is seen by whoever hears of it, on every rank, as in a POSIX file. No
 * case but those about it calls MPI_File_sync.
 */
#include "check.h"

enum { kBlock = 3001 };

static MPI_Offset block(int index) {
  return (MPI_Offset)index * kBlock;
}

static void neighbouring_ranges(const char* name) {
  /* Ranks write next to each other; everybody reads across each boundary. */
  MPI_File file = open_all(name, kCreate);
  for (uint64_t round = 1; round < 5; ++round) {
    const MPI_Offset shift = (MPI_Offset)(round * 13);
    write_as(file, shift + block(rank), round, kBlock);
    barrier();
    for (int r = 1; r < ranks; ++r) CHECK_WRITER(file, shift + block(r) - 700, round, 1400);
    CHECK_WRITER(file, shift, round, block(ranks));
    barrier();
  }
  close_file(&file);
}

static void third_reads_across(const char* name) {
  /* Two write within one chunk, and a third reads both. */
  MPI_File file = open_all(name, kCreate);
  if (rank == 0) write_as(file, 0, 1, 1000);
  if (rank == 1 % ranks) write_as(file, 1000, 1, 1000);
  barrier();
  if (rank == 2 % ranks) CHECK_WRITER(file, 900, 1, 200);
  if (rank == ranks - 1) CHECK_WRITER(file, 0, 1, 2000);
  close_file(&file);
}

static void told_by_message(const char* name) {
  /* No barrier: a token goes round, and each adds to the number in the file. */
  long number = 0;
  int token = 0;
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  for (int round = 0; round < 50; ++round) {
    if (ranks > 1 && (round > 0 || rank > 0)) {
      MPI(MPI_Recv(&token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, &status));
    }
    if (round > 0 || rank > 0) {
      MPI(MPI_File_read_at(file, 4093, &number, 1, MPI_LONG, &status));
    }
    CHECK_INT(number, round * ranks + rank);
    ++number;
    MPI(MPI_File_write_at(file, 4093, &number, 1, MPI_LONG, &status));
    if (ranks > 1 && (round < 49 || rank < ranks - 1)) {
      MPI(MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD));
    }
  }
  barrier();
  MPI(MPI_File_read_at(file, 4093, &number, 1, MPI_LONG, &status));
  CHECK_INT(number, 50 * ranks);
  close_file(&file);
}

static void fill_then_write(const char* name) {
  /* A collective fill, over which other ranks than those that filled write. PnetCDF does that. */
  unsigned char* expected = allocate((size_t)block(ranks));
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(rank), 1, kBlock);
  fill(expected, 1, 0, block(ranks));
  barrier();
  const int target = (rank + 1) % ranks;
  write_as(file, block(target) + 100, 2, 2000);
  for (int r = 0; r < ranks; ++r) fill(expected + block(r) + 100, 2, block(r) + 100, 2000);
  barrier();
  CHECK_BYTES(file, 0, expected, block(ranks));
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_BYTES(file, 0, expected, block(ranks));
  close_file(&file);
  free(expected);
}

static void fill_after_write(const char* name) {
  /* The other way round: a collective write over what other ranks wrote independently. */
  MPI_File file = open_all(name, kCreate);
  write_as(file, block((rank + 1) % ranks), 1, kBlock);
  barrier();
  write_all_as(file, block(rank), 2, kBlock);
  barrier();
  CHECK_WRITER(file, 0, 2, block(ranks));
  barrier();
  MPI(MPI_File_sync(file));
  barrier();
  CHECK_WRITER(file, 0, 2, block(ranks));
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 2, block(ranks));
  close_file(&file);
}

static void later_wins(const char* name) {
  /* Every pair: a writes, b overwrites a part, then sync, then close: b's bytes. */
  enum { kSpan = 9000 };
  const MPI_Offset all = (MPI_Offset)ranks * ranks * kSpan;
  unsigned char* expected = allocate((size_t)all);
  MPI_File file = open_all(name, kCreate);
  for (int step = 0; step < 2; ++step) {
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < ranks; ++b) {
        const MPI_Offset at = (MPI_Offset)(a * ranks + b) * kSpan;
        if (step == 0 && rank == a) write_as(file, at, 1, kSpan);
        if (step == 0) fill(expected + at, 1, at, kSpan);
        if (step == 1 && rank == b) write_as(file, at + 1000, 2, kSpan - 2000);
        if (step == 1) fill(expected + at + 1000, 2, at + 1000, kSpan - 2000);
      }
    }
    barrier();
    CHECK_BYTES(file, 0, expected, all);
    barrier();
  }
  MPI(MPI_File_sync(file));
  barrier();
  CHECK_BYTES(file, 0, expected, all);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_BYTES(file, 0, expected, all);
  close_file(&file);
  free(expected);
}

static void later_wins_many_times(const char* name) {
  /* The same bytes again and again, each time by another rank, without a sync in between. */
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < 5 * ranks; ++i) {
    if (i % ranks == rank) write_as(file, i * 10, (uint64_t)i + 1, kBlock);
    barrier();
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i + 1 < 5 * ranks; ++i) CHECK_WRITER(file, i * 10, (uint64_t)i + 1, 10);
    CHECK_WRITER(file, (5 * ranks - 1) * 10, (uint64_t)(5 * ranks), kBlock);
    close_file(&file);
    file = open_all(name, MPI_MODE_RDONLY);
  }
  close_file(&file);
}

static void size_after_a_write(const char* name) {
  MPI_Offset position;
  MPI_File file = open_all(name, kCreate);
  for (int r = 0; r < ranks; ++r) {
    if (rank == r) write_as(file, block(r) + 17, 1, kBlock);
    barrier();
    CHECK_INT(size_of(file), block(r + 1) + 17);
    MPI(MPI_File_seek(file, 0, MPI_SEEK_END));
    MPI(MPI_File_get_position(file, &position));
    CHECK_INT(position, block(r + 1) + 17);
    barrier();
  }
  CHECK_ZEROS(file, 0, 17);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(ranks) + 17);
  close_file(&file);
}

static void size_after_a_shrink(const char* name) {
  unsigned char data[100];
  MPI_Status status;
  MPI_File file = open_all(name, kCreate);
  write_as(file, block(rank), 1, kBlock);
  barrier();
  MPI(MPI_File_set_size(file, block(ranks) - 1500));
  barrier();
  CHECK_INT(size_of(file), block(ranks) - 1500);
  MPI(MPI_File_read_at(file, block(ranks) - 1550, data, 100, MPI_BYTE, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), 50);
  CHECK_WRITER(file, 0, 1, block(ranks) - 1500);
  barrier();
  /* A write beyond it makes the file longer again, with zeros between. */
  if (rank == ranks - 1) write_as(file, block(ranks) + 5, 2, 10);
  barrier();
  CHECK_INT(size_of(file), block(ranks) + 15);
  CHECK_WRITER(file, 0, 1, block(ranks) - 1500);
  CHECK_ZEROS(file, block(ranks) - 1500, 1505);
  CHECK_WRITER(file, block(ranks) + 5, 2, 10);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(ranks) + 15);
  CHECK_WRITER(file, 0, 1, block(ranks) - 1500);
  CHECK_ZEROS(file, block(ranks) - 1500, 1505);
  close_file(&file);
}

static void size_after_an_extension(const char* name) {
  MPI_File file = open_all(name, kCreate);
  write_as(file, block(rank), 1, kBlock);
  barrier();
  MPI(MPI_File_set_size(file, block(ranks) + 100000));
  barrier();
  CHECK_INT(size_of(file), block(ranks) + 100000);
  CHECK_WRITER(file, 0, 1, block(ranks));
  CHECK_ZEROS(file, block(ranks), 100000);
  barrier();
  if (rank == 0) write_as(file, block(ranks) + 50000, 2, 100);
  barrier();
  CHECK_INT(size_of(file), block(ranks) + 100000);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(ranks) + 100000);
  CHECK_ZEROS(file, block(ranks), 50000);
  CHECK_WRITER(file, block(ranks) + 50000, 2, 100);
  CHECK_ZEROS(file, block(ranks) + 50100, 49900);
  close_file(&file);
}

static void shrink_and_extend(const char* name) {
  /* What was cut off, synced or not, reads as zeros ever after. */
  MPI_File file = open_all(name, kCreate);
  for (int synced = 0; synced < 2; ++synced) {
    write_as(file, block(rank), 1, kBlock);
    if (synced) MPI(MPI_File_sync(file));
    barrier();
    MPI(MPI_File_set_size(file, 999));
    MPI(MPI_File_set_size(file, block(ranks)));
    barrier();
    CHECK_INT(size_of(file), block(ranks));
    CHECK_WRITER(file, 0, 1, 999);
    CHECK_ZEROS(file, 999, block(ranks) - 999);
    barrier();
    MPI(MPI_File_sync(file));
    barrier();
    CHECK_WRITER(file, 0, 1, 999);
    CHECK_ZEROS(file, 999, block(ranks) - 999);
    barrier();
  }
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(ranks));
  CHECK_WRITER(file, 0, 1, 999);
  CHECK_ZEROS(file, 999, block(ranks) - 999);
  close_file(&file);
}

static void preallocation(const char* name) {
  MPI_File file = open_all(name, kCreate);
  write_as(file, block(rank), 1, kBlock);
  barrier();
  MPI(MPI_File_preallocate(file, block(ranks) + 5000));
  barrier();
  CHECK_INT(size_of(file), block(ranks) + 5000);
  CHECK_WRITER(file, 0, 1, block(ranks));
  CHECK_ZEROS(file, block(ranks), 5000);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(ranks) + 5000);
  close_file(&file);
}

static void many_small_writes(const char* name) {
  /* Ranks take turns byte by byte, and later overwrite each other's. */
  enum { kEach = 400 };
  const int all = kEach * ranks;
  unsigned char* expected = allocate((size_t)all);
  MPI_File file = open_all(name, kCreate);
  for (int i = 0; i < kEach; ++i) write_as(file, i * ranks + rank, 1, 1);
  fill(expected, 1, 0, all);
  barrier();
  CHECK_BYTES(file, 0, expected, all);
  barrier();
  for (int i = 0; i < kEach; i += 3) write_as(file, i * ranks + (rank + 1) % ranks, 2, 1);
  for (int i = 0; i < all; ++i) {
    if (i / ranks % 3 == 0) expected[i] = byte_at(2, i);
  }
  barrier();
  CHECK_BYTES(file, 0, expected, all);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_BYTES(file, 0, expected, all);
  close_file(&file);
  free(expected);
}

static void through_own_handles(const char* name) {
  /* Each rank has a handle of its own; what it writes is seen through the others'. */
  MPI_File file = open_on(MPI_COMM_SELF, name, kCreate);
  for (uint64_t round = 1; round < 4; ++round) {
    write_as(file, block(rank), round, kBlock);
    barrier();
    CHECK_WRITER(file, 0, round, block(ranks));
    CHECK_INT(size_of(file), block(ranks));
    barrier();
  }
  MPI(MPI_File_set_size(file, block(ranks)));
  barrier();
  if (rank == 0) MPI(MPI_File_set_size(file, 100));
  barrier();
  CHECK_INT(size_of(file), 100);
  barrier();
  close_file(&file);
  file = open_on(MPI_COMM_SELF, name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), 100);
  CHECK_WRITER(file, 0, 3, 100);
  close_file(&file);
}

/* ---- Random operations against a model ---------------------------------------------------------
 */

enum { kModel = 60000 };

static uint64_t random_state;

static int pick(int n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

struct model {
  unsigned char bytes[kModel];
  MPI_Offset size;
};

static void model_write(struct model* model, MPI_Offset at, uint64_t seed, MPI_Offset bytes) {
  fill(model->bytes + at, seed, at, bytes);
  if (bytes > 0 && at + bytes > model->size) model->size = at + bytes;
}

static void model_set_size(struct model* model, MPI_Offset size) {
  if (size < model->size) memset(model->bytes + size, 0, (size_t)(model->size - size));
  model->size = size;
}

static void random_operations_on(const char* name, uint64_t seed, int with_self) {
  struct model* model = allocate(sizeof *model);
  MPI_File all = open_all(name, kCreate), self = MPI_FILE_NULL;
  random_state = seed;
  for (int step = 0; step < 100; ++step) {
    const int writer = pick(ranks), at = pick(kModel - 8000), bytes = pick(5) ? pick(8000) : 0;
    const uint64_t content = seed * 1000 + (uint64_t)step;
    MPI_File own = self != MPI_FILE_NULL && pick(2) ? self : all;
    switch (pick(10)) {
      case 0:
      case 1:
      case 2: /* one rank */
        if (rank == writer) write_as(own, at, content, bytes);
        model_write(model, at, content, bytes);
        break;
      case 3: { /* all ranks, each a part */
        const int each = bytes / ranks;
        write_all_as(all, at + rank * each, content, each);
        model_write(model, at, content, each * ranks);
        break;
      }
      case 4: { /* all ranks, each on its own */
        const int each = bytes / ranks;
        write_as(own, at + (rank + 1) % ranks * each, content, each);
        model_write(model, at, content, each * ranks);
        break;
      }
      case 5: { /* interleaved, by views */
        const int each = bytes / ranks / 4;
        MPI_Datatype ints;
        unsigned char* data = allocate((size_t)each * 4);
        MPI(MPI_Type_create_resized(MPI_INT, 0, 4 * ranks, &ints));
        MPI(MPI_Type_commit(&ints));
        MPI(MPI_File_set_view(all, at + 4 * rank, MPI_INT, ints, "native", MPI_INFO_NULL));
        for (int i = 0; i < each; ++i) {
          fill(data + 4 * i, content, at + 4 * (i * ranks + rank), 4);
        }
        MPI(MPI_File_write_at_all(all, 0, data, each, MPI_INT, MPI_STATUS_IGNORE));
        MPI(MPI_File_set_view(all, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
        MPI_Type_free(&ints);
        free(data);
        model_write(model, at, content, each * ranks * 4);
        break;
      }
      case 6: {
        const int size = pick(kModel);
        MPI(MPI_File_set_size(all, size));
        model_set_size(model, size);
        break;
      }
      case 7:
        MPI(MPI_File_sync(all));
        break;
      case 8:
        if (self != MPI_FILE_NULL) {
          close_file(&self);
        } else if (with_self) {
          self = open_on(MPI_COMM_SELF, name, MPI_MODE_RDWR);
        }
        break;
      default:
        close_file(&all);
        all = open_all(name, MPI_MODE_RDWR);
        break;
    }
    barrier();
    const int from = pick(kModel), to = from + pick(kModel - from);
    const MPI_Offset until = to < model->size ? to : model->size;
    if (from < until && (step + rank) % 2 == 0) {
      CHECK_BYTES(all, from, model->bytes + from, until - from);
    }
    if (self != MPI_FILE_NULL && from < until) {
      CHECK_BYTES(self, from, model->bytes + from, until - from);
    }
    CHECK_INT(size_of(all), model->size);
    barrier();
  }
  CHECK_BYTES(all, 0, model->bytes, model->size);
  barrier();
  close_file(&all);
  if (self != MPI_FILE_NULL) close_file(&self);
  barrier();
  all = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(all), model->size);
  CHECK_BYTES(all, 0, model->bytes, model->size);
  close_file(&all);
  free(model);
  if (rank == 0) MPI(MPI_File_delete(name, MPI_INFO_NULL));
  barrier();
}

static void readers_hear_of_a_writer(const char* name) {
  /* Who has a file open that nobody writes to asks nobody while it reads; then somebody writes. */
  const MPI_Offset bytes = 3 * 4096 * 100 + 7;
  MPI_File file = open_all(name, kCreate);
  if (rank == 0) write_as(file, 0, 1, bytes);
  close_file(&file);
  MPI_File reader = open_all(name, MPI_MODE_RDONLY);
  for (int i = 0; i < 3; ++i) CHECK_WRITER(reader, 1000 * i, 1, 5000);
  CHECK_INT(size_of(reader), bytes);
  for (uint64_t round = 2; round < 6; ++round) {
    const int writer = (int)round % ranks;
    MPI_File own = MPI_FILE_NULL;
    barrier();
    if (rank == writer) {
      MPI(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_WRONLY, MPI_INFO_NULL, &own));
      write_as(own, 2000, round, 3000);
      write_as(own, bytes, round, (MPI_Offset)round * 10);
    }
    barrier();
    CHECK_WRITER(reader, 2000, round, 3000);
    CHECK_WRITER(reader, 0, 1, 2000);
    CHECK_WRITER(reader, bytes, round, (MPI_Offset)round * 10);
    barrier();
    if (rank == writer) close_file(&own);
    barrier();
    CHECK_WRITER(reader, 2000, round, 3000);
    CHECK_WRITER(reader, 5000, 1, bytes - 5000);
    /* Now nobody has it open but readers of what was committed last. */
    if (round == 4) {
      close_file(&reader);
      reader = open_all(name, MPI_MODE_RDONLY);
      CHECK_WRITER(reader, 2000, round, 3000);
    }
  }
  close_file(&reader);
}

static void random_operations(const char* name) {
  random_operations_on(name, 1, 0);
}

static void random_operations_on_two_handles(const char* name) {
  random_operations_on(name, 11, 1);
}

static void more_random_operations(const char* name) {
  for (uint64_t seed = 20; seed < 24; ++seed) random_operations_on(name, seed, seed % 2 == 1);
}

static const struct check_case kCases[] = {
    CASE(neighbouring_ranges),    CASE(third_reads_across),
    CASE(told_by_message),        CASE(fill_then_write),
    CASE(fill_after_write),       CASE(later_wins),
    CASE(later_wins_many_times),  CASE(size_after_a_write),
    CASE(size_after_a_shrink),    CASE(size_after_an_extension),
    CASE(shrink_and_extend),      CASE(preallocation),
    CASE(many_small_writes),      CASE(through_own_handles),
    CASE(random_operations),      CASE(random_operations_on_two_handles),
    CASE(more_random_operations), CASE(readers_hear_of_a_writer),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, kCases);
}
