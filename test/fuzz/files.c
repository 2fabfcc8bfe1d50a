#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"

struct slot slots[kSlots];
const char* driver_name[kDrivers] = {"ufs:", "dedup:"};
int exact;
int sync_visibility;

static char names[kDrivers][kNames][4096];
static int delete_on_close_open[kNames]; /* how many handles will delete it */

void set_names(const char* directory) {
  exact = strcmp(driver_name[kSecond], "dedup:") == 0;
  for (int d = 0; d < kDrivers; ++d) {
    for (int n = 0; n < kNames; ++n) {
      /* Names that differ: the second driver's may put something of its own at the path. */
      snprintf(names[d][n], sizeof names[d][n], "%s%s/%s-%c", driver_name[d], directory,
               d == kFirst ? "first" : "second", 'A' + n);
    }
  }
  for (int s = 0; s < kSlots; ++s) {
    slots[s] = (struct slot){.comm = MPI_COMM_NULL, .file = {MPI_FILE_NULL, MPI_FILE_NULL}};
  }
}

const char* name_of(int driver, int name) {
  return names[driver][name];
}

/* ROMIO's optimisations read holes and write them back: behind the end of the file that is whatever
 * was in memory. Without them its driver does one system call for each piece. */
MPI_Info info_of(int driver) {
  static const char* const keys[] = {"romio_ds_write", "romio_ds_read", "romio_cb_write",
                                     "romio_cb_read"};
  static MPI_Info plain = MPI_INFO_NULL;
  if (strcmp(driver_name[driver], "ufs:") != 0) return MPI_INFO_NULL;
  if (plain == MPI_INFO_NULL) {
    MPI(MPI_Info_create(&plain));
    for (int i = 0; i < 4; ++i) MPI(MPI_Info_set(plain, keys[i], "disable"));
  }
  return plain;
}

int same_class(const int codes[kDrivers], const char* call) {
  const int first = error_class(codes[kFirst]), second = error_class(codes[kSecond]);
  if (first != second) {
    char text[MPI_MAX_ERROR_STRING];
    snprintf(text, sizeof text, "%s", error_text(codes[kFirst]));
    DIFFERS("%s: %s answers class %d (%s), %s class %d (%s)", call, driver_name[kFirst], first,
            text, driver_name[kSecond], second, error_text(codes[kSecond]));
  }
  return first == MPI_SUCCESS;
}

int same_success(const int codes[kDrivers], const char* call) {
  const int first = codes[kFirst] == MPI_SUCCESS, second = codes[kSecond] == MPI_SUCCESS;
  if (first != second) {
    DIFFERS("%s: only %s refuses it: %s", call, driver_name[first ? kSecond : kFirst],
            error_text(codes[first ? kSecond : kFirst]));
  }
  return first;
}

/* ---- Communicators ----------------------------------------------------------------------------
 */

MPI_Comm make_comm(enum comm_kind kind, uint64_t seed, int* groups, int* group) {
  struct random r = random_from(seed, 3);
  const int some = 1 + (int)pick(&r, ranks), one = (int)pick(&r, ranks);
  int color = 0, key = rank;
  *groups = 1;
  *group = 0;
  switch (kind) {
    case kReversed:
      key = -rank;
      break;
    case kSubset:
      color = rank < some ? 0 : MPI_UNDEFINED;
      break;
    case kHalves:
      *groups = 2;
      color = *group = rank % 2;
      break;
    case kSelf:
      *groups = ranks;
      color = *group = rank;
      break;
    case kOneSelf:
      color = rank == one ? 0 : MPI_UNDEFINED;
      break;
    default:
      break;
  }
  MPI_Comm comm;
  MPI(MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm));
  return comm;
}

/* ---- Opening and closing ----------------------------------------------------------------------
 */

static void bytes_view(struct slot* slot, long long disp) {
  free(slot->view.at);
  slot->view = find_places(disp, MPI_BYTE);
  slot->etype = 1;
  slot->tiled = 0;
  slot->contiguous = 1;
}

static void forget(struct slot* slot) {
  if (slot->comm != MPI_COMM_NULL) MPI(MPI_Comm_free(&slot->comm));
  slot->comm = MPI_COMM_NULL;
}

static int is_open_anywhere(int name) {
  int result = 0;
  for (int s = 0; s < kSlots; ++s) result |= slots[s].in_use && slots[s].name == name;
  return result;
}

