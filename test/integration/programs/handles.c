/* Several handles on one file at once, on any communicators. */
#include "check.h"

enum { kBlock = 5003 };

static MPI_Offset block(int index) {
  return (MPI_Offset)index * kBlock;
}

static void check_whole(const char* name, uint64_t seed, int blocks) {
  MPI_File file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(blocks));
  CHECK_WRITER(file, 0, seed, block(blocks));
  close_file(&file);
}

static void one_rank_alone_reads(const char* name) {
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(3 * rank), 1, block(3));
  close_file(&file);
  barrier();
  if (rank == ranks - 1) {
    file = open_on(MPI_COMM_SELF, name, MPI_MODE_RDONLY);
    CHECK_INT(size_of(file), block(3 * ranks));
    CHECK_WRITER(file, 0, 1, block(3 * ranks));
    close_file(&file);
  }
}

static void one_rank_alone_writes(const char* name) {
  if (rank == ranks / 2) {
    MPI_File file = open_on(MPI_COMM_SELF, name, kCreate);
    write_as(file, 0, 1, block(2));
    write_all_as(file, block(2), 1, block(2));
    close_file(&file);
  }
  barrier();
  check_whole(name, 1, 4);
}

static void each_rank_its_block(const char* name) {
  MPI_File file = open_on(MPI_COMM_SELF, name, kCreate);
  if (rank % 2 == 0) {
    write_as(file, block(rank), 1, kBlock);
  } else {
    write_all_as(file, block(rank), 1, kBlock);
  }
  close_file(&file);
  barrier();
  check_whole(name, 1, ranks);
  file = open_on(MPI_COMM_SELF, name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 1, block(ranks));
  close_file(&file);
}

static void each_rank_its_block_while_open(const char* name) {
  MPI_File file = open_on(MPI_COMM_SELF, name, kCreate);
  write_as(file, block(rank), 1, kBlock);
  barrier();
  CHECK_INT(size_of(file), block(ranks));
  CHECK_WRITER(file, 0, 1, block(ranks));
  barrier();
  MPI(MPI_File_sync(file)); /* each for itself */
  barrier();
  CHECK_WRITER(file, 0, 1, block(ranks));
  barrier();
  write_as(file, block(ranks - 1 - rank), 2, kBlock);
  barrier();
  CHECK_WRITER(file, 0, 2, block(ranks));
  close_file(&file);
  barrier();
  check_whole(name, 2, ranks);
}

/* One of all ranks and one of each rank's own, written through both. */
static void both(const char* name, int self_first) {
  MPI_File all = open_all(name, kCreate), self = open_on(MPI_COMM_SELF, name, kCreate);
  write_all_as(all, block(2 * rank), 1, kBlock);
  write_as(self, block(2 * rank + 1), 1, kBlock);
  barrier();
  CHECK_WRITER(all, 0, 1, block(2 * ranks));
  CHECK_WRITER(self, 0, 1, block(2 * ranks));
  CHECK_INT(size_of(all), block(2 * ranks));
  CHECK_INT(size_of(self), block(2 * ranks));
  barrier();
  /* Over what the other handle wrote, in part. */
  write_as(self, block(2 * rank) + 100, 2, 1000);
  barrier();
  write_all_as(all, block(2 * rank + 1) + 100, 2, 1000);
  barrier();
  close_file(self_first ? &self : &all);
  barrier();
  MPI_File* left = self_first ? &all : &self;
  for (int i = 0; i < 2 * ranks; ++i) {
    CHECK_WRITER(*left, block(i), 1, 100);
    CHECK_WRITER(*left, block(i) + 100, 2, 1000);
    CHECK_WRITER(*left, block(i) + 1100, 1, kBlock - 1100);
  }
  barrier();
  /* What is left goes on. */
  write_as(*left, block(2 * ranks + rank), 1, kBlock);
  close_file(left);
  barrier();
  MPI_File file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), block(3 * ranks));
  for (int i = 0; i < 2 * ranks; ++i) {
    CHECK_WRITER(file, block(i), 1, 100);
    CHECK_WRITER(file, block(i) + 100, 2, 1000);
    CHECK_WRITER(file, block(i) + 1100, 1, kBlock - 1100);
  }
  CHECK_WRITER(file, block(2 * ranks), 1, block(ranks));
  close_file(&file);
}

static void collective_and_self_closed_first(const char* name) {
  both(name, 1);
}
static void collective_and_self_closed_last(const char* name) {
  both(name, 0);
}

