/* Datatypes in memory and in views. Where a datatype's bytes are is found out with MPI_Pack, which
 * knows nothing of files, and what a file must hold is kept in a model of it that every rank has.
 */
#include <stddef.h>

#include "check.h"

enum { kModel = 1000000 };

/* ---- A datatype's bytes -----------------------------------------------------------------------
 */

struct flat {
  MPI_Offset size, extent; /* in bytes */
  MPI_Offset* at;          /* data byte i is at byte at[i] */
};

static struct flat flatten(MPI_Datatype type) {
  MPI_Aint lb, extent, true_lb, true_extent;
  int size;
  MPI(MPI_Type_size(type, &size));
  MPI(MPI_Type_get_extent(type, &lb, &extent));
  MPI(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
  CHECK(true_lb >= 0);
  struct flat flat = {size, extent, allocate(sizeof(MPI_Offset) * (size_t)size)};
  /* The bytes of each byte's own place, packed one after the other. */
  const size_t span = (size_t)(true_lb + true_extent);
  unsigned char* places = allocate(span);
  unsigned char* packed = allocate((size_t)size);
  for (int shift = 0; shift < 24; shift += 8) {
    for (size_t i = 0; i < span; ++i) places[i] = (unsigned char)(i >> shift);
    int position = 0;
    MPI(MPI_Pack(places, 1, type, packed, size, &position, MPI_COMM_WORLD));
    CHECK_INT(position, size);
    for (int i = 0; i < size; ++i) flat.at[i] |= (MPI_Offset)packed[i] << shift;
  }
  free(places);
  free(packed);
  return flat;
}

static MPI_Offset place(const struct flat* flat, MPI_Offset byte) {
  return byte / flat->size * flat->extent + flat->at[byte % flat->size];
}

/* ---- Types ------------------------------------------------------------------------------------
 */

static uint64_t random_state;

/* From 0 to n - 1. */
static int pick(int n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int)((random_state >> 33) % (uint64_t)n);
}

static MPI_Datatype basic_type(void) {
  static const MPI_Datatype types[] = {MPI_BYTE,  MPI_SHORT,  MPI_INT,
                                       MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T};
  return types[pick(6)];
}

/* A random type whose bytes have increasing places from 0 on, of `etype`s. */
static MPI_Datatype random_type(MPI_Datatype etype, int depth) {
  MPI_Datatype inner = etype, type = MPI_DATATYPE_NULL;
  const int free_inner = depth > 0;
  if (free_inner) inner = random_type(etype, depth - 1);
  int lengths[4], places[4];
  MPI_Aint far[4], lb, extent;
  MPI_Datatype types[4];
  MPI(MPI_Type_get_extent(inner, &lb, &extent));
  const int blocks = 1 + pick(4);
  int at = pick(3);
  for (int i = 0; i < blocks; ++i) {
    lengths[i] = 1 + pick(3);
    places[i] = at;
    far[i] = (MPI_Aint)at * extent;
    types[i] = inner;
    at += lengths[i] + pick(3);
  }
  switch (pick(6)) {
    case 0:
      MPI(MPI_Type_vector(blocks, lengths[0], lengths[0] + pick(4), inner, &type));
      break;
    case 1:
      MPI(MPI_Type_indexed(blocks, lengths, places, inner, &type));
      break;
    case 2:
      MPI(MPI_Type_create_hindexed(blocks, lengths, far, inner, &type));
      break;
    case 3:
      MPI(MPI_Type_create_struct(blocks, lengths, far, types, &type));
      break;
    case 4: {
      const int whole[2] = {2 + pick(3), 2 + pick(3)};
      const int part[2] = {1 + pick(2), 1 + pick(2)};
      const int start[2] = {pick(whole[0] - part[0] + 1), pick(whole[1] - part[1] + 1)};
      MPI(MPI_Type_create_subarray(2, whole, part, start, pick(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                                   inner, &type));
      break;
    }
    default:
      MPI(MPI_Type_create_indexed_block(1, lengths[0], places, inner, &type));
      break;
  }
  if (free_inner) MPI_Type_free(&inner);
  return type;
}

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
  MPI_Datatype result;
  MPI(MPI_Type_create_resized(type, 0, extent, &result));
  MPI(MPI_Type_commit(&result));
  MPI_Type_free(&type);
  return result;
}

