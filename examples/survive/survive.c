/* survive FILE [STEP FIRST LAST]: heat in a rod, checkpointed to FILE; goes on when ranks are lost.
 *
 * After STEP the ranks FIRST to LAST of MPI_COMM_WORLD are gone, as if their node had
 * failed. The others go on from the last checkpoint, in the same processes: they make a
 * communicator without the lost ranks, open the file on it, and each reads an equal part of what
 * all have written.
 *
 *   dedup-mpiexec --nodes 4 --store /tmp/stores -disable-auto-cleanup -n 8 \
 *       survive dedup:/tmp/rod 35 2 3
 *
 * The result is the same to the last bit, whatever the number of ranks, and however many are lost.
 *
 * What an MPI that tolerates faults would do by itself is done by hand here, with plain MPICH: all
 * know who dies when, so that MPI_Comm_split, before, stands for MPIX_Comm_shrink, after. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kCells = 1 << 20, kSteps = 60, kEvery = 10, kHeader = 4096 };

/* Cells first … first + count - 1 of the rod, at 1 … count; beside them copies of the neighbours'.
 */
struct part {
  MPI_Comm comm;
  int rank, ranks;
  int first, count;
  double *now, *next;
};

static void must(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static struct part divide(MPI_Comm comm) {
  struct part p = {.comm = comm};
  MPI_Comm_rank(comm, &p.rank);
  MPI_Comm_size(comm, &p.ranks);
  p.first = (int)((long)kCells * p.rank / p.ranks);
  p.count = (int)((long)kCells * (p.rank + 1) / p.ranks) - p.first;
  p.now = calloc((size_t)p.count + 2, sizeof(double));
  p.next = calloc((size_t)p.count + 2, sizeof(double));
  if (p.now == NULL || p.next == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return p;
}

static void give_up(struct part* p) {
  free(p->now);
  free(p->next);
}

/* A warm half, with some hot cells. */
static void begin(struct part* p) {
  for (int i = 0; i < p->count; ++i) {
    const int cell = p->first + i;
    p->now[i + 1] = (cell < kCells / 2 ? 1 : 0) + (cell % 1000 == 7 ? 50 : 0);
  }
}

static void step(struct part* p) {
  const int left = p->rank > 0 ? p->rank - 1 : MPI_PROC_NULL;
  const int right = p->rank + 1 < p->ranks ? p->rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(&p->now[1], 1, MPI_DOUBLE, left, 0, &p->now[p->count + 1], 1, MPI_DOUBLE, right, 0,
               p->comm, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&p->now[p->count], 1, MPI_DOUBLE, right, 1, &p->now[0], 1, MPI_DOUBLE, left, 1,
               p->comm, MPI_STATUS_IGNORE);
  for (int i = 1; i <= p->count; ++i) {
    p->next[i] = p->now[i] + 0.25 * (p->now[i - 1] - 2 * p->now[i] + p->now[i + 1]);
  }
  double* const old = p->now;
  p->now = p->next;
  p->next = old;
}

/* Until the close has returned, what is read is the checkpoint before. */
static void save(const struct part* p, const char* name, long steps) {
  MPI_File file;
  must(MPI_File_open(p->comm, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file), name);
  if (p->rank == 0) {
    must(MPI_File_write_at(file, 0, &steps, 1, MPI_LONG, MPI_STATUS_IGNORE), name);
  }
  must(MPI_File_write_at_all(file, kHeader + (MPI_Offset)p->first * (MPI_Offset)sizeof(double),
                             &p->now[1], p->count, MPI_DOUBLE, MPI_STATUS_IGNORE),
       name);
  must(MPI_File_close(&file), name);
}

/* The steps that were done by then. */
static long load(struct part* p, const char* name) {
  MPI_File file;
  long steps = 0;
  must(MPI_File_open(p->comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file), name);
  must(MPI_File_read_at_all(file, 0, &steps, 1, MPI_LONG, MPI_STATUS_IGNORE), name);
  must(MPI_File_read_at_all(file, kHeader + (MPI_Offset)p->first * (MPI_Offset)sizeof(double),
                            &p->now[1], p->count, MPI_DOUBLE, MPI_STATUS_IGNORE),
       name);
  must(MPI_File_close(&file), name);
  return steps;
}

/* Of the cells' bits: no order of summing, no rounding. */
static unsigned long checksum(const struct part* p) {
  unsigned long sum = 0;
  for (int i = 1; i <= p->count; ++i) {
    unsigned long bits;
    memcpy(&bits, &p->now[i], sizeof bits);
    sum += bits * (2UL * (unsigned long)(p->first + i) + 1);
  }
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UNSIGNED_LONG, MPI_SUM, p->comm);
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  /* MPICH's mpiexec sends it to all when a process has died, if it does not end them itself; it
   * makes MPI's next call fail, on whatever communicator. */
  signal(SIGUSR1, SIG_IGN);
  if (argc != 2 && argc != 5) {
    fprintf(stderr, "usage: survive FILE [STEP FIRST LAST]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const char* const name = argv[1];
  const long end = argc == 5 ? atol(argv[2]) : -1;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int dies = argc == 5 && rank >= atoi(argv[3]) && rank <= atoi(argv[4]);
  MPI_Comm survivors;
  MPI_Comm_split(MPI_COMM_WORLD, dies ? MPI_UNDEFINED : 0, rank, &survivors);

  struct part p = divide(MPI_COMM_WORLD);
  begin(&p);
  int is_whole = 1;
  for (long done = 0; done < kSteps;) {
    step(&p);
    ++done;
    if (done % kEvery == 0) save(&p, name, done);
    if (!is_whole || done != end) continue;
    /* To all others as if they were killed. (What a signal ends, MPICH's mpiexec ends together with
     * all ranks of the host, which has the other simulated nodes.) */
    if (dies) _exit(1);
    is_whole = 0;
    give_up(&p);
    p = divide(survivors);
    done = load(&p, name);
    if (p.rank == 0)
      printf("lost ranks after step %ld: %d go on from step %ld\n", end, p.ranks, done);
  }
  const unsigned long sum = checksum(&p);
  if (p.rank == 0) printf("after %d steps: %016lx\n", kSteps, sum);
  fflush(stdout);
  if (!is_whole) {
    /* MPI_Finalize would wait for the lost ranks. */
    MPI_Barrier(p.comm);
    _exit(0);
  }
  give_up(&p);
  MPI_Finalize();
  return 0;
}
