/* Collective writes so small that they are logged, and become chunks when the logs are full: with
 * the smallest dedup_buffer that is every 256 KiB.
 */
#include <glob.h>
#include <sys/stat.h>

#include "check.h"

enum { kLogs = 256 << 10, kPiece = 16 << 10 };

static MPI_File open_small(const char* name) {
  MPI_Info info;
  MPI(MPI_Info_create(&info));
  MPI(MPI_Info_set(info, "dedup_buffer", "1 MiB"));
  MPI_File file;
  MPI(MPI_File_open(MPI_COMM_WORLD, name, kCreate, info, &file));
  MPI(MPI_Info_free(&info));
  return file;
}

/* No log is longer than what makes it full, what a call adds, and what stands before its data. */
static void check_logs(const char* name) {
  const char* store = getenv("DEDUP_STORE"); /* as dedup-mpiexec gives it, with %n for the node */
  if (!is_dedup(name) || store == NULL) return;
  const char* node = strstr(store, "%n");
  CHECK(node != NULL);
  char pattern[4096];
  snprintf(pattern, sizeof pattern, "%.*s*%s/files/*/logs/*.log", (int)(node - store), store,
           node + 2);
  glob_t found;
  CHECK_INT(glob(pattern, 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    struct stat about;
    if (stat(found.gl_pathv[i], &about) != 0) continue; /* it ended meanwhile */
    if (about.st_size > (128 << 10) + kLogs + kPiece) {
      FAIL("%s has %lld bytes", found.gl_pathv[i], (long long)about.st_size);
    }
  }
  globfree(&found);
}

/* Every rank reads what the next one has written. */
static void check_pieces(MPI_File file, int calls, int overwritten) {
  const int other = (rank + 1) % ranks;
  for (int call = 0; call < calls; ++call) {
    CHECK_WRITER(file, ((MPI_Offset)call * ranks + other) * kPiece, call < overwritten ? 2 : 1,
                 kPiece);
  }
}

/* The usual pattern: the ranks' pieces stand side by side. */
static void striped(const char* name) {
  enum { kCalls = 70 };
  MPI_File file = open_small(name);
  for (int call = 0; call < kCalls; ++call) {
    write_all_as(file, ((MPI_Offset)call * ranks + rank) * kPiece, 1, kPiece);
    if (call % 20 == 17) {
      barrier();
      check_pieces(file, call + 1, 0);
      barrier();
    }
  }
  barrier();
  check_logs(name);
  for (int call = 0; call < 20; ++call) {
    write_all_as(file, ((MPI_Offset)call * ranks + rank) * kPiece, 2, kPiece);
  }
  barrier();
  check_pieces(file, kCalls, 20);
  check_logs(name);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), (MPI_Offset)kCalls * ranks * kPiece);
  check_pieces(file, kCalls, 20);
  close_file(&file);
}

/* Each rank writes a stretch of its own, of odd pieces and not in the order of the file. */
static void stretches(const char* name) {
  enum { kCalls = 60, kOdd = 9001 };
  MPI_File file = open_small(name);
  const MPI_Offset own = (MPI_Offset)rank * kCalls * kOdd;
  for (int call = 0; call < kCalls; ++call) {
    write_all_as(file, own + (MPI_Offset)((call * 7) % kCalls) * kOdd, 1, kOdd);
  }
  barrier();
  const MPI_Offset next = (MPI_Offset)((rank + 1) % ranks) * kCalls * kOdd;
  CHECK_WRITER(file, next, 1, (MPI_Offset)kCalls * kOdd);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_WRITER(file, next, 1, (MPI_Offset)kCalls * kOdd);
  close_file(&file);
}

/* In one call some ranks write much and others little or nothing: whatever a rank logs, and
 * whatever is dumped from its memory, the last call wins.
 */
static void unequal(const char* name) {
  static const int kSizes[] = {
      0, 1, 4096, 64 << 10, (64 << 10) + 1, 100 << 10, (256 << 10) - 1, 256 << 10, 300 << 10};
  enum { kCalls = 24, kCount = sizeof kSizes / sizeof kSizes[0], kRoom = 300 << 10 };
  MPI_File file = open_small(name);
  unsigned char* expected = allocate(kRoom);
  MPI_Offset end = 0;
  const int other = (rank + 1) % ranks;
  for (int call = 0; call < kCalls; ++call) {
    /* Little by all in some calls, so that what was dumped before is overwritten by logged data. */
    const int most = call % 3 == 2 ? 4 : kCount;
    write_all_as(file, (MPI_Offset)rank * kRoom, (uint64_t)call + 1, kSizes[(call + rank) % most]);
    fill(expected, (uint64_t)call + 1, (MPI_Offset)other * kRoom, kSizes[(call + other) % most]);
    for (int r = 0; r < ranks; ++r) {
      const MPI_Offset size = kSizes[(call + r) % most];
      if (size != 0 && end < (MPI_Offset)r * kRoom + size) end = (MPI_Offset)r * kRoom + size;
    }
    barrier();
    CHECK_INT(size_of(file), end);
    const MPI_Offset there = end - (MPI_Offset)other * kRoom;
    const MPI_Offset bytes = there < 0 ? 0 : there < kRoom ? there : kRoom;
    CHECK_BYTES(file, (MPI_Offset)other * kRoom, expected, bytes);
    barrier();
  }
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_INT(size_of(file), end);
  const MPI_Offset there = end - (MPI_Offset)other * kRoom;
  CHECK_BYTES(file, (MPI_Offset)other * kRoom, expected, there < kRoom ? there : kRoom);
  close_file(&file);
  free(expected);
}

/* Independent writes between small collective ones have their place in the order. */
static void mixed(const char* name) {
  enum { kCalls = 60 };
  MPI_File file = open_small(name);
  for (int call = 0; call < kCalls; ++call) {
    write_all_as(file, ((MPI_Offset)call * ranks + rank) * kPiece, 1, kPiece);
    if (call % 3 == 0) {
      write_as(file, ((MPI_Offset)call * ranks + rank) * kPiece + 100, 3, kPiece - 200);
    }
  }
  barrier();
  const int other = (rank + 1) % ranks;
  for (int when = 0; when < 2; ++when) {
    for (int call = 0; call < kCalls; ++call) {
      const MPI_Offset at = ((MPI_Offset)call * ranks + other) * kPiece;
      CHECK_WRITER(file, at, 1, 100);
      CHECK_WRITER(file, at + 100, call % 3 == 0 ? 3 : 1, kPiece - 200);
      CHECK_WRITER(file, at + kPiece - 100, 1, 100);
    }
    barrier();
    if (when == 0) MPI(MPI_File_sync(file));
    barrier();
  }
  close_file(&file);
}

/* As much as is not read from the logs, but looked at where they are; some of it overwritten. */
static void looked_at(const char* name) {
  enum { kCalls = 150 };
  MPI_File file = open_all(name, kCreate);
  for (int call = 0; call < kCalls; ++call) {
    write_all_as(file, ((MPI_Offset)call * ranks + rank) * kPiece, 1, kPiece);
  }
  for (int call = 0; call < 10; ++call) {
    write_all_as(file, ((MPI_Offset)call * ranks + rank) * kPiece, 2, kPiece);
  }
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  check_pieces(file, kCalls, 10);
  close_file(&file);
}

int main(int argc, char** argv) {
  static const struct check_case cases[] = {CASE(striped), CASE(stretches), CASE(unequal),
                                            CASE(mixed), CASE(looked_at)};
  return RUN_CASES(argc, argv, cases);
}