/* A random type repeated with room for no more and no less than its bytes, or with a gap. */
static MPI_Datatype random_memory_type(void) {
  MPI_Datatype type = random_type(basic_type(), pick(3));
  MPI_Aint lb, extent;
  MPI(MPI_Type_get_true_extent(type, &lb, &extent));
  return resized(type, (lb + extent + 7) / 8 * 8 + 8 * pick(3));
}

/* ---- The model of a file ----------------------------------------------------------------------
 */

static unsigned char* model;
static MPI_Offset model_size;

static void new_model(void) {
  free(model);
  model = allocate(kModel);
  model_size = 0;
}

static void check_model(MPI_File file) {
  CHECK_INT(size_of(file), model_size);
  CHECK_BYTES(file, 0, model, model_size);
}

static void check_model_in(const char* name) {
  MPI_File file = open_all(name, MPI_MODE_RDONLY);
  check_model(file);
  close_file(&file);
}

/* What all ranks know about one rank's accesses. */
struct pattern {
  MPI_Offset disp, start, bytes; /* `start` and `bytes` count data bytes of the view */
  struct flat view;
  uint64_t seed;
};

/* All ranks' views, so that each can keep the model: places are exchanged, not recomputed. */
static void to_model(const struct pattern* mine) {
  for (int r = 0; r < ranks; ++r) {
    MPI_Offset bytes = mine->bytes;
    MPI(MPI_Bcast(&bytes, 1, MPI_OFFSET, r, MPI_COMM_WORLD));
    MPI_Offset* places = allocate(sizeof(MPI_Offset) * (size_t)bytes);
    unsigned char* data = allocate((size_t)bytes);
    if (r == rank) {
      for (MPI_Offset i = 0; i < bytes; ++i) {
        places[i] = mine->disp + place(&mine->view, mine->start + i);
      }
      fill(data, mine->seed, mine->start, bytes);
    }
    MPI(MPI_Bcast(places, (int)bytes, MPI_OFFSET, r, MPI_COMM_WORLD));
    MPI(MPI_Bcast(data, (int)bytes, MPI_BYTE, r, MPI_COMM_WORLD));
    for (MPI_Offset i = 0; i < bytes; ++i) {
      CHECK(places[i] < kModel);
      model[places[i]] = data[i];
      if (places[i] >= model_size) model_size = places[i] + 1;
    }
    free(places);
    free(data);
  }
}

/* ---- Transfers --------------------------------------------------------------------------------
 */

enum how { kAt, kAtAll, kPointer, kPointerAll, kHows };

/* Writes data bytes [start, start + count * memory's size) of the view, from memory of that type.
 */
static void write_typed(MPI_File file, const struct pattern* p, MPI_Datatype etype, int count,
                        MPI_Datatype memory, enum how how) {
  struct flat flat = flatten(memory);
  unsigned char* buffer = allocate((size_t)((count + 1) * flat.extent) + 64);
  memset(buffer, 0xdd, (size_t)((count + 1) * flat.extent) + 64);
  for (MPI_Offset i = 0; i < p->bytes; ++i) {
    buffer[place(&flat, i)] = byte_at(p->seed, p->start + i);
  }
  int etype_size;
  MPI_Status status;
  MPI(MPI_Type_size(etype, &etype_size));
  const MPI_Offset at = p->start / etype_size;
  if (how == kPointer || how == kPointerAll) MPI(MPI_File_seek(file, at, MPI_SEEK_SET));
  if (how == kAt) MPI(MPI_File_write_at(file, at, buffer, count, memory, &status));
  if (how == kAtAll) MPI(MPI_File_write_at_all(file, at, buffer, count, memory, &status));
  if (how == kPointer) MPI(MPI_File_write(file, buffer, count, memory, &status));
  if (how == kPointerAll) MPI(MPI_File_write_all(file, buffer, count, memory, &status));
  CHECK_INT(count_of(&status, memory), count);
  if (how == kPointer || how == kPointerAll) {
    MPI_Offset position;
    MPI(MPI_File_get_position(file, &position));
    CHECK_INT(position, (p->start + p->bytes) / etype_size);
  }
  free(buffer);
  free(flat.at);
}

