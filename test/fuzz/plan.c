#include "plan.h"

#include <stdlib.h>

#include "mistakes.h"
#include "random.h"

/* What the operations of one seed have in common. */
struct character {
  int weight[kOpKinds];
  long long span; /* where most accesses are */
  int blocks;     /* over how many of the driver's blocks they are spread */
  int big_one_in; /* 0: no accesses that are large enough to be dumped at once */
  int write_percent;
  int one_handle;
  int large;
};

/* What the plan expects to be open; only a guess once operations are left out. */
struct guess {
  int open[kSlots], amode[kSlots], common_view[kSlots];
};

static struct character draw_character(struct random* r, int large) {
  static const int weights[kOpKinds] = {
      [kOpen] = 10,     [kClose] = 6,      [kAccess] = 60, [kBurst] = 8,       [kView] = 10,
      [kSeek] = 6,      [kSeekShared] = 3, [kSetSize] = 5, [kPreallocate] = 2, [kSync] = 5,
      [kAtomicity] = 2, [kDelete] = 1,     [kCompare] = 4, [kQuery] = 2,       [kMistake] = 4};
  static const long long spans[] = {3000, 20000, 120000};
  static const long long large_spans[] = {1 << 20, 3 << 20, 6 << 20};
  struct character c;
  /* Not every kind in every sequence: what hides a fault may be missing. */
  for (int i = 0; i < kOpKinds; ++i) {
    c.weight[i] = i > kAccess && one_in(r, 4) ? 0 : weights[i];
  }
  c.large = large;
  c.span = (large ? large_spans : spans)[pick(r, 3)];
  c.blocks = one_in(r, 3) ? 3 : 1;
  c.big_one_in = one_in(r, 3) ? 4 : one_in(r, 2) ? 0 : 20;
  c.write_percent = 40 + (int)pick(r, 40);
  c.one_handle = one_in(r, 4);
  return c;
}

static long long draw_offset(const struct character* c, struct random* r) {
  const long long place = pick(r, c->span);
  const long long block = pick(r, c->blocks);
  /* Around the borders of blocks, not only behind them. */
  return block == 0 ? place : block * kBlock + place - c->span / 2;
}

static long long draw_bytes(const struct character* c, struct random* r, int collective) {
  if (c->big_one_in > 0 && collective && one_in(r, c->big_one_in)) {
    return (256 << 10) + pick(r, 500 << 10);
  }
  switch (pick(r, 8)) {
    case 0:
      return 0;
    case 1:
    case 2:
      return 1 + pick(r, 64);
    case 3:
    case 4:
      return 1 + pick(r, 1500);
    default:
      return 1 + pick(r, c->span / (c->large ? 4 : 2));
  }
}

static int draw_amode(struct random* r, int slot) {
  static const int modes[] = {MPI_MODE_RDWR, MPI_MODE_RDWR,   MPI_MODE_RDWR,
                              MPI_MODE_RDWR, MPI_MODE_RDONLY, MPI_MODE_WRONLY};
  int amode = modes[pick(r, 6)];
  if (amode != MPI_MODE_RDONLY && !one_in(r, 6)) amode |= MPI_MODE_CREATE;
  if ((amode & MPI_MODE_CREATE) && one_in(r, 8)) amode |= MPI_MODE_EXCL;
  /* Both make ROMIO use the shared pointer, which it has for one handle only: see README.md. */
  if (slot == 0 && one_in(r, 6)) amode |= MPI_MODE_APPEND;
  if (slot == 0 && !(amode & MPI_MODE_RDWR) && one_in(r, 6)) amode |= MPI_MODE_SEQUENTIAL;
  if (one_in(r, 16)) amode |= MPI_MODE_DELETE_ON_CLOSE;
  if (one_in(r, 10)) amode |= MPI_MODE_UNIQUE_OPEN;
  return amode;
}

static void draw_open(struct op* op, const struct character* c, struct random* r,
                      struct guess* guess) {
  op->slot = c->one_handle ? 0 : (int)pick(r, kSlots);
  if (guess->open[op->slot]) {
    op->kind = kClose;
    guess->open[op->slot] = 0;
    return;
  }
  op->comm = one_in(r, 2) ? kWorld : (enum comm_kind)pick(r, kCommKinds);
  op->name = one_in(r, 8);
  op->amode = draw_amode(r, op->slot);
  guess->open[op->slot] = 1;
  guess->amode[op->slot] = op->amode;
  guess->common_view[op->slot] = 1;
}

