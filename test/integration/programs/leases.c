/* Ranks that write many small pieces to one place, so that they get leases on blocks of the file,
 * and others that want to read or write there: everything is as without leases. Blocks are of 4
 * MiB.
 */
#include "check.h"

enum { kBlock = 4 << 20, kPiece = 100 };

/* Pieces `from` to `to` of writer `seed`, one call each, `stride` bytes from one to the next. */
static void write_run(MPI_File file, MPI_Offset start, uint64_t seed, int from, int to,
                      int stride) {
  for (int i = from; i < to; ++i) write_as(file, start + (MPI_Offset)i * stride, seed, kPiece);
}

static void runs_that_are_read(const char* name) {
  MPI_File file = open_all(name, kCreate);
  const MPI_Offset own = (MPI_Offset)rank * kBlock;
  for (int round = 0; round < 12; ++round) {
    write_run(file, own, 1, 50 * round, 50 * (round + 1), kPiece);
    barrier();
    CHECK_INT(size_of(file), (MPI_Offset)(ranks - 1) * kBlock + 50 * (round + 1) * kPiece);
    for (int r = 0; r < ranks; ++r) {
      CHECK_WRITER(file, (MPI_Offset)r * kBlock, 1, 50 * (round + 1) * kPiece);
    }
    barrier();
  }
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), (MPI_Offset)(ranks - 1) * kBlock + 600 * kPiece);
  for (int r = 0; r < ranks; ++r) CHECK_WRITER(file, (MPI_Offset)r * kBlock, 1, 600 * kPiece);
  close_file(&file);
}

