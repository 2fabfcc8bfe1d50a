/* What the C programs of the integration tests share. Each is a list of cases:
 *
 *   program FILE [CASE...]
 *
 * runs these cases, or all but those named more_..., which take long, each on a file of its own
 * whose name begins with FILE. FILE carries the prefix of the driver to test: with `ufs:` a program
 * tests ROMIO's own driver, and passes on it.
 */
#pragma once

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;           /* in MPI_COMM_WORLD */
static const char* running = "?"; /* the case */

#define FAIL(...)                                                                             \
  do {                                                                                        \
    char text_[1500];                                                                         \
    snprintf(text_, sizeof text_, __VA_ARGS__);                                               \
    fprintf(stderr, "%s:%d: case %s, rank %d of %d: %s\n", __FILE__, __LINE__, running, rank, \
            ranks, text_);                                                                    \
    fflush(stderr);                                                                           \
    MPI_Abort(MPI_COMM_WORLD, 1);                                                             \
    abort();                                                                                  \
  } while (0)

#define CHECK(condition)                              \
  do {                                                \
    if (!(condition)) FAIL("not so: %s", #condition); \
  } while (0)

#define CHECK_INT(what, expected)                                                  \
  do {                                                                             \
    const long long what_ = (long long)(what), expected_ = (long long)(expected);  \
    if (what_ != expected_) FAIL("%s is %lld, not %lld", #what, what_, expected_); \
  } while (0)

/* An MPI call that must succeed. */
#define MPI(call)                                                       \
  do {                                                                  \
    const int code_ = (call);                                           \
    if (code_ != MPI_SUCCESS) FAIL("%s: %s", #call, error_text(code_)); \
  } while (0)

/* An MPI call that must fail with an error of this class. */
#define MPI_FAILS(call, expected)                                                       \
  do {                                                                                  \
    const int code_ = (call);                                                           \
    if (code_ == MPI_SUCCESS) FAIL("%s: succeeds, should be %s", #call, #expected);     \
    if (error_class(code_) != (expected)) {                                             \
      FAIL("%s: class %d, should be %s (%d): %s", #call, error_class(code_), #expected, \
           (expected), error_text(code_));                                              \
    }                                                                                   \
  } while (0)

static inline const char* error_text(int code) {
  static char text[MPI_MAX_ERROR_STRING + 1];
  int length;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "?");
  return text;
}

static inline int error_class(int code) {
  int result = -1;
  MPI_Error_class(code, &result);
  return result;
}

static inline void barrier(void) {
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* For the few things that ROMIO's own driver gets wrong. */
static inline int is_dedup(const char* name) {
  return strncmp(name, "dedup:", 6) == 0;
}

static inline void* allocate(size_t bytes) {
  void* memory = calloc(1, bytes + 1);
  CHECK(memory != NULL);
  return memory;
}

/* ---- Content ----------------------------------------------------------------------------------
 */

/* The byte that writer `seed` puts at `offset`: reproducible, never 0, with no repetition that a
 * shifted or swapped block could hide in. */
static inline unsigned char byte_at(uint64_t seed, MPI_Offset offset) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + (uint64_t)offset + 0x2545f4914f6cdd1du;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return (unsigned char)(x % 255 + 1);
}

static inline void fill(unsigned char* data, uint64_t seed, MPI_Offset offset, MPI_Offset bytes) {
  for (MPI_Offset i = 0; i < bytes; ++i) data[i] = byte_at(seed, offset + i);
}

/* Compares `bytes` bytes that were read from file offset `offset` on. */
static inline void compare(const unsigned char* found, const unsigned char* expected,
                           MPI_Offset offset, MPI_Offset bytes, int line) {
  for (MPI_Offset i = 0; i < bytes; ++i) {
    if (found[i] == expected[i]) continue;
    MPI_Offset wrong = 1;
    for (MPI_Offset j = i + 1; j < bytes; ++j) wrong += found[j] != expected[j];
    FAIL("line %d: byte %lld is %d, not %d; %lld of %lld bytes from %lld on are wrong", line,
         (long long)(offset + i), found[i], expected[i], (long long)wrong, (long long)bytes,
         (long long)offset);
  }
}

static inline int count_of(MPI_Status* status, MPI_Datatype type) {
  int count;
  MPI(MPI_Get_count(status, type, &count));
  return count;
}

static inline MPI_Offset size_of(MPI_File file) {
  MPI_Offset size;
  MPI(MPI_File_get_size(file, &size));
  return size;
}

/* Reads `bytes` bytes from `offset` on (all must be there) and compares them. Independent. */
#define CHECK_BYTES(file, offset, expected, bytes) \
  check_bytes(file, offset, expected, bytes, __LINE__)
static inline void check_bytes(MPI_File file, MPI_Offset offset, const unsigned char* expected,
                               MPI_Offset bytes, int line) {
  unsigned char* found = allocate((size_t)bytes);
  memset(found, 0xee, (size_t)bytes);
  MPI_Status status;
  MPI(MPI_File_read_at(file, offset, found, (int)bytes, MPI_BYTE, &status));
  if (count_of(&status, MPI_BYTE) != bytes) {
    FAIL("line %d: %d of %lld bytes read at %lld", line, count_of(&status, MPI_BYTE),
         (long long)bytes, (long long)offset);
  }
  compare(found, expected, offset, bytes, line);
  free(found);
}

/* The same for what writer `seed` put there. */
#define CHECK_WRITER(file, offset, seed, bytes) check_writer(file, offset, seed, bytes, __LINE__)
static inline void check_writer(MPI_File file, MPI_Offset offset, uint64_t seed, MPI_Offset bytes,
                                int line) {
  unsigned char* expected = allocate((size_t)bytes);
  fill(expected, seed, offset, bytes);
  check_bytes(file, offset, expected, bytes, line);
  free(expected);
}

static inline void write_as(MPI_File file, MPI_Offset offset, uint64_t seed, MPI_Offset bytes) {
  unsigned char* data = allocate((size_t)bytes);
  fill(data, seed, offset, bytes);
  MPI_Status status;
  MPI(MPI_File_write_at(file, offset, data, (int)bytes, MPI_BYTE, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), bytes);
  free(data);
}

static inline void write_all_as(MPI_File file, MPI_Offset offset, uint64_t seed, MPI_Offset bytes) {
  unsigned char* data = allocate((size_t)bytes);
  fill(data, seed, offset, bytes);
  MPI_Status status;
  MPI(MPI_File_write_at_all(file, offset, data, (int)bytes, MPI_BYTE, &status));
  CHECK_INT(count_of(&status, MPI_BYTE), bytes);
  free(data);
}

#define CHECK_ZEROS(file, offset, bytes) check_zeros(file, offset, bytes, __LINE__)
static inline void check_zeros(MPI_File file, MPI_Offset offset, MPI_Offset bytes, int line) {
  unsigned char* expected = allocate((size_t)bytes);
  memset(expected, 0, (size_t)bytes);
  check_bytes(file, offset, expected, bytes, line);
  free(expected);
}

/* ---- Opening ----------------------------------------------------------------------------------
 */

enum { kCreate = MPI_MODE_CREATE | MPI_MODE_RDWR };

static inline MPI_File open_on(MPI_Comm comm, const char* name, int mode) {
  MPI_File file;
  MPI(MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file));
  return file;
}

static inline MPI_File open_all(const char* name, int mode) {
  return open_on(MPI_COMM_WORLD, name, mode);
}

static inline void close_file(MPI_File* file) {
  MPI(MPI_File_close(file));
}

/* ---- Cases ------------------------------------------------------------------------------------
 */

struct check_case {
  const char* name;
  void (*run)(const char* file);
};

/* A row of the table of cases; the tests find the names by this macro. */
#define CASE(function) \
  { #function, function }

static inline int run_cases(int argc, char** argv, const struct check_case* cases, size_t count) {
  int provided, wanted = getenv("CHECK_THREADS") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(argc >= 2 && provided >= wanted);
  size_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    int wanted = argc == 2 && strncmp(cases[i].name, "more_", 5) != 0;
    for (int a = 2; a < argc; ++a) wanted |= strcmp(argv[a], cases[i].name) == 0;
    if (!wanted) continue;
    char file[4096];
    snprintf(file, sizeof file, "%s.%s", argv[1], cases[i].name);
    running = cases[i].name;
    cases[i].run(file);
    barrier();
    ++done;
  }
  CHECK(argc == 2 || done == (size_t)argc - 2);
  if (rank == 0) printf("%zu cases passed\n", done);
  MPI_Finalize();
  return 0;
}

#define RUN_CASES(argc, argv, cases) run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases)[0])
