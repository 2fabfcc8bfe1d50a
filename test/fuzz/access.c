#include "access.h"

#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "files.h"
#include "memory.h"
#include "transfer.h"
#include "view.h"

/* What this rank does in one operation. */
struct access {
  struct slot* slot;
  struct transfer call;
  struct memory memory;
  long long start;    /* the first etype; unknown (-1) if several ranks race for it */
  long long expected; /* bytes that are there to be read */
  int turns, turn;    /* ranks one after another, each in its turn */
  struct outcome outcome[kDrivers];
  unsigned char* data[kDrivers]; /* what was read */
};

static long long round_up(long long value, long long unit) {
  return (value + unit - 1) / unit * unit;
}

static long long bytes_of_ranks_before(const struct op* op, int last, long long unit) {
  long long sum = 0;
  for (int r = 0; r < last; ++r) sum += round_up(bytes_of_rank(op, r), unit);
  return sum;
}

static long long position(const struct slot* slot, int shared) {
  MPI_Offset result = 0;
  const int code = shared ? MPI_File_get_position_shared(slot->file[kFirst], &result)
                          : MPI_File_get_position(slot->file[kFirst], &result);
  return code == MPI_SUCCESS ? result : 0; /* not allowed on sequential files */
}

static int is_too_large(const struct access* a) {
  const long long start = a->start * a->slot->etype;
  return a->memory.count > 0 && place_of(&a->slot->view, start + a->memory.bytes - 1) >= kMostFile;
}

static void limit(struct access* a) {
  while (is_too_large(a)) {
    set_count(&a->memory, a->memory.count / 2);
    while (a->memory.bytes % a->slot->etype != 0) set_count(&a->memory, a->memory.count - 1);
  }
}

/* ---- Where ------------------------------------------------------------------------------------
 */

/* Explicit offsets: one rank behind the other, unless the view keeps them apart or all only read.
 */
static long long explicit_start(const struct op* op, const struct slot* slot) {
  struct random own = random_from(op->seed, 9000 + (uint64_t)rank), r = random_from(op->seed, 9);
  long long start = etype_at(slot, op->offset);
  if (slot->tiled || (!op->write && one_in(&r, 2))) return start + pick(&own, 200);
  const long long gap = one_in(&r, 2) ? 0 : pick(&r, 100);
  return start + bytes_of_ranks_before(op, rank, slot->etype) / slot->etype + rank * gap;
}

/* Individual pointers may be anywhere. Ranks whose writes would touch take turns; in a collective
 * write only one of them writes. Everybody calls this. */
static void keep_apart(const struct op* op, struct access* a) {
  long long mine[2] = {0, 0};
  if (op->pointer == kShared || op->pointer == kOrdered || !op->write || a->slot->tiled) return;
  if (a->memory.count > 0 && is_open(a->slot)) {
    const long long first = a->start * a->slot->etype;
    mine[0] = place_of(&a->slot->view, first);
    mine[1] = place_of(&a->slot->view, first + a->memory.bytes - 1) + 1;
  }
  long long(*all)[2] = allocate(sizeof *all * (size_t)ranks);
  MPI(MPI_Allgather(mine, 2, MPI_LONG_LONG, all, 2, MPI_LONG_LONG, MPI_COMM_WORLD));
  int touch = 0;
  for (int i = 0; i < ranks; ++i) {
    for (int j = 0; j < i; ++j) touch |= all[i][0] < all[j][1] && all[j][0] < all[i][1];
  }
  free(all);
  if (!touch) return;
  const int one = (int)(op->seed % (uint64_t)ranks);
  if (is_collective(op)) {
    if (rank != one) set_count(&a->memory, 0);
  } else {
    a->turns = ranks;
    a->turn = (rank + one) % ranks;
  }
}

/* Shared pointers: accesses of different ranks may come in any order. */
static void shared_start(const struct op* op, struct access* a) {
  struct slot* slot = a->slot;
  const long long unit = slot->etype;
  if (!is_open(slot)) return;
  a->start = position(slot, 1);
  limit(a);
  const long long last = a->start * unit + bytes_of_ranks_before(op, ranks, unit);
  if (place_of(&slot->view, last) >= kMostFile) set_count(&a->memory, 0);
  if (op->pointer == kOrdered) {
    long long before = 0;
    /* Each group has a pointer of its own: only one writes. */
    if (op->write && slot->group != (int)(op->seed % (uint64_t)slot->groups)) {
      set_count(&a->memory, 0);
    }
    MPI(MPI_Exscan(&a->memory.bytes, &before, 1, MPI_LONG_LONG, MPI_SUM, slot->comm));
    int me;
    MPI(MPI_Comm_rank(slot->comm, &me));
    if (me > 0) a->start += before / unit;
  }
}

