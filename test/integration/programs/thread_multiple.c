/* Threads with a file each, all at once, opens and closes included: blocking, nonblocking and split
 * collectives and independent accesses, in an order that differs from rank to rank, so that a
 * library that waits for other ranks with a lock held hangs.
 *
 * usage: thread_multiple FILE-NAME [THREADS] [ROUNDS]     exit: 0 if all data was right
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kInts = 20000, kMaxThreads = 64 };

struct task {
  int number, rounds, rank, ranks;
  MPI_Comm comm;
  const char* base;
  int failures;
};

static int value(const struct task* t, int round, int phase, int rank, int i) {
  return ((t->number * 31 + round) * 7 + phase) * 1000003 + rank * 65537 + i;
}

static void expect(struct task* t, int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "thread %d of rank %d: %s\n", t->number, t->rank, what);
  t->failures++;
}

static void call(struct task* t, int result, const char* what) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  if (result == MPI_SUCCESS) return;
  MPI_Error_string(result, text, &length);
  fprintf(stderr, "thread %d of rank %d: %s: %s\n", t->number, t->rank, what, text);
  t->failures++;
}

static void fill(const struct task* t, int* data, int round, int phase, int rank) {
  for (int i = 0; i < kInts; ++i) data[i] = value(t, round, phase, rank, i);
}

static void check(struct task* t, const int* data, int round, int phase, int rank,
                  const char* what) {
  int wrong = 0;
  for (int i = 0; i < kInts; ++i) wrong += data[i] != value(t, round, phase, rank, i);
  expect(t, wrong == 0, what);
}

static void one_round(struct task* t, int round, int* out, int* in) {
  char name[4096];
  MPI_File fh;
  MPI_Request request;
  MPI_Status status;
  int count;
  const MPI_Offset mine = (MPI_Offset)t->rank * kInts;
  const MPI_Offset all = (MPI_Offset)t->ranks * kInts;
  const int other = (t->rank + 1) % t->ranks;
  snprintf(name, sizeof name, "%s.thread%d", t->base, t->number);

  call(t, MPI_File_open(t->comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &fh),
       "open");
  if (t->failures) return;
  call(t, MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), "set_view");

  fill(t, out, round, 0, t->rank);
  call(t, MPI_File_write_at_all(fh, mine, out, kInts, MPI_INT, &status), "write_at_all");
  MPI_Get_count(&status, MPI_INT, &count);
  expect(t, count == kInts, "write_at_all wrote another number of items");
  call(t, MPI_File_read_at_all(fh, (MPI_Offset)other * kInts, in, kInts, MPI_INT, &status),
       "read_at_all");
  check(t, in, round, 0, other, "wrong data after write_at_all");

  fill(t, out, round, 1, t->rank);
  call(t, MPI_File_iwrite_at_all(fh, all + mine, out, kInts, MPI_INT, &request), "iwrite_at_all");
  call(t, MPI_Wait(&request, &status), "wait for iwrite_at_all");
  MPI_Barrier(t->comm);
  call(t, MPI_File_iread_at_all(fh, all + (MPI_Offset)other * kInts, in, kInts, MPI_INT, &request),
       "iread_at_all");
  call(t, MPI_Wait(&request, &status), "wait for iread_at_all");
  check(t, in, round, 1, other, "wrong data after iwrite_at_all");

  fill(t, out, round, 2, t->rank);
  call(t, MPI_File_write_at_all_begin(fh, 2 * all + mine, out, kInts, MPI_INT), "begin");
  call(t, MPI_File_write_at_all_end(fh, out, &status), "end");
  MPI_Barrier(t->comm);
  call(t, MPI_File_read_at(fh, 2 * all + (MPI_Offset)other * kInts, in, kInts, MPI_INT, &status),
       "read_at");
  check(t, in, round, 2, other, "wrong data after write_at_all_begin");

  fill(t, out, round, 3, t->rank);
  call(t, MPI_File_iwrite_at(fh, 3 * all + mine, out, kInts, MPI_INT, &request), "iwrite_at");
  call(t, MPI_Wait(&request, &status), "wait for iwrite_at");
  call(t, MPI_File_sync(fh), "sync");
  MPI_Barrier(t->comm);
  call(t, MPI_File_read_at(fh, 3 * all + (MPI_Offset)other * kInts, in, kInts, MPI_INT, &status),
       "read_at");
  check(t, in, round, 3, other, "wrong data after iwrite_at");

  call(t, MPI_File_close(&fh), "close");
  if (t->rank == 0 && round == t->rounds - 1) {
    call(t, MPI_File_delete(name, MPI_INFO_NULL), "delete");
  }
}

static void* work(void* argument) {
  struct task* t = argument;
  int *out = malloc(kInts * sizeof *out), *in = malloc(kInts * sizeof *in);
  for (int round = 0; round < t->rounds && t->failures == 0; ++round) one_round(t, round, out, in);
  free(out);
  free(in);
  return NULL;
}

int main(int argc, char** argv) {
  static struct task tasks[kMaxThreads];
  pthread_t threads[kMaxThreads];
  int provided, rank, ranks, failures = 0, all_failures;
  const int count = argc > 2 ? atoi(argv[2]) : 4, rounds = argc > 3 ? atoi(argv[3]) : 3;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (argc < 2 || count < 1 || count > kMaxThreads || provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "usage: thread_multiple FILE-NAME [THREADS] [ROUNDS]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < count; ++i) {
    tasks[i] = (struct task){i, rounds, rank, ranks, MPI_COMM_NULL, argv[1], 0};
    MPI_Comm_dup(MPI_COMM_WORLD, &tasks[i].comm);
  }
  for (int i = 0; i < count; ++i) {
    struct task* t = &tasks[(i + rank) % count];
    pthread_create(&threads[i], NULL, work, t);
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < count; ++i) {
    failures += tasks[i].failures;
    MPI_Comm_free(&tasks[i].comm);
  }
  MPI_Allreduce(&failures, &all_failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0)
    printf(all_failures ? "thread_multiple: %d failures\n" : "thread_multiple: ok\n", all_failures);
  MPI_Finalize();
  return all_failures != 0;
}
