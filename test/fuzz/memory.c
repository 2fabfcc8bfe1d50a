#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"

/* ---- Content ----------------------------------------------------------------------------------
 */

static void fill_random(unsigned char* data, long long bytes, struct random r) {
  for (long long i = 0; i < bytes; i += 8) {
    const uint64_t word = next_random(&r);
    memcpy(data + i, &word, (size_t)(bytes - i < 8 ? bytes - i : 8));
  }
}

/* Blocks from a small stock that is the same in all sequences: much to deduplicate. */
static void fill_repeated(unsigned char* data, long long bytes, struct random r) {
  enum { kPart = 512, kStock = 5 };
  for (long long i = 0; i < bytes; i += kPart) {
    fill_random(data + i, bytes - i < kPart ? bytes - i : kPart,
                random_from(77, (uint64_t)pick(&r, kStock)));
  }
}

static void fill(unsigned char* data, long long bytes, const struct op* op, uint64_t salt,
                 int of_rank) {
  const struct random own = random_from(op->seed + salt, 7000 + (uint64_t)of_rank);
  switch (op->content) {
    case kSameOnAll:
      fill_random(data, bytes, random_from(op->seed + salt, 6));
      break;
    case kZeros:
      memset(data, 0, (size_t)bytes);
      break;
    case kRepeated:
      fill_repeated(data, bytes, own);
      break;
    case kHalfZeros:
      memset(data, 0, (size_t)bytes);
      fill_random(data + bytes / 4, bytes / 2, own);
      break;
    default:
      fill_random(data, bytes, own);
      break;
  }
}

/* ---- Buffers ----------------------------------------------------------------------------------
 */

static void pack(const struct memory* m, const unsigned char* buffer, unsigned char* data) {
  int position = 0;
  if (m->bytes == 0) return;
  MPI(MPI_Pack(buffer, m->count, m->type, data, (int)m->bytes, &position, MPI_COMM_SELF));
}

static void unpack(const struct memory* m, const unsigned char* data, unsigned char* buffer) {
  int position = 0;
  if (m->bytes == 0) return;
  MPI(MPI_Unpack(data, (int)m->bytes, &position, buffer, m->count, m->type, MPI_COMM_SELF));
}

struct memory make_memory(const struct op* op, uint64_t salt, int of_rank, long long most_bytes,
                          long long unit, int write, int plain) {
  struct memory m = {.type = MPI_DATATYPE_NULL};
  struct random r = random_from(op->seed + salt, 8000 + (uint64_t)of_rank);
  const MPI_Datatype bytes_of_unit[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
  MPI_Datatype basic = draw_basic(&r);
  if (!one_in(&r, 4)) { /* mostly one that fits the view's etype */
    basic = bytes_of_unit[unit == 8 ? 3 : unit == 4 ? 2 : unit == 2 ? 1 : 0];
  }
  if (plain || most_bytes > 100000 || one_in(&r, 3)) {
    MPI(MPI_Type_contiguous(1, basic, &m.type));
    MPI(MPI_Type_commit(&m.type));
  } else {
    m.type = draw_memory_type(&r, basic);
  }
  const long long size = size_of_type(m.type);
  m.count = (int)(most_bytes / size);
  while (m.count * size % unit != 0) --m.count;
  m.bytes = m.count * size;
  m.span =
      m.count == 0 ? 0 : (size_t)((m.count - 1) * extent_of_type(m.type) + end_of_type(m.type));
  m.before = allocate(m.span);
  m.buffer = allocate(m.span);
  fill_random(m.before, (long long)m.span, r);
  if (write && m.count > 0) {
    unsigned char* data = allocate((size_t)m.bytes);
    fill(data, m.bytes, op, salt, of_rank);
    unpack(&m, data, m.before);
    free(data);
  }
  reset(&m);
  return m;
}

void set_count(struct memory* m, int count) {
  m->bytes = m->count == 0 ? 0 : m->bytes / m->count * count;
  m->count = count;
}

void reset(struct memory* m) {
  memcpy(m->buffer, m->before, m->span);
}

unsigned char* data_of(const struct memory* m, int driver) {
  unsigned char* data = allocate((size_t)m->bytes);
  unsigned char* expected = allocate(m->span);
  memcpy(expected, m->before, m->span);
  pack(m, m->buffer, data);
  unpack(m, data, expected);
  if (memcmp(expected, m->buffer, m->span) != 0) {
    DIFFERS("%s wrote into a gap of the buffer", driver_name[driver]);
  }
  free(expected);
  return data;
}

void free_memory(struct memory* m) {
  MPI(MPI_Type_free(&m->type));
  free(m->before);
  free(m->buffer);
}
