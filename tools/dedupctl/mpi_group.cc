// The only part of dedupctl that knows MPI, beside what it asks of the engine.
#include <mpi.h>

#include <algorithm>

#include "tools/dedupctl/group.h"

namespace dedup::ctl {
namespace {

// What goes in one message: counts are ints.
constexpr std::size_t kMost = std::size_t{1} << 30;

class MpiGroup final : public Group {
 public:
  MpiGroup() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::vector<Bytes> gather(const Bytes& mine) override {
    const std::uint64_t length = mine.size();
    std::vector<std::uint64_t> lengths(is_root() ? static_cast<std::size_t>(size_) : 0);
    MPI_Gather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (!is_root()) {
      send(0, mine);
      return {};
    }
    std::vector<Bytes> all{mine};
    for (int r = 1; r < size_; ++r) {
      all.emplace_back(lengths[static_cast<std::size_t>(r)]);
      receive(r, all.back());
    }
    return all;
  }

  void broadcast(int root, Bytes& bytes) override {
    std::uint64_t length = bytes.size();
    MPI_Bcast(&length, 1, MPI_UINT64_T, root, MPI_COMM_WORLD);
    bytes.resize(length);
    for (std::size_t at = 0; at < length; at += kMost) {
      MPI_Bcast(bytes.data() + at, static_cast<int>(std::min(kMost, length - at)), MPI_BYTE, root,
                MPI_COMM_WORLD);
    }
  }

  void sum(std::span<std::uint64_t> values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_UINT64_T,
                  MPI_SUM, MPI_COMM_WORLD);
  }

  void minimum(std::span<std::uint64_t> values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_UINT64_T,
                  MPI_MIN, MPI_COMM_WORLD);
  }

  void exchange(std::span<const Bytes> to, std::span<Bytes> from) override {
    std::vector<MPI_Request> requests;
    const auto each = [&](auto bytes, auto&& start) {
      for (int r = 0; r < size_; ++r) {
        auto& part = bytes[static_cast<std::size_t>(r)];
        for (std::size_t at = 0; at < part.size(); at += kMost) {
          start(part.data() + at, static_cast<int>(std::min(kMost, part.size() - at)), r,
                &requests.emplace_back());
        }
      }
    };
    each(from, [](std::byte* data, int size, int rank, MPI_Request* request) {
      MPI_Irecv(data, size, MPI_BYTE, rank, 1, MPI_COMM_WORLD, request);
    });
    each(to, [](const std::byte* data, int size, int rank, MPI_Request* request) {
      MPI_Isend(data, size, MPI_BYTE, rank, 1, MPI_COMM_WORLD, request);
    });
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

  void end() override { MPI_Finalize(); }

 private:
  static void send(int rank, const Bytes& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kMost) {
      MPI_Send(bytes.data() + at, static_cast<int>(std::min(kMost, bytes.size() - at)), MPI_BYTE,
               rank, 0, MPI_COMM_WORLD);
    }
  }
  static void receive(int rank, Bytes& bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kMost) {
      MPI_Recv(bytes.data() + at, static_cast<int>(std::min(kMost, bytes.size() - at)), MPI_BYTE,
               rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }

  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<Group> make_mpi_group() {
  MPI_Init(nullptr, nullptr);
  return std::make_unique<MpiGroup>();
}

}  // namespace dedup::ctl