static void sub_communicators(const char* name) {
  /* Even and odd ranks each have the file open together. */
  MPI_Comm half;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
  /* The stock driver's collective buffering reads and writes back what lies between its ranks'
   * blocks, without a lock against the other half. */
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "romio_cb_write", "disable"));
  MPI_File file;
  MPI(MPI_File_open(half, name, kCreate, info, &file));
  MPI(MPI_Info_free(&info));
  write_all_as(file, block(rank), 1, kBlock);
  barrier();
  CHECK_WRITER(file, 0, 1, block(ranks));
  CHECK_INT(size_of(file), block(ranks));
  barrier();
  if (rank % 2 == 0) MPI(MPI_File_sync(file));
  barrier();
  CHECK_WRITER(file, 0, 1, block(ranks));
  if (rank % 2 == 0) close_file(&file);
  barrier();
  if (rank % 2 == 1) {
    CHECK_WRITER(file, 0, 1, block(ranks));
    write_all_as(file, block(ranks + rank / 2), 1, kBlock);
    close_file(&file);
  }
  MPI_Comm_free(&half);
  barrier();
  check_whole(name, 1, ranks + ranks / 2);
}

static void only_some_ranks(const char* name) {
  /* The others never open it, but may hold copies of it. */
  MPI_Comm some;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, rank < (ranks + 1) / 2 ? 0 : MPI_UNDEFINED, 0, &some));
  if (some != MPI_COMM_NULL) {
    MPI_File file = open_on(some, name, kCreate);
    write_all_as(file, block(rank), 1, kBlock);
    close_file(&file);
    MPI_Comm_free(&some);
  }
  barrier();
  check_whole(name, 1, (ranks + 1) / 2);
}

static void writer_and_reader(const char* name) {
  /* Half of the ranks only read while the others write and commit. */
  MPI_Comm half;
  const int writes = rank % 2 == 0;
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(rank), 1, kBlock);
  close_file(&file);
  MPI(MPI_Comm_split(MPI_COMM_WORLD, writes, 0, &half));
  file = open_on(half, name, writes ? MPI_MODE_RDWR : MPI_MODE_RDONLY);
  CHECK_WRITER(file, 0, 1, block(ranks));
  barrier();
  if (writes) {
    for (int i = rank; i < ranks; i += ranks % 2 ? ranks : 2) write_as(file, block(i), 2, kBlock);
    if (rank == 0) {
      for (int i = 1; i < ranks; i += 2) write_as(file, block(i), 2, kBlock);
    }
  }
  barrier();
  for (int i = rank % 2; i < ranks; i += ranks) CHECK_WRITER(file, block(i), 2, kBlock);
  if (writes) MPI(MPI_File_sync(file));
  barrier();
  CHECK_INT(size_of(file), block(ranks));
  close_file(&file);
  MPI_Comm_free(&half);
}

static void reader_keeps_open_over_commits(const char* name) {
  /* A read-only handle sees what others commit meanwhile, as in a POSIX file. */
  MPI_File writer = open_all(name, kCreate);
  write_all_as(writer, block(rank), 1, kBlock);
  MPI(MPI_File_sync(writer));
  barrier();
  MPI_File reader = open_on(MPI_COMM_SELF, name, MPI_MODE_RDONLY);
  CHECK_WRITER(reader, 0, 1, block(ranks));
  for (uint64_t seed = 2; seed < 5; ++seed) {
    barrier();
    write_all_as(writer, block(rank), seed, kBlock);
    barrier();
    CHECK_WRITER(reader, 0, seed, block(ranks));
    barrier();
    MPI(MPI_File_sync(writer));
    barrier();
    CHECK_WRITER(reader, 0, seed, block(ranks));
  }
  barrier();
  close_file(&writer);
  CHECK_WRITER(reader, 0, 4, block(ranks));
  close_file(&reader);
}

static void different_files_by_different_ranks(const char* name) {
  char mine[4200];
  for (int round = 0; round < 2; ++round) {
    snprintf(mine, sizeof mine, "%s.%d", name, (rank + round) % ranks);
    MPI_File file = open_on(MPI_COMM_SELF, mine, kCreate);
    if (round == 0) {
      write_as(file, 0, (uint64_t)rank, kBlock);
    } else {
      CHECK_WRITER(file, 0, (uint64_t)((rank + 1) % ranks), kBlock);
    }
    close_file(&file);
    barrier();
  }
}

