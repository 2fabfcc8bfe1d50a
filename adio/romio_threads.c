#define DEDUP_DEFINES_WAITING_CALLS /* inside MPICH: these calls are not to be those below */
#include "adio/romio_threads.h"

#include <mpi.h>
#include <pthread.h>

#include "adio.h"
#include "adio/romio_glue.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int depth;

void MPIR_Ext_cs_enter(void) {
  if (depth++ == 0) pthread_mutex_lock(&lock);
}

void MPIR_Ext_cs_exit(void) {
  if (depth == 0) return;
  if (depth == 1) dedup_free_closed_files();
  if (--depth == 0) pthread_mutex_unlock(&lock);
}

int dedup_cs_suspend(void) {
  const int entered = depth;
  if (entered > 0) {
    depth = 0;
    pthread_mutex_unlock(&lock);
  }
  return entered;
}

void dedup_cs_resume(int entered) {
  if (entered > 0) {
    pthread_mutex_lock(&lock);
    depth = entered;
  }
}

/* The calls in which ROMIO waits for other processes. The linker's --wrap, inside MPICH the
 * preprocessor (add-to-mpich), turns those of ROMIO into these. The same list is in local.mk. */
#define WAITING_CALL(name, parameters, arguments)    \
  int __real_PMPI_##name parameters;                 \
  int __wrap_PMPI_##name parameters;                 \
  int __wrap_PMPI_##name parameters {                \
    const int entered = dedup_cs_suspend();          \
    const int result = __real_PMPI_##name arguments; \
    dedup_cs_resume(entered);                        \
    return result;                                   \
  }

WAITING_CALL(Allgather,
             (const void* from, int from_count, MPI_Datatype from_type, void* to, int to_count,
              MPI_Datatype to_type, MPI_Comm comm),
             (from, from_count, from_type, to, to_count, to_type, comm))
WAITING_CALL(Allgatherv,
             (const void* from, int from_count, MPI_Datatype from_type, void* to,
              const int* to_counts, const int* displacements, MPI_Datatype to_type, MPI_Comm comm),
             (from, from_count, from_type, to, to_counts, displacements, to_type, comm))
WAITING_CALL(Allreduce,
             (const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
             (from, to, count, type, op, comm))
WAITING_CALL(Alltoall,
             (const void* from, int from_count, MPI_Datatype from_type, void* to, int to_count,
              MPI_Datatype to_type, MPI_Comm comm),
             (from, from_count, from_type, to, to_count, to_type, comm))
WAITING_CALL(Alltoallv,
             (const void* from, const int* from_counts, const int* from_displacements,
              MPI_Datatype from_type, void* to, const int* to_counts, const int* to_displacements,
              MPI_Datatype to_type, MPI_Comm comm),
             (from, from_counts, from_displacements, from_type, to, to_counts, to_displacements,
              to_type, comm))
WAITING_CALL(Alltoallw,
             (const void* from, const int from_counts[], const int from_displacements[],
              const MPI_Datatype from_types[], void* to, const int to_counts[],
              const int to_displacements[], const MPI_Datatype to_types[], MPI_Comm comm),
             (from, from_counts, from_displacements, from_types, to, to_counts, to_displacements,
              to_types, comm))
WAITING_CALL(Barrier, (MPI_Comm comm), (comm))
WAITING_CALL(Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
             (buffer, count, type, root, comm))
WAITING_CALL(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* created),
             (comm, group, created))
WAITING_CALL(Comm_dup, (MPI_Comm comm, MPI_Comm* created), (comm, created))
WAITING_CALL(Comm_free, (MPI_Comm * comm), (comm))
WAITING_CALL(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* created),
             (comm, color, key, created))
WAITING_CALL(Gather,
             (const void* from, int from_count, MPI_Datatype from_type, void* to, int to_count,
              MPI_Datatype to_type, int root, MPI_Comm comm),
             (from, from_count, from_type, to, to_count, to_type, root, comm))
WAITING_CALL(Gatherv,
             (const void* from, int from_count, MPI_Datatype from_type, void* to,
              const int* to_counts, const int* displacements, MPI_Datatype to_type, int root,
              MPI_Comm comm),
             (from, from_count, from_type, to, to_counts, displacements, to_type, root, comm))
WAITING_CALL(Recv,
             (void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Status* status),
             (buffer, count, type, source, tag, comm, status))
WAITING_CALL(Send,
             (const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm),
             (buffer, count, type, target, tag, comm))
WAITING_CALL(Wait, (MPI_Request * request, MPI_Status* status), (request, status))
WAITING_CALL(Waitall, (int count, MPI_Request requests[], MPI_Status* statuses),
             (count, requests, statuses))
WAITING_CALL(Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status),
             (count, requests, index, status))
WAITING_CALL(Win_create,
             (void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window),
             (base, size, unit, info, comm, window))
WAITING_CALL(Win_free, (MPI_Win * window), (window))
WAITING_CALL(Win_lock, (int kind, int rank, int assert, MPI_Win window),
             (kind, rank, assert, window))
WAITING_CALL(Win_unlock, (int rank, MPI_Win window), (rank, window))
