/* Counts the requests that each rank makes to services, call by call:
 *
 *   requests FILE
 *
 * All ranks open FILE, write to it, read, sync and close it; in between rank 1 writes alone. After
 * each step rank 0 prints a line for each kind of request: the step, the number of the kind
 * (service::Opcode), and how many each rank made. The program stands before the C library's
 * sendmsg, by which requests go off to other processes; of those to the own process's service a
 * test build tells (base/hooks.h). A service answers on a thread of its own, which does not count;
 * answers from this one have no kind.
 */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

enum { kBytes = 1 << 20, kLittle = 4096, kKinds = 256, kHeader = 32 };

static pthread_t main_thread;
static int counts[kKinds];

static uint32_t number_at(const unsigned char* bytes) {
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* A frame begins with its length and kind, and goes off with its body. */
static void count(const struct msghdr* message) {
  if (!pthread_equal(pthread_self(), main_thread)) return;
  if (message->msg_iovlen == 0 || message->msg_iov[0].iov_len != kHeader) return;
  const unsigned char* header = message->msg_iov[0].iov_base;
  const size_t body = message->msg_iovlen > 1 ? message->msg_iov[1].iov_len : 0;
  const uint32_t kind = number_at(header + 4);
  if (number_at(header) == body && kind != 0 && kind < kKinds) ++counts[kind];
}

void dedup_test_request(unsigned kind) {
  if (pthread_equal(pthread_self(), main_thread)) ++counts[kind];
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  count(message);
  return syscall(SYS_sendmsg, fd, message, flags);
}

static void end_of(const char* step) {
  int mine[kKinds];
  memcpy(mine, counts, sizeof mine);
  int* all = allocate(sizeof mine * (size_t)ranks);
  MPI(MPI_Gather(mine, kKinds, MPI_INT, all, kKinds, MPI_INT, 0, MPI_COMM_WORLD));
  for (int kind = 0; rank == 0 && kind < kKinds; ++kind) {
    int any = 0;
    for (int r = 0; r < ranks; ++r) any |= all[r * kKinds + kind];
    if (!any) continue;
    printf("%s %d", step, kind);
    for (int r = 0; r < ranks; ++r) printf(" %d", all[r * kKinds + kind]);
    printf("\n");
  }
  free(all);
  memset(counts, 0, sizeof counts);
  barrier();
}

/* Half of it the same on all ranks, none of it twice on one. */
static void make(unsigned char* data, unsigned version) {
  uint32_t state = version;
  for (int i = 0; i < kBytes; ++i) {
    if (i == kBytes / 2) state = version * 1000 + (unsigned)rank + 1;
    state = state * 1664525 + 1013904223;
    data[i] = (unsigned char)(state >> 24);
  }
}

int main(int argc, char** argv) {
  main_thread = pthread_self();
  MPI(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK_INT(argc, 2);
  unsigned char* data = allocate(kBytes);
  unsigned char* read = allocate(kBytes);
  const MPI_Offset mine = (MPI_Offset)rank * kBytes;
  const MPI_Offset end = (MPI_Offset)ranks * kBytes;
  MPI_File file;
  memset(counts, 0, sizeof counts);

  MPI(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                    &file));
  end_of("open");
  make(data, 1);
  MPI(MPI_File_write_at_all(file, mine, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("first-write");
  make(data, 2);
  MPI(MPI_File_write_at_all(file, mine, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("write");
  MPI(MPI_File_write_at_all(file, mine, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("write-again");
  MPI(MPI_File_read_at_all(file, mine, read, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("read");
  CHECK(memcmp(read, data, kBytes) == 0);
  MPI(MPI_File_read_at(file, mine, read, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("read-alone");
  CHECK(memcmp(read, data, kBytes) == 0);
  MPI(MPI_File_sync(file));
  end_of("sync");
  make(data, 3);
  MPI(MPI_File_write_at_all(file, mine, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("changed");
  make(data, 2);
  MPI(MPI_File_write_at_all(file, mine, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("committed");
  MPI(MPI_File_write_at_all(file, end + rank * kLittle, data, kLittle, MPI_BYTE,
                            MPI_STATUS_IGNORE));
  end_of("small-write");
  MPI(MPI_File_read_at_all(file, end + rank * kLittle, read, kLittle, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("small-read");
  CHECK(memcmp(read, data, kLittle) == 0);
  MPI(MPI_File_sync(file));
  end_of("small-sync");
  const int count_of_one = rank == 1 ? kLittle : 0;
  memset(read, 1, kLittle);
  MPI(MPI_File_write_at_all(file, 0, read, count_of_one, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("one-writes");
  MPI(MPI_File_sync(file));
  end_of("one-syncs");
  make(data, 4);
  MPI(MPI_File_write_at_all(file, mine, data, kBytes, MPI_BYTE, MPI_STATUS_IGNORE));
  end_of("last-write");
  MPI_Offset size;
  MPI(MPI_File_get_size(file, &size));
  CHECK_INT(size, end + ranks * kLittle);
  end_of("size");
  MPI(MPI_File_close(&file));
  end_of("close");
  free(data);
  free(read);
  MPI(MPI_Finalize());
  return 0;
}
