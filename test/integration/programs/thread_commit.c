/* In each rank one thread commits a file, again and again, while another writes small pieces to it
 * through a handle of its own: what is written in the middle of a commit is not lost.
 *
 * usage: thread_commit FILE-NAME     exit: 0 if all data was right
 */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { kPiece = 120, kStride = 3 * kPiece, kPieces = 3000, kAtOnce = 50, kCommits = 20 };

static MPI_File own;

static MPI_Offset place(int writer, int piece) {
  return (MPI_Offset)(writer * kPieces + piece) * kStride;
}

static void* write_pieces(void* unused) {
  unsigned char data[kPiece];
  (void)unused;
  for (int i = 0; i < kPieces; ++i) {
    fill(data, 1, place(rank, i), kPiece);
    MPI(MPI_File_write_at(own, place(rank, i), data, kPiece, MPI_BYTE, MPI_STATUS_IGNORE));
    if (i % kAtOnce == 0) usleep(3000); /* the other thread's turn */
  }
  return NULL;
}

static void check_all(MPI_File file) {
  const int writer = (rank + 1) % ranks;
  for (int i = 0; i < kPieces; ++i) CHECK_WRITER(file, place(writer, i), 1, kPiece);
}

int main(int argc, char** argv) {
  int provided;
  pthread_t writer;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(argc == 2 && provided == MPI_THREAD_MULTIPLE);

  MPI_File all = open_all(argv[1], kCreate);
  own = open_on(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR);
  CHECK_INT(pthread_create(&writer, NULL, write_pieces, NULL), 0);
  for (int i = 0; i < kCommits; ++i) MPI(MPI_File_sync(all));
  CHECK_INT(pthread_join(writer, NULL), 0);
  barrier();

  running = "while it is open";
  check_all(all);
  close_file(&own);
  close_file(&all);
  running = "afterwards";
  all = open_all(argv[1], MPI_MODE_RDONLY);
  check_all(all);
  close_file(&all);
  if (rank == 0) printf("thread_commit: ok\n");
  MPI_Finalize();
  return 0;
}
