/* The program's side of an access: buffers with gaps, what is written from them, and whether a read
 * left the gaps alone.
 */
#pragma once

#include <mpi.h>

#include "plan.h"

struct memory {
  MPI_Datatype type;
  int count;
  long long bytes;       /* of data */
  size_t span;           /* with gaps */
  unsigned char* before; /* what the buffer begins with */
  unsigned char* buffer;
};

/* As many elements as `most_bytes` has room for, together a multiple of `unit`. `of_rank` chooses
 * the type, which is a `plain` one without gaps or any, and what is written. */
struct memory make_memory(const struct op* op, uint64_t salt, int of_rank, long long most_bytes,
                          long long unit, int write, int plain);
void set_count(struct memory* memory, int count);

/* Puts the buffer back to how it began. */
void reset(struct memory* memory);

/* A copy of the buffer's data without gaps, which must be as they were. */
unsigned char* data_of(const struct memory* memory, int driver);
void free_memory(struct memory* memory);