/* Reads the same back and compares, also that nothing between the pieces was touched. */
static void read_typed(MPI_File file, const struct pattern* p, MPI_Datatype etype, int count,
                       MPI_Datatype memory, enum how how) {
  struct flat flat = flatten(memory);
  const size_t size = (size_t)((count + 1) * flat.extent) + 64;
  unsigned char* buffer = allocate(size);
  unsigned char* expected = allocate(size);
  memset(buffer, 0xdd, size);
  memset(expected, 0xdd, size);
  for (MPI_Offset i = 0; i < p->bytes; ++i) {
    expected[place(&flat, i)] = byte_at(p->seed, p->start + i);
  }
  int etype_size;
  MPI_Status status;
  MPI(MPI_Type_size(etype, &etype_size));
  const MPI_Offset at = p->start / etype_size;
  if (how == kPointer || how == kPointerAll) MPI(MPI_File_seek(file, at, MPI_SEEK_SET));
  if (how == kAt) MPI(MPI_File_read_at(file, at, buffer, count, memory, &status));
  if (how == kAtAll) MPI(MPI_File_read_at_all(file, at, buffer, count, memory, &status));
  if (how == kPointer) MPI(MPI_File_read(file, buffer, count, memory, &status));
  if (how == kPointerAll) MPI(MPI_File_read_all(file, buffer, count, memory, &status));
  CHECK_INT(count_of(&status, memory), count);
  compare(buffer, expected, 0, (MPI_Offset)size, __LINE__);
  free(buffer);
  free(expected);
  free(flat.at);
}

/* Sets the view, writes `count` of `memory` from data byte `start` on, checks the file by other
 * means, and reads back; then again from the committed file. */
static void round_trip(const char* name, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                       MPI_Offset start, int count, MPI_Datatype memory, enum how writing,
                       enum how reading) {
  int memory_size;
  MPI(MPI_Type_size(memory, &memory_size));
  struct pattern p = {disp, start, (MPI_Offset)count * memory_size, flatten(filetype),
                      (uint64_t)rank + 10};
  new_model();
  to_model(&p);
  MPI_File file = open_all(name, kCreate);
  /* ROMIO's data sieving leaves garbage in holes beyond the file's end. */
  if (!is_dedup(name)) MPI(MPI_File_set_size(file, model_size));
  MPI(MPI_File_set_view(file, disp, etype, filetype, "native", MPI_INFO_NULL));
  write_typed(file, &p, etype, count, memory, writing);
  barrier();
  read_typed(file, &p, etype, count, memory, reading);
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  check_model(file);
  close_file(&file);
  check_model_in(name);
  file = open_all(name, MPI_MODE_RDONLY);
  MPI(MPI_File_set_view(file, disp, etype, filetype, "native", MPI_INFO_NULL));
  read_typed(file, &p, etype, count, memory, reading);
  close_file(&file);
  barrier();
  if (rank == 0) MPI(MPI_File_delete(name, MPI_INFO_NULL));
  barrier();
  free(p.view.at);
}

/* ---- Cases ------------------------------------------------------------------------------------
 */

static void vector(const char* name) {
  /* Every rank has each `ranks`-th block of 3 ints. */
  for (enum how how = 0; how < kHows; ++how) {
    MPI_Datatype type;
    MPI(MPI_Type_vector(5, 3, 3 * ranks, MPI_INT, &type));
    type = resized(type, 5 * 3 * ranks * 4);
    round_trip(name, 20 + rank * 12, MPI_INT, type, 8, 300, MPI_INT, how, kHows - 1 - how);
    MPI_Type_free(&type);
  }
}

static void every_nth_double(const char* name) {
  MPI_Datatype type;
  MPI(MPI_Type_vector(1000, 1, ranks, MPI_DOUBLE, &type));
  MPI(MPI_Type_commit(&type));
  round_trip(name, rank * 8, MPI_DOUBLE, type, 0, 1000, MPI_DOUBLE, kAtAll, kPointerAll);
  round_trip(name, rank * 8, MPI_DOUBLE, type, 0, 1000, MPI_DOUBLE, kAt, kAt);
  MPI_Type_free(&type);
}

static void indexed(const char* name) {
  int lengths[] = {3, 1, 0, 17, 2}, places[] = {0, 5, 9, 10, 40};
  MPI_Datatype type;
  MPI(MPI_Type_indexed(5, lengths, places, MPI_SHORT, &type));
  type = resized(type, 100 * ranks);
  round_trip(name, 1 + rank * 100, MPI_SHORT, type, 4, 460, MPI_SHORT, kAtAll, kAt);
  MPI_Type_free(&type);
}