static void told_by_message(const char* name) {
  /* Rank 0 goes on writing while the last rank reads what it was told of. */
  MPI_File file = open_all(name, kCreate);
  for (int round = 1; round <= 30 && ranks > 1; ++round) {
    int pieces = round * 7;
    if (rank == 0) {
      write_run(file, 5, 1, pieces - 7, pieces, kPiece);
      MPI(MPI_Send(&pieces, 1, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD));
    } else if (rank == ranks - 1) {
      MPI(MPI_Recv(&pieces, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK(size_of(file) >= 5 + pieces * kPiece);
      CHECK_WRITER(file, 5, 1, pieces * kPiece);
    }
  }
  close_file(&file);
}

static void gaps(const char* name) {
  /* More pieces apart from each other than a lease has room for. */
  enum { kPieces = 700, kStride = 3 * kPiece };
  MPI_File file = open_all(name, kCreate);
  const MPI_Offset own = (MPI_Offset)rank * kBlock;
  write_run(file, own, 1, 0, kPieces, kStride);
  write_run(file, own + kPiece / 2, 2, 100, kPieces, kStride);
  barrier();
  for (int when = 0; when < 2; ++when) {
    const MPI_Offset other = (MPI_Offset)((rank + 1) % ranks) * kBlock;
    for (int i = 0; i < kPieces; ++i) {
      const MPI_Offset at = other + (MPI_Offset)i * kStride;
      CHECK_WRITER(file, at, 1, i < 100 ? kPiece : kPiece / 2);
      if (i >= 100) CHECK_WRITER(file, at + kPiece / 2, 2, kPiece);
      if (i + 1 < kPieces) CHECK_ZEROS(file, at + kPiece * 3 / 2, kPiece);
    }
    barrier();
    MPI(MPI_File_sync(file));
    barrier();
  }
  close_file(&file);
}

static void many_blocks(const char* name) {
  /* More of them than a rank may have leases on, again and again. */
  enum { kBlocks = 40 };
  MPI_File file = open_all(name, kCreate);
  for (int round = 0; round < 2 && rank == 0; ++round) {
    for (int b = 0; b < kBlocks; ++b) {
      write_run(file, (MPI_Offset)b * kBlock, 1, 4 * round, 4 * round + 4, kPiece);
    }
  }
  barrier();
  CHECK_INT(size_of(file), (MPI_Offset)(kBlocks - 1) * kBlock + 8 * kPiece);
  for (int b = 0; b < kBlocks; ++b) CHECK_WRITER(file, (MPI_Offset)b * kBlock, 1, 8 * kPiece);
  barrier();
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  for (int b = 0; b < kBlocks; ++b) CHECK_WRITER(file, (MPI_Offset)b * kBlock, 1, 8 * kPiece);
  close_file(&file);
}

static void taking_turns(const char* name) {
  /* All ranks in one block, piece by piece, and then over each other's pieces. */
  enum { kEach = 300 };
  MPI_File file = open_all(name, kCreate);
  write_run(file, rank * kPiece, 1, 0, kEach, ranks * kPiece);
  barrier();
  CHECK_INT(size_of(file), kEach * ranks * kPiece);
  CHECK_WRITER(file, 0, 1, kEach * ranks * kPiece);
  barrier();
  write_run(file, (rank + 1) % ranks * kPiece, 2, 0, kEach, ranks * kPiece);
  barrier();
  CHECK_WRITER(file, 0, 2, kEach * ranks * kPiece);
  barrier();
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 2, kEach * ranks * kPiece);
  close_file(&file);
}

static void later_wins(const char* name) {
  /* A run, then one piece over it by another rank, then on with the run. */
  MPI_File file = open_all(name, kCreate);
  for (int round = 0; round < 10; ++round) {
    if (rank == 0) write_run(file, 0, 1, 10 * round, 10 * round + 10, kPiece);
    barrier();
    if (rank == ranks - 1) write_as(file, 10 * round * kPiece + 17, 2, kPiece);
    barrier();
    if (rank == 0) write_as(file, (10 * round + 5) * kPiece + 3, 3, kPiece);
    barrier();
  }
  for (int when = 0; when < 2; ++when) {
    for (int round = 0; round < 10; ++round) {
      const MPI_Offset at = 10 * round * kPiece;
      CHECK_WRITER(file, at, 1, 17);
      CHECK_WRITER(file, at + 17, 2, kPiece);
      CHECK_WRITER(file, at + 17 + kPiece, 1, 4 * kPiece - 14);
      CHECK_WRITER(file, at + 5 * kPiece + 3, 3, kPiece);
      CHECK_WRITER(file, at + 6 * kPiece + 3, 1, 4 * kPiece - 3);
    }
    close_file(&file);
    file = open_all(name, MPI_MODE_RDONLY);
  }
  close_file(&file);
}

static void collective_over_leases(const char* name) {
  /* Large enough that it is not logged. */
  enum { kEach = 600000 };
  MPI_File file = open_all(name, kCreate);
  const MPI_Offset next = (MPI_Offset)((rank + 1) % ranks) * kEach;
  write_run(file, next, 1, 0, 100, kPiece);
  barrier();
  write_all_as(file, (MPI_Offset)rank * kEach, 2, kEach);
  barrier();
  CHECK_WRITER(file, next, 2, kEach);
  barrier();
  write_run(file, next, 3, 0, 100, kPiece);
  barrier();
  CHECK_WRITER(file, (MPI_Offset)rank * kEach, 3, 100 * kPiece);
  CHECK_WRITER(file, (MPI_Offset)rank * kEach + 100 * kPiece, 2, kEach - 100 * kPiece);
  barrier();
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, next, 3, 100 * kPiece);
  CHECK_WRITER(file, next + 100 * kPiece, 2, kEach - 100 * kPiece);
  close_file(&file);
}

static void shrinking(const char* name) {
  MPI_File file = open_all(name, kCreate);
  const MPI_Offset own = (MPI_Offset)rank * kBlock;
  const MPI_Offset all = (MPI_Offset)(ranks - 1) * kBlock + 20 * kPiece;
  for (int round = 0; round < 3; ++round) {
    const uint64_t seed = (uint64_t)round + 1;
    write_run(file, own, seed, 0, 20, kPiece);
    barrier();
    /* Nobody has looked at the file when it gets shorter. */
    MPI(MPI_File_set_size(file, 10 * kPiece));
    barrier();
    CHECK_INT(size_of(file), 10 * kPiece);
    barrier();
    /* Its writer goes on as if nothing had happened. */
    if (rank == 0) write_as(file, 15 * kPiece, seed, kPiece);
    barrier();
    CHECK_INT(size_of(file), 16 * kPiece);
    CHECK_WRITER(file, 0, seed, 10 * kPiece);
    CHECK_ZEROS(file, 10 * kPiece, 5 * kPiece);
    CHECK_WRITER(file, 15 * kPiece, seed, kPiece);
    barrier();
    MPI(MPI_File_set_size(file, all));
    barrier();
    CHECK_INT(size_of(file), all);
    CHECK_ZEROS(file, 16 * kPiece, 4 * kPiece);
    if (rank > 0) CHECK_ZEROS(file, own, 20 * kPiece);
    barrier();
  }
  close_file(&file);
}

