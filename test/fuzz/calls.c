#include "calls.h"

#include "check.h"
#include "compare.h"
#include "files.h"
#include "mistakes.h"
#include "random.h"
#include "view.h"

void seek(const struct op* op, int shared) {
  static const int whences[] = {MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END};
  struct slot* slot = &slots[op->slot];
  struct random own = random_from(op->seed, 12000 + (uint64_t)rank);
  int codes[kDrivers];
  if (!is_open(slot) || (shared && slot->tiled)) return;
  /* ROMIO then takes the end for being before the start: see README.md. */
  const int starts_behind_end = slot->contiguous && size_of_file(slot, kFirst) < slot->view.disp;
  if (whences[op->whence] == MPI_SEEK_END && starts_behind_end) return;
  long long offset = op->offset / slot->etype;
  if (op->whence == 0) offset = etype_at(slot, op->offset);
  if (!shared) {
    offset += pick(&own, 50);
  } else if (offset < 0) { /* hangs: see README.md */
    offset = -offset;
  }
  for (int d = 0; d < kDrivers; ++d) {
    codes[d] = shared ? MPI_File_seek_shared(slot->file[d], offset, whences[op->whence])
                      : MPI_File_seek(slot->file[d], offset, whences[op->whence]);
  }
  same_class(codes, "seek");
}

void set_size(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  struct random r = random_from(op->seed, 13);
  long long size = op->offset;
  if (!slot->in_use) return;
  /* ROMIO preallocates by reading and writing: see README.md. */
  if (op->kind == kPreallocate && (slot->amode & MPI_MODE_WRONLY)) return;
  barrier();
  if (is_open(slot) && slot->groups == 1 && one_in(&r, 2)) { /* near what it is */
    size = size_of_file(slot, kFirst) + pick(&r, 2000) - 1000;
    if (size < 0) size = 0;
  }
  const int refused = op->kind == kPreallocate && (slot->amode & MPI_MODE_RDONLY);
  int codes[kDrivers] = {MPI_SUCCESS, MPI_SUCCESS};
  for (int d = 0; d < kDrivers; ++d) {
    barrier();
    if (!is_open(slot)) continue;
    codes[d] = op->kind == kSetSize ? MPI_File_set_size(slot->file[d], size + is_falsified(op, d))
                                    : MPI_File_preallocate(slot->file[d], size);
  }
  if (refused) {
    same_success(codes, "preallocate of a read-only file");
  } else {
    same_class(codes, op->kind == kSetSize ? "set_size" : "preallocate");
  }
}

void sync_or_set_atomicity(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  int codes[kDrivers];
  if (!is_open(slot)) return;
  for (int d = 0; d < kDrivers; ++d) {
    codes[d] = op->kind == kSync ? MPI_File_sync(slot->file[d])
                                 : MPI_File_set_atomicity(slot->file[d], op->choice);
  }
  same_class(codes, op->kind == kSync ? "sync" : "set_atomicity");
}

void query(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  struct random own = random_from(op->seed, 14000 + (uint64_t)rank);
  if (!is_open(slot)) return;
  const MPI_Offset offset = pick(&own, 100000);
  MPI_Offset bytes[kDrivers], disps[kDrivers];
  int codes[kDrivers], amodes[kDrivers], atomic[kDrivers], sizes[kDrivers];
  for (int d = 0; d < kDrivers; ++d) {
    MPI_Datatype etype, filetype;
    MPI_Group group;
    char representation[MPI_MAX_DATAREP_STRING];
    bytes[d] = 0;
    codes[d] = MPI_File_get_byte_offset(slot->file[d], offset, &bytes[d]);
    MPI(MPI_File_get_amode(slot->file[d], &amodes[d]));
    MPI(MPI_File_get_atomicity(slot->file[d], &atomic[d]));
    MPI(MPI_File_get_group(slot->file[d], &group));
    MPI(MPI_Group_size(group, &sizes[d]));
    MPI(MPI_Group_free(&group));
    MPI(MPI_File_get_view(slot->file[d], &disps[d], &etype, &filetype, representation));
  }
  if (same_class(codes, "get_byte_offset") && !(slot->amode & MPI_MODE_SEQUENTIAL)) {
    const long long expected = place_of(&slot->view, offset * slot->etype);
    if (bytes[kSecond] != expected || bytes[kFirst] != expected) {
      DIFFERS("get_byte_offset of %lld is %lld with %s, %lld with %s, should be %lld",
              (long long)offset, (long long)bytes[kFirst], driver_name[kFirst],
              (long long)bytes[kSecond], driver_name[kSecond], expected);
    }
  }
  if (amodes[0] != amodes[1]) DIFFERS("get_amode: %d and %d", amodes[0], amodes[1]);
  if (atomic[0] != atomic[1]) DIFFERS("get_atomicity: %d and %d", atomic[0], atomic[1]);
  if (sizes[0] != sizes[1]) DIFFERS("get_group: %d and %d ranks", sizes[0], sizes[1]);
  if (disps[0] != disps[1]) DIFFERS("get_view: the displacements differ");
}

void mistake(const struct op* op) {
  struct slot* slot = &slots[op->slot];
  int codes[kDrivers];
  if (!is_open(slot)) return;
  for (int d = 0; d < kDrivers; ++d) {
    codes[d] = make_mistake(op->choice, slot->file[d], slot->comm, name_of(d, slot->name));
    if (is_falsified(op, d)) codes[d] = MPI_ERR_OTHER;
  }
  same_class(codes, mistake_name(op->choice));
}