static void structure(const char* name) {
  /* The same record in memory and in the file, padding and all. */
  struct record {
    char tag;
    double value;
    short parts[3];
  };
  int lengths[] = {1, 1, 3};
  MPI_Aint places[] = {offsetof(struct record, tag), offsetof(struct record, value),
                       offsetof(struct record, parts)};
  MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, type, filetype;
  MPI(MPI_Type_create_struct(3, lengths, places, types, &type));
  type = resized(type, sizeof(struct record));
  MPI(MPI_Type_create_resized(type, 0, (MPI_Aint)sizeof(struct record) * ranks, &filetype));
  MPI(MPI_Type_commit(&filetype));
  const MPI_Offset disp = 3 + rank * (MPI_Offset)sizeof(struct record);
  for (enum how how = 0; how < kHows; ++how) {
    round_trip(name, disp, type, filetype, 15 * 7, 500, type, how, how);
  }
  MPI_Type_free(&filetype);
  MPI_Type_free(&type);
}

static void subarray(const char* name) {
  /* A 3-D array in slabs of the middle dimension, with a halo of one cell in memory. */
  const int whole[3] = {7, 4 * ranks, 11}, part[3] = {7, 4, 11}, start[3] = {0, 4 * rank, 0};
  const int in_memory[3] = {9, 6, 13}, from[3] = {1, 1, 1};
  MPI_Datatype filetype, memory;
  MPI(MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &filetype));
  MPI(MPI_Type_commit(&filetype));
  MPI(MPI_Type_create_subarray(3, in_memory, part, from, MPI_ORDER_C, MPI_DOUBLE, &memory));
  MPI(MPI_Type_commit(&memory));
  for (enum how how = 0; how < kHows; ++how) {
    round_trip(name, 100, MPI_DOUBLE, filetype, 0, 2, memory, how, kAtAll);
  }
  MPI_Type_free(&filetype);
  MPI_Type_free(&memory);
}

