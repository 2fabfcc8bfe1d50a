/* What all parts share: who we are, and how a difference is told. */
#pragma once

#include <mpi.h>
#include <stddef.h>

struct op;

extern int rank, ranks;          /* in MPI_COMM_WORLD */
extern const struct op* running; /* NULL before the first operation and after the last */

/* The exit codes: what the shrinker looks for is a difference, not a mistake of its own. */
enum { kDiffers = 10, kBroken = 11 };

/* Says what differs and ends the job. */
void fail(int code, const char* file, int line, const char* format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

#define DIFFERS(...) fail(kDiffers, __FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) fail(kBroken, __FILE__, __LINE__, "not so: %s", #condition); \
  } while (0)

/* A call that is not under test. */
#define MPI(call)                                                            \
  do {                                                                       \
    const int code_ = (call);                                                \
    if (code_ != MPI_SUCCESS) {                                              \
      fail(kBroken, __FILE__, __LINE__, "%s: %s", #call, error_text(code_)); \
    }                                                                        \
  } while (0)

/* To test the test: whether this operation is done otherwise on this driver. */
int is_falsified(const struct op* op, int driver);

const char* error_text(int code);
int error_class(int code);
void* allocate(size_t bytes);
void barrier(void);
