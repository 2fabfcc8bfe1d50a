// The fastest other way to two copies: each rank writes its data to a file of its own and sends it
// to a partner, half way round, which writes it to a second file. Sending and writing overlap,
// writes are of the size that is fastest, and both files are flushed before the clock stops.
//
//   partner_copy DIRECTORY BYTES [fsync]
//
// Prints one line of JSON. What was written is read back and compared, outside of what is timed.
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/data/data.h"
#include "bench/programs/common.h"

namespace dedup::bench {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;     // sent
constexpr std::size_t kAtOnce = std::size_t{128} << 10;  // written

int rank, ranks;

// A file that is written from its start to its end.
class Copy {
 public:
  Copy(const std::string& directory, const char* kind, bool flush)
      : path_(directory + "/" + kind + "." + std::to_string(rank)),
        flush_(flush),
        fd_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    if (fd_ < 0) check(Status::from_errno(errno, path_));
  }
  ~Copy() { ::close(fd_); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void write(const std::byte* data, std::size_t size) {
    const std::uint64_t first = at_;
    while (size > 0) {
      const ssize_t done = ::write(fd_, data, std::min(size, kAtOnce));
      if (done < 0) check(Status::from_errno(errno, path_));
      data += done;
      size -= static_cast<std::size_t>(done);
      at_ += static_cast<std::uint64_t>(done);
    }
    // The disk begins while the rest is on its way.
    if (flush_ && sync_file_range(fd_, static_cast<off_t>(first), static_cast<off_t>(at_ - first),
                                  SYNC_FILE_RANGE_WRITE) != 0) {
      check(Status::from_errno(errno, path_));
    }
  }
  void flush() const {
    if (flush_ && fsync(fd_) != 0) check(Status::from_errno(errno, path_));
  }
  std::uint64_t wrong_bytes(const Data& data, unsigned owner) const {
    std::vector<std::byte> expected(kPiece);
    std::vector<std::byte> found(kPiece);
    std::uint64_t wrong = 0;
    for (std::uint64_t at = 0; at < data.bytes_a_rank(); at += kPiece) {
      const std::size_t size = std::min<std::uint64_t>(kPiece, data.bytes_a_rank() - at);
      data.fill(owner, 0, at, std::span(expected).first(size));
      if (pread(fd_, found.data(), size, static_cast<off_t>(at)) != static_cast<ssize_t>(size) ||
          std::memcmp(expected.data(), found.data(), size) != 0) {
        wrong += size;
      }
    }
    return wrong;
  }

 private:
  std::string path_;
  bool flush_;
  int fd_;
  std::uint64_t at_ = 0;
};

int run(const std::string& directory, std::uint64_t bytes, bool flush) {
  const Data data =
      value_of(Data::create(*find_profile("unique"), 1, static_cast<unsigned>(ranks), bytes));
  std::vector<std::byte> mine(bytes);
  data.fill(static_cast<unsigned>(rank), 0, 0, mine);
  std::vector<std::byte> theirs[2] = {std::vector<std::byte>(kPiece),
                                      std::vector<std::byte>(kPiece)};
  const int half = std::max(ranks / 2, 1);
  const int to = (rank + half) % ranks;
  const int from = (rank + ranks - half) % ranks;

  Copy own(directory, "own", flush);
  Copy partners(directory, "partner", flush);
  const auto size_at = [&](std::uint64_t at) {
    return static_cast<int>(std::min<std::uint64_t>(kPiece, bytes - at));
  };
  const double seconds = slowest([&] {
    MPI_Request receives[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Request send = MPI_REQUEST_NULL;
    const auto receive = [&](std::uint64_t at) {
      const std::size_t slot = at / kPiece % 2;
      MPI_Irecv(theirs[slot].data(), size_at(at), MPI_BYTE, from, 0, MPI_COMM_WORLD,
                &receives[slot]);
    };
    receive(0);
    for (std::uint64_t at = 0; at < bytes; at += kPiece) {
      if (at + kPiece < bytes) receive(at + kPiece);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      MPI_Isend(mine.data() + at, size_at(at), MPI_BYTE, to, 0, MPI_COMM_WORLD, &send);
      own.write(mine.data() + at, static_cast<std::size_t>(size_at(at)));
      const std::size_t slot = at / kPiece % 2;
      MPI_Wait(&receives[slot], MPI_STATUS_IGNORE);
      partners.write(theirs[slot].data(), static_cast<std::size_t>(size_at(at)));
    }
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    own.flush();
    partners.flush();
  });

  const std::uint64_t wrong =
      sum_over_ranks(own.wrong_bytes(data, static_cast<unsigned>(rank)) +
                     partners.wrong_bytes(data, static_cast<unsigned>(from)));
  if (wrong != 0) {
    if (rank == 0) std::fprintf(stderr, "%s: wrong bytes in the copies\n", directory.c_str());
    return 1;
  }
  const nlohmann::ordered_json line = {{"ranks", ranks},
                                       {"bytes_a_rank", bytes},
                                       {"seconds", seconds},
                                       {"checked_bytes", sum_over_ranks(2 * bytes)}};
  print_line(rank, line);
  return 0;
}

}  // namespace
}  // namespace dedup::bench

int main(int argc, char** argv) {
  using namespace dedup::bench;
  return run_program(argc, argv, rank, ranks, [&] {
    if (argc == 3 || (argc == 4 && std::string(argv[3]) == "fsync")) {
      return run(argv[1], std::stoull(argv[2]), argc == 4);
    }
    if (rank == 0) std::fprintf(stderr, "usage: partner_copy DIRECTORY BYTES [fsync]\n");
    return 2;
  });
}
