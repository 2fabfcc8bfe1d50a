#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

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

static void forget(struct slot* slot) {
  if (slot->comm != MPI_COMM_NULL) MPI(MPI_Comm_free(&slot->comm));
  slot->comm = MPI_COMM_NULL;
}

void open_slot(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  if (slot->in_use) return;
  slot->comm = make_comm(op->comm, op->seed, &slot->groups, &slot->group);
  slot->name = op->name;
  slot->amode = op->amode;
  /* Which handle deletes the file must not depend on who is first. */
  if (slot->groups > 1 || delete_on_close_open[op->name] > 0) {
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
  view_bytes(slot);
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
  int codes[kDrivers] = {MPI_SUCCESS, MPI_SUCCESS};
  for (int d = 0; d < kDrivers; ++d) {
    if (rank == op->choice % ranks) codes[d] = MPI_File_delete(names[d][op->name], MPI_INFO_NULL);
  }
  same_class(codes, "delete");
}
