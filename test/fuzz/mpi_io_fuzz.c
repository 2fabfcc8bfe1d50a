/* Runs one random sequence of MPI-IO calls on two files, of ROMIO's own driver and of ours, and
 * compares all that a program can see. README.md says how to use it.
 *
 *   mpi_io_fuzz [options] DIRECTORY
 *
 *   --seed N           which sequence
 *   --steps N          how many operations it has
 *   --only I,J,...     run these only
 *   --list             print the operations, run nothing
 *   --verbose          print each operation before it runs
 *   --sync             writes need sync, barrier, sync to be seen
 *   --check            only compare what an earlier job left in DIRECTORY
 *   --large            operations of much data
 *   --falsify I        do operation I otherwise on the second driver: a byte, a size or an error
 *   --report FILE      also write what differs there: mpiexec loses output when a job aborts
 *   --drivers A:,B:    other drivers than ufs: and dedup:
 *
 * DIRECTORY must exist. Ends with 0 if there is no difference.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "calls.h"
#include "compare.h"
#include "files.h"
#include "view.h"

int rank, ranks;
const struct op* running;

static unsigned long long seed;
static int steps = 60, large, list, verbose, check, falsified = -1;
static const char* only;
static const char* report;
static const char* directory;

/* ---- What check.h declares --------------------------------------------------------------------
 */

const char* error_text(int code) {
  static char text[MPI_MAX_ERROR_STRING + 1];
  int length;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "?");
  for (char* at = text; *at != '\0'; ++at) {
    if (*at == '\n') *at = ' ';
  }
  return text;
}

int error_class(int code) {
  int result = -1;
  MPI_Error_class(code, &result);
  return result;
}

int is_falsified(const struct op* op, int driver) {
  return op->index == falsified && driver == kSecond;
}

void* allocate(size_t bytes) {
  void* memory = calloc(1, bytes + 1);
  CHECK(memory != NULL);
  return memory;
}

void barrier(void) {
  MPI(MPI_Barrier(MPI_COMM_WORLD));
}

void fail(int code, const char* file, int line, const char* format, ...) {
  char text[2000];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  /* In one piece: other ranks may fail at the same time. */
  char* whole = NULL;
  size_t length = 0;
  FILE* out = open_memstream(&whole, &length);
  if (out != NULL) {
    fprintf(out, "%s: seed %llu, rank %d of %d: %s (%s:%d)\n",
            code == kDiffers ? "DIFFERENCE" : "BROKEN", seed, rank, ranks, text, file, line);
    if (running != NULL) {
      fputs("  in ", out);
      describe(running, out);
      fputs("\n", out);
    }
    fclose(out);
    fwrite(whole, 1, length, stderr);
    FILE* also = report == NULL ? NULL : fopen(report, "a");
    if (also != NULL) {
      fwrite(whole, 1, length, also);
      fclose(also);
    }
  }
  MPI_Abort(MPI_COMM_WORLD, code);
  abort();
}

/* ---- The sequence -----------------------------------------------------------------------------
 */

static void run(const struct op* op) {
  running = op;
  if (verbose && rank == 0) {
    describe(op, stdout);
    puts("");
    fflush(stdout);
  }
  switch (op->kind) {
    case kOpen:
      open_slot(op);
      break;
    case kClose:
      close_slot(&slots[op->slot]);
      break;
    case kAccess:
      run_access(op);
      break;
    case kBurst:
      run_burst(op);
      break;
    case kView:
      set_view(op);
      break;
    case kSeek:
      seek(op, 0);
      break;
    case kSeekShared:
      seek(op, 1);
      break;
    case kSetSize:
    case kPreallocate:
      set_size(op);
      break;
    case kSync:
    case kAtomicity:
      sync_or_set_atomicity(op);
      break;
    case kDelete:
      delete_file(op);
      break;
    case kCompare:
      compare_file(op->name, op->comm, op->seed);
      break;
    case kQuery:
      query(op);
      break;
    case kMistake:
      mistake(op);
      break;
    default:
      CHECK(0);
  }
  observe();
}

static int wanted(int index) {
  if (only == NULL) return 1;
  for (const char* at = only; *at != '\0';) {
    char* end;
    if (strtol(at, &end, 10) == index && end != at) return 1;
    CHECK(end != at);
    at = *end == ',' ? end + 1 : end;
  }
  return 0;
}

static void compare_everything(void) {
  running = NULL;
  for (int name = 0; name < kNames; ++name) {
    compare_file(name, kWorld, 0);
    compare_file(name, kSelf, 1);
  }
}

static void run_plan(const struct op* plan) {
  for (int i = 0; i < steps; ++i) {
    if (wanted(i)) run(&plan[i]);
  }
  running = NULL;
  for (int s = 0; s < kSlots; ++s) close_slot(&slots[s]);
  compare_everything();
}

static void list_plan(const struct op* plan) {
  for (int i = 0; i < steps; ++i) {
    if (!wanted(i)) continue;
    describe(&plan[i], stdout);
    puts("");
  }
}

static int usage(void) {
  if (rank == 0) fprintf(stderr, "usage: mpi_io_fuzz [options] DIRECTORY (see mpi_io_fuzz.c)\n");
  MPI_Finalize();
  return 2;
}

static int is(const char* word, const char* option) {
  return strcmp(word, option) == 0;
}

static int read_drivers(char* both) {
  char* comma = strchr(both, ',');
  if (comma == NULL) return 0;
  *comma = '\0';
  driver_name[kFirst] = both;
  driver_name[kSecond] = comma + 1;
  return 1;
}

static int read_option_with_value(const char* word, char* value) {
  if (value == NULL) return 0;
  if (is(word, "--drivers")) return read_drivers(value);
  if (is(word, "--seed")) {
    seed = strtoull(value, NULL, 10);
  } else if (is(word, "--steps")) {
    steps = atoi(value);
  } else if (is(word, "--only")) {
    only = value;
  } else if (is(word, "--report")) {
    report = value;
  } else if (is(word, "--falsify")) {
    falsified = atoi(value);
  } else {
    return 0;
  }
  return 1;
}

static int read_options(char** argv) {
  for (char** word = argv + 1; *word != NULL; ++word) {
    if (is(*word, "--list")) {
      list = 1;
    } else if (is(*word, "--large")) {
      large = 1;
    } else if (is(*word, "--verbose")) {
      verbose = 1;
    } else if (is(*word, "--sync")) {
      sync_visibility = 1;
    } else if (is(*word, "--check")) {
      check = 1;
    } else if ((*word)[0] != '-' && directory == NULL) {
      directory = *word;
    } else if (read_option_with_value(*word, word[1])) {
      ++word;
    } else {
      return 0;
    }
  }
  return list || directory != NULL;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!read_options(argv)) return usage();
  CHECK(ranks <= 32); /* the bits of participants */
  struct op* plan = draw_plan(seed, steps, large);
  CHECK(plan != NULL);
  if (list) {
    if (rank == 0) list_plan(plan);
  } else {
    set_names(directory);
    if (check) {
      compare_everything();
    } else {
      run_plan(plan);
    }
    if (rank == 0) printf("no difference\n");
  }
  free(plan);
  MPI_Finalize();
  return 0;
}