static void own_handles(const char* name) {
  /* One rank commits what it wrote through a handle of its own; what others wrote stays. */
  MPI_File all = open_all(name, kCreate);
  MPI_File self = open_on(MPI_COMM_SELF, name, MPI_MODE_RDWR);
  const MPI_Offset own = (MPI_Offset)rank * kBlock;
  for (int round = 0; round < 3; ++round) {
    write_run(self, own, 1, 20 * round, 20 * round + 20, kPiece);
    barrier();
    if (rank == round % ranks) MPI(MPI_File_sync(self));
    barrier();
    write_as(all, own + 20 * round * kPiece, 2, kPiece);
  }
  close_file(&self);
  barrier();
  for (int when = 0; when < 2; ++when) {
    for (int r = 0; r < ranks; ++r) {
      for (int round = 0; round < 3; ++round) {
        const MPI_Offset at = (MPI_Offset)r * kBlock + 20 * round * kPiece;
        CHECK_WRITER(all, at, 2, kPiece);
        CHECK_WRITER(all, at + kPiece, 1, 19 * kPiece);
      }
    }
    barrier();
    close_file(&all);
    all = open_all(name, MPI_MODE_RDONLY);
  }
  close_file(&all);
}

/* ---- Random runs against a model ----------------------------------------------------------------
 */

enum { kModel = 9 << 20 };

static uint64_t random_state;

static int pick(int n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

static void random_runs(const char* name) {
  unsigned char* model = allocate(kModel);
  MPI_Offset size = 0;
  MPI_File file = open_all(name, kCreate);
  random_state = 5;
  for (int step = 0; step < 60; ++step) {
    /* Each rank has a run of its own in a part of its own, near the others' or not. */
    const int part = pick(2) ? kModel / ranks : 20000;
    const MPI_Offset base = pick(kModel - part * ranks + 1);
    const uint64_t seed = (uint64_t)step + 1;
    for (int r = 0; r < ranks; ++r) {
      const int stride = pick(2) ? kPiece : kPiece + pick(200), pieces = pick(60);
      const MPI_Offset start = base + (MPI_Offset)r * part;
      if (r == rank) write_run(file, start, seed, 0, pieces, stride);
      for (int i = 0; i < pieces; ++i) {
        const MPI_Offset at = start + (MPI_Offset)i * stride;
        fill(model + at, seed, at, kPiece);
        if (at + kPiece > size) size = at + kPiece;
      }
    }
    barrier();
    const int what = pick(8);
    if (what == 0) MPI(MPI_File_sync(file));
    if (what == 1) {
      const MPI_Offset cut = pick(kModel);
      MPI(MPI_File_set_size(file, cut));
      if (cut < size) memset(model + cut, 0, (size_t)(size - cut));
      size = cut;
    }
    if (what == 2) {
      close_file(&file);
      file = open_all(name, MPI_MODE_RDWR);
    }
    barrier();
    if (pick(2)) continue; /* nobody looks */
    const int reader = pick(ranks + 1);
    const MPI_Offset from = pick((int)size + 1), left = size - from;
    const MPI_Offset bytes = left < 100000 ? left : 100000;
    if (reader == ranks || reader == rank) {
      CHECK_INT(size_of(file), size);
      CHECK_BYTES(file, from, model + from, bytes);
    }
    barrier();
  }
  CHECK_INT(size_of(file), size);
  CHECK_BYTES(file, 0, model, size);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), size);
  CHECK_BYTES(file, 0, model, size);
  close_file(&file);
  free(model);
}

static const struct check_case cases[] = {
    CASE(runs_that_are_read), CASE(told_by_message), CASE(gaps),      CASE(many_blocks),
    CASE(taking_turns),       CASE(later_wins),      CASE(shrinking), CASE(collective_over_leases),
    CASE(own_handles),        CASE(random_runs),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, cases);
}
