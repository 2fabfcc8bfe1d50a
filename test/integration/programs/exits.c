/* Programs that end by exit() without MPI_Finalize, with a file that is closed on the way out:
 *
 *   exits FILE write HOW   each rank writes its block of FILE, which is closed as HOW says
 *   exits FILE read HOW    the same, but reads FILE, and ends with exit code 1
 *   exits check FILE...    reads and compares them all, and ends as a program should
 *
 *   early, late        in an atexit handler registered before MPI_Init, or after
 *   object             as by the destructor of a C++ object with static storage
 *   destructor         in a function that the dynamic linker calls when the program ends
 *   finalize           in an atexit handler, which then calls MPI_Finalize
 *   one                as late, but only rank 0 calls exit(); the file was synced, and is not
 * closed
 *
 * Rank 0 prints "closed CLASS" when the file is closed.
 */
#include <unistd.h>

#include "check.h"

enum { kBlock = 300000 };

static MPI_File file;
static int open_here; /* there is a file to be closed */

static void close_it(void) {
  if (!open_here) return;
  open_here = 0;
  const int code = MPI_File_close(&file);
  char line[40];
  /* Streams may be closed by now. */
  const int length = snprintf(line, sizeof line, "closed %d\n", error_class(code));
  if (rank == 0 && write(STDOUT_FILENO, line, (size_t)length) != length) abort();
}

static void close_and_finalize(void) {
  close_it();
  MPI_Finalize();
}

static const char* how = "";

static void close_as_object(void* unused) {
  (void)unused;
  if (strcmp(how, "object") == 0) close_it();
}

extern void* __dso_handle;
int __cxa_atexit(void (*function)(void*), void* argument, void* library);

__attribute__((constructor)) static void construct(void) {
  __cxa_atexit(close_as_object, NULL, &__dso_handle);
}

__attribute__((destructor)) static void destruct(void) {
  if (strcmp(how, "destructor") == 0) close_it();
}

static void check_files(int count, char** names) {
  for (int i = 0; i < count; ++i) {
    MPI_File read = open_all(names[i], MPI_MODE_RDONLY);
    CHECK_INT(size_of(read), (MPI_Offset)ranks * kBlock);
    for (int r = 0; r < ranks; ++r) {
      CHECK_WRITER(read, (MPI_Offset)r * kBlock, (uint64_t)r + 1, kBlock);
    }
    close_file(&read);
  }
}

int main(int argc, char** argv) {
  CHECK(argc >= 3);
  const int is_check = strcmp(argv[1], "check") == 0;
  if (!is_check) how = argv[3];
  if (strcmp(how, "early") == 0) atexit(close_it);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  running = how;
  if (is_check) {
    check_files(argc - 2, argv + 2);
    MPI_Finalize();
    return 0;
  }
  if (strcmp(how, "late") == 0) atexit(close_it);
  if (strcmp(how, "finalize") == 0) atexit(close_and_finalize);
  const int is_read = strcmp(argv[2], "read") == 0;
  const MPI_Offset at = (MPI_Offset)rank * kBlock;
  file = open_all(argv[1], is_read ? MPI_MODE_RDONLY : kCreate);
  open_here = strcmp(how, "one") != 0;
  if (is_read) {
    CHECK_WRITER(file, at, (uint64_t)rank + 1, kBlock);
    exit(1);
  }
  write_all_as(file, at, (uint64_t)rank + 1, kBlock - 1);
  write_as(file, at + kBlock - 1, (uint64_t)rank + 1, 1);
  if (open_here) exit(0);
  MPI(MPI_File_sync(file));
  if (rank == 0) exit(1);
  barrier(); /* for which rank 0 does not come */
  return 0;
}