static void darray(const char* name) {
  int grid[2] = {0, 0};
  MPI(MPI_Dims_create(ranks, 2, grid));
  const int whole[2] = {37, 53}; /* not divisible */
  const int kinds[3][2] = {{MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
                           {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC},
                           {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}};
  const int sizes[3][2] = {
      {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, {3, 5}, {2, MPI_DISTRIBUTE_DFLT_DARG}};
  for (int i = 0; i < 3; ++i) {
    MPI_Datatype type;
    int size;
    MPI(MPI_Type_create_darray(ranks, rank, 2, whole, kinds[i], sizes[i], grid, MPI_ORDER_C,
                               MPI_INT, &type));
    MPI(MPI_Type_commit(&type));
    MPI(MPI_Type_size(type, &size));
    round_trip(name, 40, MPI_INT, type, 0, size / 4, MPI_INT, kAtAll, kAtAll);
    round_trip(name, 40, MPI_INT, type, 0, size / 4, MPI_INT, kAt, kPointer);
    MPI_Type_free(&type);
  }
}

static void scattered_memory(const char* name) {
  /* Memory goes backwards, the file forwards. */
  int lengths[] = {2, 3, 1}, places[] = {20, 10, 0};
  MPI_Datatype memory;
  MPI(MPI_Type_indexed(3, lengths, places, MPI_INT, &memory));
  memory = resized(memory, 100);
  for (enum how how = 0; how < kHows; ++how) {
    round_trip(name, rank * 6 * 4 * 50, MPI_BYTE, MPI_BYTE, 0, 50, memory, how, how);
  }
  MPI_Type_free(&memory);
}

static void pair_types(const char* name) {
  /* Predefined types with holes in memory. ROMIO's own driver aborts on them. */
  if (!is_dedup(name)) return;
  static const MPI_Datatype types[] = {MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT};
  for (int i = 0; i < 4; ++i) {
    int size;
    MPI(MPI_Type_size(types[i], &size));
    round_trip(name, (MPI_Offset)rank * size * 77, MPI_BYTE, MPI_BYTE, 0, 77, types[i], kAtAll,
               kAt);
  }
}

static void etype_with_holes(const char* name) {
  MPI_Datatype etype, filetype;
  MPI(MPI_Type_vector(2, 1, 2, MPI_INT, &etype)); /* 4 of 8, then 4: extent 12 */
  MPI(MPI_Type_commit(&etype));
  MPI(MPI_Type_create_resized(etype, 0, 16 * ranks, &filetype));
  MPI(MPI_Type_commit(&filetype));
  round_trip(name, rank * 16, etype, filetype, 8 * 5, 100, MPI_INT, kAtAll, kPointerAll);
  round_trip(name, rank * 16, etype, filetype, 8 * 5, 100, MPI_INT, kPointer, kAt);
  MPI_Type_free(&etype);
  MPI_Type_free(&filetype);
}

/* Each rank has its own type in its own slot of a repeated pattern. */
static void random_views_of(const char* name, int first, int rounds) {
  for (int round = first; round < first + rounds; ++round) {
    random_state = (uint64_t)round * 1000003 + 17;
    const enum how writing = pick(kHows), reading = pick(kHows);
    const MPI_Datatype etype = basic_type();
    const MPI_Offset disp = pick(5000);
    random_state += (uint64_t)rank * 7919;
    pick(2);
    MPI_Datatype type = random_type(etype, pick(3));
    MPI_Aint lb, extent, slot;
    int etype_size, size, memory_size;
    MPI(MPI_Type_get_true_extent(type, &lb, &extent));
    MPI(MPI_Type_size(etype, &etype_size));
    slot = (lb + extent + etype_size - 1) / etype_size * etype_size + etype_size * pick(3);
    long widest = slot;
    MPI(MPI_Allreduce(MPI_IN_PLACE, &widest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
    widest = (widest + 7) / 8 * 8;
    type = resized(type, widest * ranks);
    MPI_Datatype memory = random_memory_type();
    MPI(MPI_Type_size(type, &size));
    MPI(MPI_Type_size(memory, &memory_size));
    const MPI_Offset start = (MPI_Offset)pick(20) * etype_size;
    /* Within the model. */
    const MPI_Offset repetitions = (kModel - disp) / (widest * ranks) - 1;
    const MPI_Offset room = repetitions * size - start, wanted = 20000 >> pick(8);
    int count = (int)((wanted < room ? wanted : room) / memory_size);
    if (count < 0) count = 0;
    if (count > 2000) count = 2000;
    if (pick(7) == 0) count = 0;
    /* Positions and amounts are whole etypes. */
    while ((MPI_Offset)count * memory_size % etype_size != 0) --count;
    round_trip(name, disp + rank * widest, etype, type, start, count, memory, writing, reading);
    MPI_Type_free(&type);
    MPI_Type_free(&memory);
  }
}

static void random_views(const char* name) {
  random_views_of(name, 0, 8);
}
static void more_random_views(const char* name) {
  random_views_of(name, 8, 34);
}

static void get_view(const char* name) {
  MPI_Datatype filetype, etype, found;
  MPI_Offset disp, offset;
  char representation[MPI_MAX_DATAREP_STRING];
  MPI(MPI_Type_vector(3, 2, 4, MPI_INT, &filetype));
  MPI(MPI_Type_commit(&filetype));
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_get_view(file, &disp, &etype, &found, representation));
  CHECK_INT(disp, 0);
  CHECK(etype == MPI_BYTE && found == MPI_BYTE);
  CHECK(strcmp(representation, "native") == 0);
  MPI(MPI_File_set_view(file, 44, MPI_INT, filetype, "native", MPI_INFO_NULL));
  MPI(MPI_File_get_view(file, &disp, &etype, &found, representation));
  CHECK_INT(disp, 44);
  CHECK(etype == MPI_INT);
  struct flat before = flatten(filetype), after = flatten(found);
  CHECK_INT(after.size, before.size);
  CHECK_INT(after.extent, before.extent);
  CHECK(memcmp(after.at, before.at, sizeof(MPI_Offset) * (size_t)before.size) == 0);
  free(before.at);
  free(after.at);
  MPI_Type_free(&found);
  for (int i = 0; i < 20; ++i) {
    MPI(MPI_File_get_byte_offset(file, i, &offset));
    CHECK_INT(offset, 44 + 4 * (i / 6 * 10 + i % 6 / 2 * 4 + i % 2));
  }
  MPI_Aint extent;
  MPI(MPI_File_get_type_extent(file, filetype, &extent));
  CHECK_INT(extent, 40);
  MPI_Type_free(&filetype);
  close_file(&file);
}

static void shared_pointer_in_view(const char* name) {
  /* One view for all, of every second block of 4 bytes. */
  enum { kInts = 100 };
  MPI_Datatype filetype;
  MPI_Status status;
  MPI(MPI_Type_create_resized(MPI_INT, 0, 8, &filetype));
  MPI(MPI_Type_commit(&filetype));
  int data[kInts];
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_set_view(file, 12, MPI_INT, filetype, "native", MPI_INFO_NULL));
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kInts; ++i) data[i] = (round * ranks + rank) * kInts + i;
    MPI(MPI_File_write_ordered(file, data, kInts, MPI_INT, &status));
  }
  MPI_Offset position;
  barrier();
  MPI(MPI_File_get_position_shared(file, &position));
  CHECK_INT(position, 2 * ranks * kInts);
  barrier();
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  MPI(MPI_File_get_position_shared(file, &position));
  CHECK_INT(position, 0);
  for (int i = 0; i < 2 * ranks * kInts; ++i) {
    int found;
    MPI(MPI_File_read_at(file, 12 + 8 * i, &found, 1, MPI_INT, &status));
    CHECK_INT(found, i);
  }
  MPI_Type_free(&filetype);
  close_file(&file);
}