/* ---- Doing it ---------------------------------------------------------------------------------
 */

/* All ranks at once at the shared pointer: what each writes, and how much, must be the same. Groups
 * have pointers of their own, and could write to the same place. */
static int is_race(const struct op* op, const struct slot* slot) {
  return op->pointer == kShared && op->seed % 3 == 0 && slot->contiguous &&
         (slot->groups == 1 || !op->write);
}

/* ROMIO does not always look whether the file is open for what is asked. */
static int is_refused_late(const struct op* op, const struct slot* slot) {
  const int unchecked = op->pointer == kShared || op->pointer == kOrdered || op->mode == kSplit;
  return unchecked && (slot->amode & (op->write ? MPI_MODE_RDONLY : MPI_MODE_WRONLY));
}

static void prepare(const struct op* op, struct access* a) {
  struct slot* slot = a->slot;
  const int race = is_race(op, slot);
  const int of_rank = race ? 0 : rank;
  const long long most = race ? op->bytes : bytes_of_rank(op, rank);
  a->memory = make_memory(op, 0, of_rank, most, slot->etype, op->write, race);
  a->call = (struct transfer){.write = op->write, .pointer = op->pointer, .mode = op->mode};
  a->turns = 1;
  if (op->pointer == kShared || op->pointer == kOrdered) {
    shared_start(op, a);
    if (race) {
      a->start = -1;
    } else if (op->pointer == kShared) {
      a->turns = ranks;
      a->turn = (rank + (int)(op->seed % (uint64_t)ranks)) % ranks;
    }
  } else {
    a->start = op->pointer == kExplicit ? explicit_start(op, slot) : 0;
    if (op->pointer == kIndividual && is_open(slot)) a->start = position(slot, 0);
    limit(a);
  }
  keep_apart(op, a);
  a->call.offset = a->start;
  a->call.count = a->memory.count;
  a->call.type = a->memory.type;
  a->call.pause =
      a->turns == 1 && op->seed % 2 == 0 && op->mode != kBlocking && op->mode != kCollective;
}

static int takes_part(const struct op* op, const struct access* a) {
  return is_open(a->slot) && (is_collective(op) || (op->participants >> rank & 1));
}

static void expect(struct access* a) {
  a->expected = bytes_before(&a->slot->view, a->start * a->slot->etype, a->memory.bytes,
                             size_of_file(a->slot, kFirst));
}

static void run_on(const struct op* op, struct access* a, int driver) {
  reset(&a->memory);
  const int flip = op->write && a->memory.count > 0 && is_falsified(op, driver);
  if (flip) a->memory.buffer[a->memory.span - 1] ^= 1;
  barrier();
  for (int turn = 0; turn < a->turns; ++turn) {
    if (takes_part(op, a) && turn == a->turn) {
      if (op->pointer == kShared && a->turns > 1 && driver == kFirst) {
        a->start = position(a->slot, 1);
        expect(a);
      }
      a->outcome[driver] = transfer(a->slot->file[driver], &a->call, a->memory.buffer);
    } else if (a->call.pause) {
      pause_only();
    }
    if (a->turns > 1) separate(a->slot, driver);
  }
  if (op->write && !flip && memcmp(a->memory.buffer, a->memory.before, a->memory.span) != 0) {
    DIFFERS("%s changed the buffer that it was to write", driver_name[driver]);
  }
  if (!op->write) a->data[driver] = data_of(&a->memory, driver);
}

/* ---- Comparing --------------------------------------------------------------------------------
 */

/* In atomic mode ROMIO waits in a nonblocking call, and says that all was read: see README.md. */
static int tells_true_count(const struct access* a) {
  int atomic;
  MPI(MPI_File_get_atomicity(a->slot->file[kSecond], &atomic));
  return exact && !(atomic && a->call.mode == kNonblocking);
}

static void compare_counts(const struct access* a) {
  const int first = a->outcome[kFirst].bytes, second = a->outcome[kSecond].bytes;
  const int whole = a->call.write || a->expected == a->memory.bytes;
  const long long expected = a->call.write ? a->memory.bytes : a->expected;
  if ((whole || tells_true_count(a)) && second != expected) {
    DIFFERS("%s: the status says %d bytes; %lld of %lld are there from etype %lld on",
            driver_name[kSecond], second, expected, a->memory.bytes, a->start);
  }
  /* ROMIO says that it read all that was asked for, where it goes through a buffer of its own. */
  if (whole && first != expected) {
    DIFFERS("%s: the status says %d of %lld bytes", driver_name[kFirst], first, expected);
  }
}

