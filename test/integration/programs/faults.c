/* One fault after the other at the calls to one rank's stores, in one job:
 *
 *   faults FILE CONTROL RANK FAULT FIRST STEP
 *
 * DEDUP_TEST_FAULT=CONTROL must be set, and CONTROL.R be there for each rank R. For n = FIRST,
 * FIRST + STEP, … until a round gets through: the file is opened, written and closed by all, and
 * the n-th call that the fault can happen to fails on RANK. After each: an error on all ranks or
 * on none, the file is what it was or what was written, and a job that opens it afterwards leaves
 * as many files in the stores as one that nothing happened to. The last line says how many points
 * were tried.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

/* store::FaultPlan, see test/hooks/faulty_system.h. */
struct plan {
  _Atomic uint32_t fault;
  _Atomic uint32_t struck;
  _Atomic uint64_t at;
  _Atomic uint64_t calls;
  char where[232];
};

enum { kShort = 8, kInterrupted = 7, kBytes = 20000 };

static struct plan* plan;
static char where[232];
static long files_found;

static void map_plan(const char* control) {
  char path[4096];
  snprintf(path, sizeof path, "%s.%d", control, rank);
  const int fd = open(path, O_RDWR);
  CHECK(fd >= 0);
  plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(plan != MAP_FAILED);
  close(fd);
}

static void arm(uint32_t fault, uint64_t at) {
  plan->fault = 0;
  plan->struck = 0;
  plan->calls = 0;
  plan->at = at;
  plan->fault = fault;
}

/* A collective call's error must be everybody's. True if it failed. */
static int failed(const char* call, int code, long n) {
  int mine[2], lowest[2], highest[2];
  mine[0] = mine[1] = code == MPI_SUCCESS ? 0 : error_class(code);
  MPI(MPI_Allreduce(mine, lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
  MPI(MPI_Allreduce(mine, highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (lowest[0] != highest[0]) {
    FAIL("%s: class %d here, from %d to %d on all ranks (point %ld: %s)", call, mine[0], lowest[0],
         highest[0], n, where);
  }
  return highest[0] != 0;
}

static int any(int mine) {
  int all;
  MPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  return all;
}

/* What succeeded, on all ranks. */
struct outcome {
  int wrote, all;
};

/* Everything of the file is `seed`'s: in part by a collective call, in part independently. */
static struct outcome write_file(const char* name, uint64_t seed, long n) {
  unsigned char* data = allocate(kBytes);
  MPI_File file;
  MPI_Status status;
  const MPI_Offset at = (MPI_Offset)rank * kBytes;
  fill(data, seed, at, kBytes);
  struct outcome good = {1, 0};
  int code = MPI_File_open(MPI_COMM_WORLD, name, kCreate, MPI_INFO_NULL, &file);
  if (!failed("open", code, n)) {
    code = MPI_File_write_at_all(file, at, data, kBytes / 2, MPI_BYTE, &status);
    good.wrote &= !failed("write_at_all", code, n);
    code =
        MPI_File_write_at(file, at + kBytes / 2, data + kBytes / 2, kBytes / 2, MPI_BYTE, &status);
    good.wrote &= !any(code != MPI_SUCCESS);
    good.all = good.wrote;
    good.all &= !failed("sync", MPI_File_sync(file), n);
    good.all &= !failed("close", MPI_File_close(&file), n);
  }
  free(data);
  return good;
}

/* The whole file must be what one of two wrote, or each byte of it unless `whole`. Returns whether
 * all of it is the first one's. */
static int read_file(const char* name, uint64_t one, uint64_t other, int whole, long n) {
  unsigned char* found = allocate(kBytes);
  MPI_File file;
  MPI_Status status;
  /* Another rank's part than the one that this one wrote. */
  const MPI_Offset at = (MPI_Offset)((rank + 1) % ranks) * kBytes;
  int code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  if (code != MPI_SUCCESS) FAIL("open after point %ld (%s): %s", n, where, error_text(code));
  code = MPI_File_read_at(file, at, found, kBytes, MPI_BYTE, &status);
  if (code != MPI_SUCCESS) FAIL("read after point %ld (%s): %s", n, where, error_text(code));
  MPI(MPI_File_close(&file));
  int not_one = 0, not_other = 0, neither = 0;
  for (int i = 0; i < kBytes; ++i) {
    const int is_one = found[i] == byte_at(one, at + i);
    const int is_other = found[i] == byte_at(other, at + i);
    not_one |= !is_one;
    not_other |= !is_other;
    neither |= !is_one && !is_other;
  }
  not_one = any(not_one);
  not_other = any(not_other);
  if (any(neither)) FAIL("wrong bytes after point %ld (%s)", n, where);
  if (whole && not_one && not_other) FAIL("half of a commit after point %ld (%s)", n, where);
  free(found);
  return !not_one;
}

static int count_file(const char* path, const struct stat* about, int type, struct FTW* ftw) {
  (void)path, (void)about, (void)ftw;
  files_found += type == FTW_F;
  return 0;
}

/* In all stores and beside the file. */
static long count_files(const char* name) {
  char directory[4096];
  files_found = 0;
  snprintf(directory, sizeof directory, "%s", strchr(name, ':') + 1);
  *strrchr(directory, '/') = '\0';
  CHECK(nftw(directory, count_file, 16, FTW_PHYS) == 0);
  return files_found;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  running = "faults";
  CHECK(argc == 7);
  const char* name = argv[1];
  map_plan(argv[2]);
  const int victim = atoi(argv[3]);
  const uint32_t fault = (uint32_t)atoi(argv[4]);
  const long first = atol(argv[5]), step = atol(argv[6]);
  const int harmless = fault == kShort || fault == kInterrupted;

  uint64_t seed = 1;
  for (int i = 0; i < 2; ++i) {
    if (!write_file(name, ++seed, 0).all) FAIL("without a fault");
  }
  barrier();
  const long clean = count_files(name);
  barrier();
  long points = 0, succeeded = 0;
  for (long n = first;; n += step) {
    if (rank == victim) arm(fault, (uint64_t)n);
    barrier();
    const uint64_t was = seed;
    const struct outcome good = write_file(name, ++seed, n);
    int struck = 0;
    if (rank == victim) {
      struck = plan->struck != 0;
      snprintf(where, sizeof where, "%s", plan->where);
      arm(0, 0);
    }
    MPI(MPI_Bcast(where, sizeof where, MPI_CHAR, victim, MPI_COMM_WORLD));
    struck = any(struck);
    if ((harmless || !struck) && !good.all) FAIL("an error at point %ld (%s)", n, where);
    const int is_new = read_file(name, seed, was, good.wrote, n);
    if (good.all && !is_new) FAIL("what was committed is not there, point %ld (%s)", n, where);
    /* The next job: all is as it would be without the fault. */
    if (!write_file(name, ++seed, n).all) FAIL("no writing after point %ld (%s)", n, where);
    barrier();
    const long now = count_files(name);
    if (now != clean) FAIL("%ld files, not %ld, after point %ld (%s)", now, clean, n, where);
    barrier();
    if (!struck) break;
    ++points;
    succeeded += good.all;
  }
  if (rank == 0) printf("%ld points, %ld of them without an error\n", points, succeeded);
  MPI_Finalize();
  return 0;
}
