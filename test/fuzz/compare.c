#include "compare.h"

#include <stdlib.h>
#include <string.h>

#include "files.h"

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
      codes[d] = MPI_File_open(comm, name_of(d, name), MPI_MODE_RDONLY, info_of(d), &files[d]);
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