static void compare_data(const struct access* a) {
  for (long long i = 0; i < a->expected; ++i) {
    const int first = a->data[kFirst][i], second = a->data[kSecond][i];
    if (first == second) continue;
    long long wrong = 0;
    for (long long j = i; j < a->expected; ++j) wrong += a->data[kFirst][j] != a->data[kSecond][j];
    DIFFERS(
        "byte %lld of %lld read from etype %lld on (in the file at %lld) is %d with %s, %d with "
        "%s; %lld bytes from there differ",
        i, a->memory.bytes, a->start, place_of(&a->slot->view, a->start * a->slot->etype + i),
        first, driver_name[kFirst], second, driver_name[kSecond], wrong);
  }
}

/* After less was read than asked for, drivers differ in where the pointer is: see README.md. */
static void mend_position(struct access* a) {
  MPI_Offset second;
  const long long expected = a->start + a->expected / a->slot->etype;
  MPI(MPI_File_get_position(a->slot->file[kSecond], &second));
  if (exact && second != expected) {
    DIFFERS("%s: the pointer is at %lld, not %lld, after %lld of %lld bytes were read",
            driver_name[kSecond], (long long)second, expected, a->expected, a->memory.bytes);
  }
  for (int d = 0; d < kDrivers; ++d) {
    MPI(MPI_File_seek(a->slot->file[d], expected, MPI_SEEK_SET));
  }
}

/* What all ranks together got, in whatever order. */
static void compare_race(const struct access* a, int took_part) {
  uint64_t sums[kDrivers] = {0, 0};
  for (int d = 0; d < kDrivers && took_part; ++d) {
    const int bytes = a->outcome[d].bytes;
    struct random r = random_from((uint64_t)bytes, 10);
    if (a->data[d] != NULL) {
      for (int i = 0; i < bytes; ++i) r.state = mix(r.state * 31 + a->data[d][i]);
    }
    sums[d] = r.state;
  }
  MPI(MPI_Allreduce(MPI_IN_PLACE, sums, kDrivers, MPI_UINT64_T, MPI_SUM, a->slot->comm));
  if (sums[kFirst] != sums[kSecond]) {
    DIFFERS("at a shared pointer the ranks together do not get the same with both drivers");
  }
}

/* ROMIO does not tell where the pointer of a sequential file is. */
static int is_position_unknown(const struct access* a) {
  return !a->call.write && (a->slot->amode & MPI_MODE_SEQUENTIAL);
}

static int same_answer(const struct op* op, const struct access* a) {
  const int codes[kDrivers] = {a->outcome[kFirst].code, a->outcome[kSecond].code};
  const char* call = op->write ? "write" : "read";
  if (!is_refused_late(op, a->slot)) return same_class(codes, call);
  /* The system refuses what there is; a driver may refuse a collective call on all ranks. */
  return a->memory.count > 0 && same_success(codes, call);
}

static void compare_access(const struct op* op, struct access* a) {
  const int took_part = takes_part(op, a);
  const int done = !took_part || same_answer(op, a);
  if (a->start < 0) {
    if (is_open(a->slot)) compare_race(a, took_part && done);
  } else if (took_part && done) {
    if (is_position_unknown(a)) {
      const int first = a->outcome[kFirst].bytes, second = a->outcome[kSecond].bytes;
      a->expected = first < second ? first : second;
      if (second > first) DIFFERS("%s reads %d bytes, not %d", driver_name[kSecond], second, first);
    } else {
      compare_counts(a);
    }
    if (!op->write) compare_data(a);
    if (!op->write && op->pointer == kIndividual && a->expected < a->memory.bytes) {
      mend_position(a);
    }
  }
}

void run_access(const struct op* op) {
  struct access a = {.slot = &slots[op->slot]};
  if (!a.slot->in_use) return;
  if ((op->pointer == kShared || op->pointer == kOrdered) && a.slot->tiled) return;
  /* ROMIO waits for ever for what the system refused to do asynchronously, and for ever takes a
   * split access that was refused for one that goes on: see README.md. */
  const int lingers = op->mode == kNonblocking || op->mode == kSplit;
  if (lingers && is_refused_late(op, a.slot)) return;
  prepare(op, &a);
  if (is_open(a.slot) && a.start >= 0) expect(&a);
  for (int d = 0; d < kDrivers; ++d) run_on(op, &a, d);
  compare_access(op, &a);
  for (int d = 0; d < kDrivers; ++d) free(a.data[d]);
  free_memory(&a.memory);
}