static void draw_access(struct op* op, const struct character* c, struct random* r,
                        const struct guess* guess) {
  const int amode = guess->amode[op->slot];
  op->write = pick(r, 100) < c->write_percent;
  if (!one_in(r, 25)) { /* else perhaps one that is not allowed */
    if (amode & MPI_MODE_RDONLY) op->write = 0;
    if (amode & MPI_MODE_WRONLY) op->write = 1;
  }
  const int shared = op->slot == 0 && guess->common_view[0];
  op->pointer = (enum pointer)pick(r, shared ? 4 : 2);
  if (shared && (amode & MPI_MODE_SEQUENTIAL) && !one_in(r, 8)) {
    op->pointer = one_in(r, 2) ? kShared : kOrdered;
  }
  switch (op->pointer) {
    case kShared:
      op->mode = one_in(r, 2) ? kBlocking : kNonblocking;
      break;
    case kOrdered:
      op->mode = one_in(r, 2) ? kCollective : kSplit;
      break;
    default:
      op->mode = (enum mode)pick(r, 5);
      break;
  }
  op->participants = one_in(r, 2) ? ~0u : (unsigned)next_random(r) | (unsigned)next_random(r);
  op->content = (enum content)pick(r, kContents);
  op->offset = draw_offset(c, r);
  op->bytes = draw_bytes(c, r, is_collective(op));
}

static enum op_kind draw_kind(const struct character* c, struct random* r) {
  int sum = 0;
  for (int i = 0; i < kOpKinds; ++i) sum += c->weight[i];
  int at = (int)pick(r, sum);
  int kind = 0;
  while (at >= c->weight[kind]) at -= c->weight[kind++];
  return (enum op_kind)kind;
}

static void draw_op(struct op* op, const struct character* c, struct random* r,
                    struct guess* guess) {
  int any = 0;
  for (int s = 0; s < kSlots; ++s) any |= guess->open[s];
  op->kind = any ? draw_kind(c, r) : kOpen;
  op->seed = next_random(r);
  op->slot = (int)pick(r, kSlots);
  for (int s = 0; any && !guess->open[op->slot] && s < kSlots; ++s) op->slot = (int)pick(r, kSlots);
  op->name = one_in(r, 8);
  op->comm = (enum comm_kind)pick(r, kCommKinds);
  op->offset = draw_offset(c, r);
  switch (op->kind) {
    case kOpen:
      draw_open(op, c, r, guess);
      break;
    case kClose:
      guess->open[op->slot] = 0;
      break;
    case kAccess:
      draw_access(op, c, r, guess);
      break;
    case kBurst:
      op->content = (enum content)pick(r, kContents);
      op->bytes = 1 + pick(r, c->span / 4);
      break;
    case kView:
      op->choice = (int)pick(r, kViews);
      op->large = c->large;
      if (op->choice == kBytesView && one_in(r, 2)) op->offset = 0;
      guess->common_view[op->slot] = op->choice == kBytesView || op->choice == kCommonView;
      break;
    case kSeek:
    case kSeekShared:
      if (op->kind == kSeekShared) op->slot = 0;
      op->whence = (int)pick(r, 3);
      if (op->whence != 0) op->offset = pick(r, 3000) - 1500;
      break;
    case kAtomicity:
      op->choice = (int)pick(r, 2);
      break;
    case kMistake:
      op->choice = (int)pick(r, mistakes());
      break;
    case kDelete:
      op->choice = (int)pick(r, 64);
      break;
    default:
      break;
  }
}

struct op* draw_plan(uint64_t seed, int steps, int large) {
  struct random r = random_from(seed, 1);
  struct character c = draw_character(&r, large);
  struct guess guess = {.open = {0}};
  struct op* plan = calloc((size_t)steps + 1, sizeof *plan);
  for (int i = 0; plan != NULL && i < steps; ++i) {
    plan[i].index = i;
    draw_op(&plan[i], &c, &r, &guess);
    if (i == 0) { /* else most of a sequence could have no file */
      plan[i].amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
      plan[i].slot = plan[i].name = 0;
      guess = (struct guess){.open = {1}, .amode = {MPI_MODE_RDWR}, .common_view = {1}};
    }
  }
  return plan;
}

long long bytes_of_rank(const struct op* op, int rank) {
  if (!(op->participants >> rank & 1)) return 0;
  struct random equal = random_from(op->seed, 2), own = random_from(op->seed, 1000 + rank);
  if (op->bytes == 0 || one_in(&equal, 2)) return op->bytes;
  return pick(&own, op->bytes + 1);
}

int is_collective(const struct op* op) {
  return op->mode == kCollective || op->mode == kNonblockingCollective || op->mode == kSplit;
}
