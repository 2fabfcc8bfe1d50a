#include "types.h"

#include <stdlib.h>

#include "check.h"

MPI_Datatype draw_basic(struct random* r) {
  const MPI_Datatype types[] = {MPI_BYTE, MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_INT64_T};
  return types[pick(r, 6)];
}

long long size_of_type(MPI_Datatype type) {
  MPI_Count size;
  MPI(MPI_Type_size_x(type, &size));
  return size;
}

long long end_of_type(MPI_Datatype type) {
  MPI_Count lb, extent;
  MPI(MPI_Type_get_true_extent_x(type, &lb, &extent));
  return lb + extent;
}

long long extent_of_type(MPI_Datatype type) {
  MPI_Count lb, extent;
  MPI(MPI_Type_get_extent_x(type, &lb, &extent));
  return extent;
}

MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent) {
  MPI_Datatype result;
  MPI(MPI_Type_create_resized(type, 0, extent, &result));
  MPI(MPI_Type_commit(&result));
  MPI(MPI_Type_free(&type));
  return result;
}

/* Blocks of 1 to 5 elements with gaps of 0 to 4, and how far one must look for the next element. */
enum { kMostBlocks = 4 };
struct blocks {
  int count, lengths[kMostBlocks], at[kMostBlocks];
  MPI_Aint bytes_at[kMostBlocks];
  MPI_Datatype types[kMostBlocks];
};

static struct blocks draw_blocks(struct random* r, MPI_Datatype inner) {
  struct blocks b = {.count = 1 + (int)pick(r, kMostBlocks)};
  const MPI_Aint extent = (MPI_Aint)extent_of_type(inner);
  int at = (int)pick(r, 3);
  for (int i = 0; i < b.count; ++i) {
    b.lengths[i] = 1 + (int)pick(r, 5);
    b.at[i] = at;
    b.bytes_at[i] = at * extent;
    b.types[i] = inner;
    at += b.lengths[i] + (int)pick(r, 5);
  }
  return b;
}

static void swap_blocks(struct blocks* b, int i, int j) {
  const struct blocks old = *b;
  b->lengths[i] = old.lengths[j];
  b->lengths[j] = old.lengths[i];
  b->at[i] = old.at[j];
  b->at[j] = old.at[i];
  b->bytes_at[i] = old.bytes_at[j];
  b->bytes_at[j] = old.bytes_at[i];
}

static MPI_Datatype draw_subarray(struct random* r, MPI_Datatype inner) {
  int whole[3], part[3], start[3];
  const int dimensions = 1 + (int)pick(r, 3);
  for (int i = 0; i < dimensions; ++i) {
    whole[i] = 1 + (int)pick(r, 5);
    part[i] = 1 + (int)pick(r, whole[i]);
    start[i] = (int)pick(r, whole[i] - part[i] + 1);
  }
  MPI_Datatype type;
  MPI(MPI_Type_create_subarray(dimensions, whole, part, start,
                               one_in(r, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, inner, &type));
  return type;
}

MPI_Datatype draw_type(struct random* r, MPI_Datatype basic, int depth) {
  MPI_Datatype inner = depth > 0 ? draw_type(r, basic, depth - 1) : basic, type;
  const struct blocks b = draw_blocks(r, inner);
  switch (pick(r, 8)) {
    case 0:
      MPI(MPI_Type_contiguous(b.lengths[0], inner, &type));
      break;
    case 1:
      MPI(MPI_Type_vector(b.count, b.lengths[0], b.lengths[0] + (int)pick(r, 5), inner, &type));
      break;
    case 2:
      MPI(MPI_Type_indexed(b.count, b.lengths, b.at, inner, &type));
      break;
    case 3:
      MPI(MPI_Type_create_hindexed(b.count, b.lengths, b.bytes_at, inner, &type));
      break;
    case 4:
      MPI(MPI_Type_create_struct(b.count, b.lengths, b.bytes_at, b.types, &type));
      break;
    case 5:
      type = draw_subarray(r, inner);
      break;
    case 6: {
      const MPI_Aint extent = (MPI_Aint)extent_of_type(inner);
      MPI(MPI_Type_create_resized(inner, 0, extent * (1 + (MPI_Aint)pick(r, 4)), &type));
      break;
    }
    default:
      MPI(MPI_Type_create_indexed_block(1, b.lengths[0], b.at, inner, &type));
      break;
  }
  if (depth > 0) MPI(MPI_Type_free(&inner));
  return type;
}

MPI_Datatype draw_memory_type(struct random* r, MPI_Datatype basic) {
  MPI_Datatype type;
  if (one_in(r, 3)) {
    MPI(MPI_Type_contiguous(1 + (int)pick(r, 4), basic, &type));
  } else if (one_in(r, 5)) {
    struct blocks b = draw_blocks(r, basic);
    for (int i = 0; i < b.count; ++i) swap_blocks(&b, i, (int)pick(r, b.count));
    MPI(MPI_Type_create_hindexed(b.count, b.lengths, b.bytes_at, basic, &type));
  } else {
    type = draw_type(r, basic, (int)pick(r, 3));
  }
  const MPI_Aint unit = (MPI_Aint)size_of_type(basic);
  const MPI_Aint gap = one_in(r, 2) ? 0 : unit * (MPI_Aint)pick(r, 4);
  return resized(type, (MPI_Aint)end_of_type(type) + gap);
}

struct places find_places(long long disp, MPI_Datatype filetype) {
  struct places view = {
      .disp = disp, .size = size_of_type(filetype), .extent = extent_of_type(filetype)};
  const size_t size = (size_t)view.size, span = (size_t)end_of_type(filetype);
  view.at = allocate(sizeof *view.at * size);
  unsigned char *bytes = allocate(span), *packed = allocate(size);
  for (int shift = 0; shift < 24; shift += 8) {
    int position = 0;
    for (size_t i = 0; i < span; ++i) bytes[i] = (unsigned char)(i >> shift);
    MPI(MPI_Pack(bytes, 1, filetype, packed, (int)size, &position, MPI_COMM_SELF));
    for (size_t i = 0; i < size; ++i) view.at[i] |= (long long)packed[i] << shift;
  }
  free(bytes);
  free(packed);
  return view;
}

long long place_of(const struct places* view, long long data_byte) {
  return view->disp + data_byte / view->size * view->extent + view->at[data_byte % view->size];
}

long long bytes_before(const struct places* view, long long start, long long bytes, long long end) {
  long long low = 0, high = bytes;
  while (low < high) {
    const long long middle = low + (high - low) / 2;
    if (place_of(view, start + middle) < end) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