static void short_reads_in_view(const char* name) {
  /* The file ends within a view's block. */
  MPI_Datatype filetype;
  MPI_Status status;
  MPI(MPI_Type_vector(4, 2, 4, MPI_INT, &filetype));
  filetype = resized(filetype, 64);
  MPI_File file = open_all(name, kCreate);
  if (rank == 0) write_as(file, 0, 1, 64 * 3 + 20);
  barrier();
  MPI(MPI_File_set_view(file, 0, MPI_INT, filetype, "native", MPI_INFO_NULL));
  int data[100];
  for (int i = 0; i < 100; ++i) data[i] = -1;
  MPI(MPI_File_read_at(file, 0, data, 100, MPI_INT, &status));
  if (is_dedup(name)) CHECK_INT(count_of(&status, MPI_INT), 8 * 3 + 3);
  unsigned char expected[4];
  for (int i = 0; i < 27; ++i) {
    fill(expected, 1, i / 8 * 64 + i % 8 / 2 * 16 + i % 2 * 4, 4);
    CHECK(memcmp(&data[i], expected, 4) == 0);
  }
  MPI_Type_free(&filetype);
  close_file(&file);
}

static void views_differ_and_change(const char* name) {
  /* Rank r writes every ranks-th row of a table, then columns of it are overwritten. */
  enum { kRows = 23 };
  const int columns = 5 * ranks;
  const MPI_Offset size = (MPI_Offset)kRows * columns * 4;
  int* expected = allocate((size_t)size);
  MPI_Status status;
  MPI_Datatype rows, column;
  const int mine = (kRows - rank + ranks - 1) / ranks;
  MPI(MPI_Type_vector(mine > 0 ? mine : 1, columns, columns * ranks, MPI_INT, &rows));
  MPI(MPI_Type_commit(&rows));
  MPI(MPI_Type_vector(kRows, 2, columns, MPI_INT, &column));
  MPI(MPI_Type_commit(&column));
  for (int i = 0; i < kRows * columns; ++i) expected[i] = i + 1;
  int* data = allocate((size_t)size);
  for (int i = 0; i < mine; ++i) {
    memcpy(data + i * columns, expected + (i * ranks + rank) * columns, (size_t)columns * 4);
  }
  MPI_File file = open_all(name, kCreate);
  MPI(MPI_File_set_view(file, (MPI_Offset)rank * columns * 4, MPI_INT, rows, "native",
                        MPI_INFO_NULL));
  MPI(MPI_File_write_all(file, data, mine * columns, MPI_INT, &status));
  MPI(MPI_File_set_view(file, (MPI_Offset)rank * 20 + 4, MPI_INT, column, "native", MPI_INFO_NULL));
  for (int i = 0; i < kRows * 2; ++i) data[i] = -i - 1000 * rank - 1;
  MPI(MPI_File_write_all(file, data, kRows * 2, MPI_INT, &status));
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < kRows * 2; ++i) {
      expected[i / 2 * columns + r * 5 + 1 + i % 2] = -i - 1000 * r - 1;
    }
  }
  MPI(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
  CHECK_BYTES(file, 0, (unsigned char*)expected, size);
  close_file(&file);
  file = open_all(name, MPI_MODE_RDONLY);
  CHECK_BYTES(file, 0, (unsigned char*)expected, size);
  close_file(&file);
  MPI_Type_free(&rows);
  MPI_Type_free(&column);
  free(expected);
  free(data);
}

static const struct check_case kCases[] = {
    CASE(vector),
    CASE(every_nth_double),
    CASE(indexed),
    CASE(structure),
    CASE(subarray),
    CASE(darray),
    CASE(scattered_memory),
    CASE(pair_types),
    CASE(etype_with_holes),
    CASE(random_views),
    CASE(more_random_views),
    CASE(get_view),
    CASE(shared_pointer_in_view),
    CASE(short_reads_in_view),
    CASE(views_differ_and_change),
};

int main(int argc, char** argv) {
  return RUN_CASES(argc, argv, kCases);
}
