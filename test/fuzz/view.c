#include "view.h"

#include <stdlib.h>

#include "random.h"

void view_bytes(struct slot* slot) {
  free(slot->view.at);
  slot->view = find_places(0, MPI_BYTE);
  slot->etype = 1;
  slot->tiled = 0;
  slot->contiguous = 1;
}

static long long round_up(long long value, long long unit) {
  return (value + unit - 1) / unit * unit;
}

/* What filetypes are made of: an etype, or many of them. Not committed. */
static MPI_Datatype draw_element(const struct op* op, MPI_Datatype etype) {
  struct random r = random_from(op->seed, 15);
  MPI_Datatype element;
  MPI(MPI_Type_contiguous(op->large ? 30 + (int)pick(&r, 470) : 1, etype, &element));
  return element;
}

static MPI_Datatype draw_filetype(const struct op* op, int of_rank, MPI_Datatype etype) {
  struct random r = random_from(op->seed, 5000 + (uint64_t)of_rank);
  MPI_Datatype element = draw_element(op, etype);
  MPI_Datatype filetype = draw_type(&r, element, op->large ? 0 : (int)pick(&r, 3));
  MPI(MPI_Type_free(&element));
  return filetype;
}

/* A type of this rank's own in every ranks-th tile; the tile is as wide as the widest rank needs.
 */
static MPI_Datatype tiled_filetype(const struct op* op, MPI_Datatype etype, long long* tile) {
  MPI_Datatype mine = MPI_DATATYPE_NULL;
  *tile = 0;
  for (int r = 0; r < ranks; ++r) {
    MPI_Datatype type = draw_filetype(op, r, etype);
    if (end_of_type(type) > *tile) *tile = end_of_type(type);
    if (r == rank) {
      mine = type;
    } else {
      MPI(MPI_Type_free(&type));
    }
  }
  *tile = round_up(*tile, size_of_type(etype));
  return resized(mine, (MPI_Aint)(*tile * ranks));
}

/* Every rank's part of an array that is distributed over all; none is without. */
static MPI_Datatype darray_filetype(const struct op* op, MPI_Datatype etype) {
  struct random r = random_from(op->seed, 16);
  enum { kMostDimensions = 3 };
  int sizes[kMostDimensions], how[kMostDimensions], each[kMostDimensions];
  int processes[kMostDimensions] = {0, 0, 0};
  const int dimensions = 1 + (int)pick(&r, kMostDimensions);
  MPI(MPI_Dims_create(ranks, dimensions, processes));
  for (int i = 0; i < dimensions; ++i) {
    each[i] = 1 + (int)pick(&r, 3);
    sizes[i] = processes[i] * each[i];
    if (one_in(&r, 2)) {
      how[i] = MPI_DISTRIBUTE_BLOCK;
      sizes[i] -= (int)pick(&r, each[i]);
    } else {
      how[i] = MPI_DISTRIBUTE_CYCLIC;
      sizes[i] += (int)pick(&r, 2LL * sizes[i]);
    }
  }
  MPI_Datatype element = draw_element(op, etype), type;
  MPI(MPI_Type_create_darray(ranks, rank, dimensions, sizes, how, each, processes,
                             one_in(&r, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, element, &type));
  MPI(MPI_Type_free(&element));
  MPI(MPI_Type_commit(&type));
  return type;
}

void set_view(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  if (!slot->in_use) return;
  struct random r = random_from(op->seed, 4);
  const MPI_Datatype etype = op->choice == kBytesView && one_in(&r, 2) ? MPI_BYTE : draw_basic(&r);
  const long long unit = size_of_type(etype);
  MPI_Datatype filetype;
  long long disp = op->offset, tile = 0;
  if (op->choice == kBytesView) {
    MPI(MPI_Type_dup(etype, &filetype));
    MPI(MPI_Type_commit(&filetype));
  } else if (op->choice == kTiledView) {
    filetype = tiled_filetype(op, etype, &tile);
    disp += rank * tile;
  } else if (op->choice == kDarrayView) {
    filetype = darray_filetype(op, etype);
  } else {
    filetype = draw_filetype(op, 0, etype);
    filetype =
        resized(filetype, (MPI_Aint)(round_up(end_of_type(filetype), unit) + unit * pick(&r, 4)));
  }
  int codes[kDrivers] = {MPI_SUCCESS, MPI_SUCCESS};
  for (int d = 0; d < kDrivers; ++d) {
    if (!is_open(slot)) continue;
    codes[d] = MPI_File_set_view(slot->file[d], disp, etype, filetype, "native", MPI_INFO_NULL);
  }
  /* Ranks that have the file not open follow those that have. */
  int set = same_class(codes, "set_view");
  MPI(MPI_Allreduce(MPI_IN_PLACE, &set, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
  if (set) {
    free(slot->view.at);
    slot->view = find_places(disp, filetype);
    slot->etype = unit;
    slot->tiled = op->choice == kTiledView || op->choice == kDarrayView;
    slot->contiguous = slot->view.size == slot->view.extent;
  }
  MPI(MPI_Type_free(&filetype));
}

long long etype_at(const struct slot* slot, long long byte) {
  long long from_disp = byte - slot->view.disp;
  if (from_disp < 0) from_disp = byte % (4 * slot->view.extent);
  return from_disp / slot->view.extent * (slot->view.size / slot->etype);
}
