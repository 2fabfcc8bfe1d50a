/* Changes one bit of what MPI carries for the driver:
 *
 *   flips FILE FUNCTION RANK NUMBER
 *
 * All ranks write FILE collectively and sync it, rank by rank the same, so that there are
 * duplicates to be found; meanwhile the NUMBERth message that RANK gives to FUNCTION (Send, Isend,
 * Bcast, Alltoall, Gather or Allgather) goes off with one bit changed. Rank 0 prints "flipped N",
 * how many were (0 or 1), and "written CLASS". What was written without an error must be there:
 * every rank reads all of it.
 */
#include <dlfcn.h>

#include "check.h"

enum { kBytes = 300000 };

static const char* function; /* whose message is changed; NULL: nobody's */
static int number;           /* counts down to that message */
static int flipped;

/* The library's function of this name. The driver calls those with PMPI_, and finds ours first. */
static void* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  CHECK(found != NULL);
  return found;
}

/* `data`, or a copy of it with another bit in its first half, which is never freed. */
static const void* carried(const char* name, const void* data, int count, MPI_Datatype type) {
  if (function == NULL || strcmp(name, function) != 0 || count == 0 || --number != 0) return data;
  int size;
  MPI_Type_size(type, &size);
  const size_t bytes = (size_t)size * (size_t)count;
  unsigned char* copy = allocate(bytes);
  memcpy(copy, data, bytes);
  copy[bytes / 2 < 8 ? bytes / 2 : 8] ^= 4;
  flipped = 1;
  return copy;
}

int PMPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
  *(void**)&send = next("PMPI_Send");
  return send(carried("Send", data, count, type), count, type, to, tag, comm);
}

int PMPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  *(void**)&send = next("PMPI_Isend");
  return send(carried("Isend", data, count, type), count, type, to, tag, comm, request);
}

int PMPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int (*bcast)(void*, int, MPI_Datatype, int, MPI_Comm);
  int me;
  *(void**)&bcast = next("PMPI_Bcast");
  MPI_Comm_rank(comm, &me);
  void* sent = me == root ? (void*)carried("Bcast", data, count, type) : data;
  return bcast(sent, count, type, root, comm);
}

int PMPI_Alltoall(const void* data, int count, MPI_Datatype type, void* out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm) {
  int (*all_to_all)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
  int size;
  *(void**)&all_to_all = next("PMPI_Alltoall");
  MPI_Comm_size(comm, &size);
  data = carried("Alltoall", data, count * size, type);
  return all_to_all(data, count, type, out, out_count, out_type, comm);
}

int PMPI_Gather(const void* data, int count, MPI_Datatype type, void* out, int out_count,
                MPI_Datatype out_type, int root, MPI_Comm comm) {
  int (*gather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
  *(void**)&gather = next("PMPI_Gather");
  data = carried("Gather", data, count, type);
  return gather(data, count, type, out, out_count, out_type, root, comm);
}

int PMPI_Allgather(const void* data, int count, MPI_Datatype type, void* out, int out_count,
                   MPI_Datatype out_type, MPI_Comm comm) {
  int (*all_gather)(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
  *(void**)&all_gather = next("PMPI_Allgather");
  data = carried("Allgather", data, count, type);
  return all_gather(data, count, type, out, out_count, out_type, comm);
}

/* Two ranks after each other on different nodes write the same. */
static uint64_t seed_of(int writer) {
  return (uint64_t)(writer % 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(argc == 5);
  MPI_File file = open_all(argv[1], kCreate);
  unsigned char* data = allocate(kBytes);
  fill(data, seed_of(rank), 0, kBytes);
  number = atoi(argv[4]);
  if (rank == atoi(argv[3])) function = argv[2];
  int code = MPI_File_write_at_all(file, (MPI_Offset)rank * kBytes, data, kBytes, MPI_BYTE,
                                   MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS) code = MPI_File_sync(file);
  function = NULL;
  int of_all[2] = {flipped, error_class(code)};
  MPI(MPI_Allreduce(MPI_IN_PLACE, of_all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (rank == 0) printf("flipped %d\nwritten %d\n", of_all[0], of_all[1]);
  fflush(stdout);
  const int closed = MPI_File_close(&file);
  if (of_all[1] == MPI_SUCCESS) {
    MPI(closed);
    file = open_all(argv[1], MPI_MODE_RDONLY);
    for (int r = 0; r < ranks; ++r) {
      fill(data, seed_of(r), 0, kBytes);
      CHECK_BYTES(file, (MPI_Offset)r * kBytes, data, kBytes);
    }
    close_file(&file);
  }
  free(data);
  MPI_Finalize();
  return 0;
}