void open_slot(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  if (slot->in_use) return;
  if (is_left_out(kDeletedWhileOpen) && delete_on_close_open[op->name] > 0) return;
  slot->comm = make_comm(op->comm, op->seed, &slot->groups, &slot->group);
  slot->name = op->name;
  slot->amode = op->amode;
  /* Which handle deletes the file must not depend on who is first. */
  if (slot->groups > 1 || delete_on_close_open[op->name] > 0) {
    slot->amode &= ~MPI_MODE_DELETE_ON_CLOSE;
  }
  if (is_left_out(kDeletedWhileOpen) && is_open_anywhere(op->name)) {
    slot->amode &= ~MPI_MODE_DELETE_ON_CLOSE;
  }
  const int in_turn = slot->groups > 1 && (slot->amode & MPI_MODE_EXCL);
  int codes[kDrivers] = {MPI_SUCCESS, MPI_SUCCESS};
  for (int d = 0; d < kDrivers; ++d) {
    for (int turn = 0; turn < (in_turn ? slot->groups : 1); ++turn) {
      if (is_open(slot) && (!in_turn || turn == slot->group)) {
        codes[d] = MPI_File_open(slot->comm, names[d][slot->name], slot->amode, info_of(d),
                                 &slot->file[d]);
      }
      barrier();
    }
  }
  int opened = same_class(codes, "open") && is_open(slot);
  if (!opened) forget(slot);
  MPI(MPI_Allreduce(&opened, &slot->in_use, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD));
  bytes_view(slot, 0);
  if (slot->in_use && (slot->amode & MPI_MODE_DELETE_ON_CLOSE)) ++delete_on_close_open[slot->name];
}

void close_slot(struct slot* slot) {
  if (!slot->in_use) return;
  int codes[kDrivers] = {MPI_SUCCESS, MPI_SUCCESS};
  for (int d = 0; d < kDrivers; ++d) {
    barrier();
    if (is_open(slot)) codes[d] = MPI_File_close(&slot->file[d]);
  }
  same_class(codes, "close");
  forget(slot);
  slot->in_use = 0;
  if (slot->amode & MPI_MODE_DELETE_ON_CLOSE) --delete_on_close_open[slot->name];
}

void delete_file(const struct op* op) {
  if (delete_on_close_open[op->name] > 0) return; /* the handle would delete its successor */
  if (is_left_out(kDeletedWhileOpen) && is_open_anywhere(op->name)) return;
  int codes[kDrivers] = {MPI_SUCCESS, MPI_SUCCESS};
  for (int d = 0; d < kDrivers; ++d) {
    if (rank == op->choice % ranks) codes[d] = MPI_File_delete(names[d][op->name], MPI_INFO_NULL);
  }
  same_class(codes, "delete");
}

