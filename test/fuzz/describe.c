#include <stddef.h>

#include "mistakes.h"
#include "plan.h"

static void describe_amode(int amode, FILE* out) {
  static const struct {
    int bit;
    const char* name;
  } names[] = {{MPI_MODE_RDONLY, "RDONLY"},
               {MPI_MODE_WRONLY, "WRONLY"},
               {MPI_MODE_RDWR, "RDWR"},
               {MPI_MODE_CREATE, "CREATE"},
               {MPI_MODE_EXCL, "EXCL"},
               {MPI_MODE_APPEND, "APPEND"},
               {MPI_MODE_SEQUENTIAL, "SEQUENTIAL"},
               {MPI_MODE_DELETE_ON_CLOSE, "DELETE_ON_CLOSE"},
               {MPI_MODE_UNIQUE_OPEN, "UNIQUE_OPEN"}};
  const char* between = "";
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (!(amode & names[i].bit)) continue;
    fprintf(out, "%s%s", between, names[i].name);
    between = "|";
  }
}

static void describe_access(const struct op* op, FILE* out) {
  static const char* const contents[] = {"unique", "same on all ranks", "zeros", "repeated",
                                         "half zeros"};
  static const char* const pointers[] = {"_at", "", "_shared", "_ordered"};
  static const char* const suffixes[] = {"", "", "_all", "_all", "_all_begin, _end"};
  const int starts = op->mode == kNonblocking || op->mode == kNonblockingCollective;
  const int ordered = op->pointer == kOrdered;
  fprintf(out, "%s%s%s%s", starts ? "i" : "", op->write ? "write" : "read", pointers[op->pointer],
          ordered ? (op->mode == kSplit ? "_begin, _end" : "") : suffixes[op->mode]);
  if (op->pointer == kExplicit) fprintf(out, " about %lld", op->offset);
  fprintf(out, ", up to %lld bytes a rank, ranks %#x", op->bytes, op->participants & 0xff);
  if (op->write) fprintf(out, ", %s", contents[op->content]);
}

void describe(const struct op* op, FILE* out) {
  static const char* const kinds[kOpKinds] = {[kOpen] = "open",
                                              [kClose] = "close",
                                              [kAccess] = "",
                                              [kBurst] = "several accesses of each rank",
                                              [kView] = "set_view",
                                              [kSeek] = "seek",
                                              [kSeekShared] = "seek_shared",
                                              [kSetSize] = "set_size",
                                              [kPreallocate] = "preallocate",
                                              [kSync] = "sync",
                                              [kAtomicity] = "set_atomicity",
                                              [kDelete] = "delete",
                                              [kCompare] = "compare the whole file",
                                              [kQuery] = "queries",
                                              [kMistake] = "mistake:"};
  static const char* const comms[] = {"all ranks",       "all ranks in reverse",
                                      "the first ranks", "even and odd ranks",
                                      "each rank alone", "one rank alone"};
  static const char* const views[kViews] = {[kBytesView] = "bytes",
                                            [kTiledView] = "tiled",
                                            [kCommonView] = "the same on all",
                                            [kDarrayView] = "darray"};
  static const char* const whences[] = {"SET", "CUR", "END"};
  fprintf(out, "%3d: ", op->index);
  if (op->kind == kDelete || op->kind == kCompare) {
    fprintf(out, "%s %c", kinds[op->kind], 'A' + op->name);
  } else {
    fprintf(out, "handle %d: %s", op->slot, kinds[op->kind]);
  }
  switch (op->kind) {
    case kOpen:
      fprintf(out, " %c by %s, ", 'A' + op->name, comms[op->comm]);
      describe_amode(op->amode, out);
      break;
    case kAccess:
      describe_access(op, out);
      break;
    case kBurst:
      fprintf(out, " about %lld, %lld bytes a rank", op->offset, op->bytes);
      break;
    case kView:
      fprintf(out, " at %lld, %s", op->offset, views[op->choice]);
      break;
    case kSeek:
    case kSeekShared:
      fprintf(out, " %lld %s", op->offset, whences[op->whence]);
      break;
    case kSetSize:
    case kPreallocate:
      fprintf(out, " about %lld", op->offset);
      break;
    case kAtomicity:
      fprintf(out, " %d", op->choice);
      break;
    case kCompare:
      fprintf(out, " by %s", comms[op->comm]);
      break;
    case kMistake:
      fprintf(out, " %s", mistake_name(op->choice));
      break;
    default:
      break;
  }
}