static void own_shared_pointers(const char* name) {
  /* Each handle has a shared pointer of its own. */
  unsigned char data[100];
  MPI_Offset position;
  MPI_File first = open_all(name, kCreate), second = open_all(name, kCreate);
  memset(data, rank + 1, sizeof data);
  MPI(MPI_File_write_ordered(first, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
  barrier();
  MPI(MPI_File_get_position_shared(first, &position));
  CHECK_INT(position, 100 * ranks);
  if (is_dedup(name)) {
    MPI(MPI_File_get_position_shared(second, &position));
    CHECK_INT(position, 0);
    barrier();
    MPI(MPI_File_read_ordered(second, data, 100, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_INT(data[0], rank + 1);
  }
  close_file(&first);
  close_file(&second);
}

static void open_and_close_without_writing(const char* name) {
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(rank), 1, kBlock);
  MPI_File others[5];
  for (int i = 0; i < 5; ++i) others[i] = open_on(MPI_COMM_SELF, name, MPI_MODE_RDWR);
  barrier();
  for (int i = 0; i < 5; ++i) close_file(&others[i]);
  barrier();
  CHECK_WRITER(file, 0, 1, block(ranks));
  close_file(&file);
  check_whole(name, 1, ranks);
}

static void deleted_while_open(const char* name) {
  /* As with POSIX: who has it open goes on; the name is free. */
  MPI_File file = open_all(name, kCreate);
  write_all_as(file, block(rank), 1, kBlock);
  MPI(MPI_File_sync(file));
  barrier();
  if (rank == 0) MPI(MPI_File_delete(name, MPI_INFO_NULL));
  barrier();
  CHECK_WRITER(file, 0, 1, block(ranks));
  MPI_File other;
  MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &other),
            MPI_ERR_NO_SUCH_FILE);
  if (rank == 0) MPI_FAILS(MPI_File_delete(name, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
  close_file(&file);
  MPI_FAILS(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &other),
            MPI_ERR_NO_SUCH_FILE);
}

static void deleted_and_created_anew(const char* name) {
  /* Two files: what the name was, for those who have it open, and what it is now. */
  MPI_File old = open_all(name, kCreate);
  write_all_as(old, block(rank), 1, kBlock);
  barrier();
  if (rank == 0) MPI(MPI_File_delete(name, MPI_INFO_NULL));
  barrier();
  MPI_File new = open_all(name, kCreate | MPI_MODE_EXCL);
  CHECK_INT(size_of(new), 0);
  barrier();
  write_all_as(new, block(rank), 2, block(1) / 2);
  write_all_as(old, block(ranks + rank), 1, kBlock);
  barrier();
  CHECK_WRITER(old, 0, 1, block(2 * ranks));
  CHECK_WRITER(new, 0, 2, block(1) / 2);
  MPI(MPI_File_sync(new));
  close_file(&old);
  CHECK_WRITER(new, block(ranks - 1), 2, block(1) / 2);
  close_file(&new);
  new = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(new), block(ranks - 1) + block(1) / 2);
  CHECK_WRITER(new, 0, 2, block(1) / 2);
  close_file(&new);
}

static void more_files_open_at_once(const char* name) {
  /* More than half as many as MPICH has communicators: the stock driver, which needs one for each,
   * gets there, and a driver that needs two does not. Every hundredth file is written; and on other
   * ranks, or the same in another order, there are communicators as well. */
  enum { kFiles = 1100, kWritten = 100 };
  static MPI_File files[kFiles];
  MPI_Comm comms[3] = {MPI_COMM_WORLD};
  MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]));
  MPI(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]));
  char file_name[4200];
  for (int i = 0; i < kFiles; ++i) {
    snprintf(file_name, sizeof file_name, "%s.%d", name, i % kWritten == 0 ? i / kWritten : 0);
    files[i] = open_on(comms[i % 3], file_name, kCreate);
  }
  for (int i = 0; i < kFiles; i += kWritten) {
    write_all_as(files[i], block(rank), (uint64_t)i, kBlock);
    barrier();
    CHECK_WRITER(files[i], 0, (uint64_t)i, block(ranks));
  }
  CHECK_WRITER(files[1], 0, 0, block(ranks));
  for (int i = 0; i < kFiles; ++i) close_file(&files[i]);
  for (int i = 1; i < 3; ++i) MPI(MPI_Comm_free(&comms[i]));
  for (int i = 0; i < kFiles / kWritten; ++i) {
    snprintf(file_name, sizeof file_name, "%s.%d", name, i);
    check_whole(file_name, (uint64_t)i * kWritten, ranks);
  }
}

static const struct check_case kCases[] = {
    CASE(one_rank_alone_reads),
    CASE(one_rank_alone_writes),
    CASE(each_rank_its_block),
    CASE(each_rank_its_block_while_open),
    CASE(collective_and_self_closed_first),
    CASE(collective_and_self_closed_last),
    CASE(sub_communicators),
    CASE(only_some_ranks),
    CASE(writer_and_reader),
    CASE(reader_keeps_open_over_commits),
    CASE(different_files_by_different_ranks),
    CASE(own_shared_pointers),
    CASE(open_and_close_without_writing),
    CASE(deleted_while_open),
    CASE(deleted_and_created_anew),
    CASE(more_files_open_at_once),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, kCases);
}