/* ---- Views ------------------------------------------------------------------------------------
 */

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
  if (same_class(codes, "set_view")) {
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

/* ---- Observing --------------------------------------------------------------------------------
 */

long long size_of_file(const struct slot* slot, int driver) {
  MPI_Offset size;
  const int code = MPI_File_get_size(slot->file[driver], &size);
  if (code != MPI_SUCCESS) DIFFERS("%s get_size: %s", driver_name[driver], error_text(code));
  return size;
}

static void observe_position(struct slot* slot, int s, int shared) {
  MPI_Offset positions[kDrivers] = {0, 0};
  int codes[kDrivers];
  for (int d = 0; d < kDrivers; ++d) {
    codes[d] = shared ? MPI_File_get_position_shared(slot->file[d], &positions[d])
                      : MPI_File_get_position(slot->file[d], &positions[d]);
  }
  const char* call = shared ? "get_position_shared" : "get_position";
  if (same_class(codes, call) && positions[kFirst] != positions[kSecond]) {
    DIFFERS("%s of handle %d is %lld with %s, %lld with %s", call, s, (long long)positions[kFirst],
            driver_name[kFirst], (long long)positions[kSecond], driver_name[kSecond]);
  }
}

/* ROMIO refuses to sync what is open for reading only. */
static void sync(const struct slot* slot, int driver) {
  if (!is_open(slot) || (slot->amode & MPI_MODE_RDONLY)) return;
  const int code = MPI_File_sync(slot->file[driver]);
  if (code != MPI_SUCCESS) DIFFERS("%s sync: %s", driver_name[driver], error_text(code));
}

void separate(const struct slot* slot, int driver) {
  if (sync_visibility) sync(slot, driver);
  barrier();
  if (sync_visibility) sync(slot, driver);
}

static void sync_all(void) {
  for (int s = 0; s < kSlots; ++s) {
    for (int d = 0; d < kDrivers; ++d) sync(&slots[s], d);
  }
}

void observe(void) {
  if (sync_visibility) {
    sync_all();
    barrier();
    sync_all();
  }
  barrier();
  for (int s = 0; s < kSlots; ++s) {
    struct slot* slot = &slots[s];
    if (!is_open(slot)) continue;
    observe_position(slot, s, 0);
    /* ROMIO has only one shared pointer for all handles of a file: see README.md. */
    if (s == 0) observe_position(slot, s, 1);
    const long long first = size_of_file(slot, kFirst), second = size_of_file(slot, kSecond);
    if (first != second) {
      DIFFERS("the file of handle %d has %lld bytes with %s, %lld with %s", s, first,
              driver_name[kFirst], second, driver_name[kSecond]);
    }
  }
  barrier();
}

/* ---- Comparing whole files --------------------------------------------------------------------
 */

enum { kPiece = 512 << 10 };

static void read_piece(MPI_File file, int driver, long long at, long long bytes, int collective,
                       unsigned char* data) {
  MPI_Status status;
  int count;
  const int code = collective ? MPI_File_read_at_all(file, at, data, (int)bytes, MPI_BYTE, &status)
                              : MPI_File_read_at(file, at, data, (int)bytes, MPI_BYTE, &status);
  if (code != MPI_SUCCESS) {
    DIFFERS("%s: cannot read %lld bytes at %lld: %s", driver_name[driver], bytes, at,
            error_text(code));
  }
  MPI(MPI_Get_count(&status, MPI_BYTE, &count));
  if (count != bytes) {
    DIFFERS("%s reads %d of %lld bytes at %lld", driver_name[driver], count, bytes, at);
  }
}

static void compare_piece(MPI_File files[kDrivers], long long at, long long bytes, int collective) {
  unsigned char* data[kDrivers];
  for (int d = 0; d < kDrivers; ++d) {
    data[d] = allocate((size_t)bytes);
    read_piece(files[d], d, at, bytes, collective, data[d]);
  }
  if (memcmp(data[kFirst], data[kSecond], (size_t)bytes) != 0) {
    long long from = 0, wrong = 0;
    while (data[kFirst][from] == data[kSecond][from]) ++from;
    for (long long i = from; i < bytes; ++i) wrong += data[kFirst][i] != data[kSecond][i];
    DIFFERS("file %s: byte %lld is %d with %s, %d with %s; %lld bytes from there differ",
            "compared as a whole", at + from, data[kFirst][from], driver_name[kFirst],
            data[kSecond][from], driver_name[kSecond], wrong);
  }
  for (int d = 0; d < kDrivers; ++d) free(data[d]);
}

/* All pieces on each rank of a small file; of a large one, two ranks' shares. */
static void compare_pieces(MPI_File files[kDrivers], MPI_Comm comm, long long size,
                           int collective) {
  int me, all;
  MPI(MPI_Comm_rank(comm, &me));
  MPI(MPI_Comm_size(comm, &all));
  const long long pieces = (size + kPiece - 1) / kPiece;
  const long long rounds = all <= 2 || pieces <= 2 ? pieces : (2 * pieces + all - 1) / all;
  for (long long i = 0; i < rounds; ++i) {
    const long long at = (me * pieces / all + i) % pieces * kPiece;
    compare_piece(files, at, size - at < kPiece ? size - at : kPiece, collective);
  }
}

void compare_file(int name, enum comm_kind kind, uint64_t seed) {
  int groups, group, codes[kDrivers];
  MPI_Comm comm = make_comm(kind, seed, &groups, &group);
  MPI_File files[kDrivers];
  barrier();
  if (comm != MPI_COMM_NULL) {
    for (int d = 0; d < kDrivers; ++d) {
      codes[d] = MPI_File_open(comm, names[d][name], MPI_MODE_RDONLY, info_of(d), &files[d]);
    }
    if (same_class(codes, "open to compare")) {
      MPI_Offset sizes[kDrivers];
      for (int d = 0; d < kDrivers; ++d) codes[d] = MPI_File_get_size(files[d], &sizes[d]);
      same_class(codes, "get_size to compare");
      if (sizes[kFirst] != sizes[kSecond]) {
        DIFFERS("file %c has %lld bytes with %s, %lld with %s", 'A' + name,
                (long long)sizes[kFirst], driver_name[kFirst], (long long)sizes[kSecond],
                driver_name[kSecond]);
      }
      compare_pieces(files, comm, sizes[kFirst], seed % 2 == 0);
      for (int d = 0; d < kDrivers; ++d) codes[d] = MPI_File_close(&files[d]);
      same_class(codes, "close after comparing");
    }
    MPI(MPI_Comm_free(&comm));
  }
  barrier();
}
