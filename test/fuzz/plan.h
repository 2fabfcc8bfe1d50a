/* The sequence of operations: a list that is drawn before anything runs. Each operation carries all
 * that it needs, so that any of them can be left out.
 */
#pragma once

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { kSlots = 3, kNames = 2, kBlock = 4 << 20 };

/* No access goes, and no file grows, beyond this. */
enum { kMostFile = 24 << 20 };

enum op_kind {
  kOpen,
  kClose,
  kAccess, /* one read or write of each rank that takes part */
  kBurst,  /* several of each rank, without any synchronisation between ranks */
  kView,
  kSeek,
  kSeekShared,
  kSetSize,
  kPreallocate,
  kSync,
  kAtomicity,
  kDelete,
  kCompare, /* the whole file, through handles of its own */
  kQuery,
  kMistake, /* an erroneous call */
  kOpKinds
};

/* Which ranks open a file together. */
enum comm_kind { kWorld, kReversed, kSubset, kHalves, kSelf, kOneSelf, kCommKinds };

enum pointer { kExplicit, kIndividual, kShared, kOrdered };
enum mode { kBlocking, kNonblocking, kCollective, kNonblockingCollective, kSplit };
enum view { kBytesView, kTiledView, kCommonView, kDarrayView, kViews };
enum content { kUnique, kSameOnAll, kZeros, kRepeated, kHalfZeros, kContents };

struct op {
  int index;
  enum op_kind kind;
  uint64_t seed; /* for what is drawn when it runs: types, amounts of each rank, content */
  int slot;      /* which handle: 0 to kSlots - 1 */

  int name; /* kOpen, kDelete, kCompare: which file */
  enum comm_kind comm;
  int amode;

  int write; /* kAccess */
  enum pointer pointer;
  enum mode mode;
  unsigned participants; /* a bit for each rank; the others take part in collectives with nothing */
  enum content content;
  long long offset, bytes; /* roughly; offset is a size or a distance for other kinds */

  int whence;
  int choice; /* kView: an enum view; kAtomicity: on; kMistake: which; kDelete: by whom */
  int large;  /* views in pieces that are not tiny, for it may be much data */
};

/* Draws `steps` operations. `large`: of much data. */
struct op* draw_plan(uint64_t seed, int steps, int large);

/* One line, without its end. */
void describe(const struct op* op, FILE* out);

/* What `rank` reads or writes at most. */
long long bytes_of_rank(const struct op* op, int rank);

int is_collective(const struct op* op);
