/* The handles: each is two, on a file of each driver, that are used alike. */
#pragma once

#include "check.h"
#include "plan.h"
#include "types.h"

enum { kFirst, kSecond, kDrivers }; /* ufs: and dedup: */

struct slot {
  int in_use;              /* on any rank: all ranks know */
  MPI_Comm comm;           /* MPI_COMM_NULL where this rank has it not open */
  MPI_File file[kDrivers]; /* likewise */
  int groups, group;       /* how many open it independently of each other, and in which we are */
  int name, amode;
  /* The view. A tiled one, or a darray, gives each rank of the job bytes of its own, wherever it
   * accesses. */
  int tiled, contiguous;
  long long etype; /* its size */
  struct places view;
};

extern struct slot slots[kSlots];
extern const char* driver_name[kDrivers]; /* the prefixes */
extern int exact;           /* the second driver is ours: short reads tell the true count */
extern int sync_visibility; /* writes need sync, barrier, sync to be seen */

void set_names(const char* directory);
const char* name_of(int driver, int name);

/* The hints for opening. */
MPI_Info info_of(int driver);

static inline int is_open(const struct slot* slot) {
  return slot->comm != MPI_COMM_NULL;
}

void open_slot(const struct op* op);
void close_slot(struct slot* slot);
void delete_file(const struct op* op);

/* A communicator for this rank, or MPI_COMM_NULL, and its group. */
MPI_Comm make_comm(enum comm_kind kind, uint64_t seed, int* groups, int* group);

/* That both drivers answered the same, and whether that was success. */
int same_class(const int codes[kDrivers], const char* call);

/* For what ROMIO does not check before the system refuses it: it has no class for that. */
int same_success(const int codes[kDrivers], const char* call);
