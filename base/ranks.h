// The ranks that do something together: of a communicator, or this process alone (OneRank). No MPI
// is known here, so that the same code also runs where one program plays all nodes
// (test/simulation), and without an mpiexec.
//
// What is not marked as local is collective: all ranks call it, in the same order. One thread at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/types.h"

namespace dedup {

// How a rank waits for the others: polling, where all are about to come, or leaving its core to
// them (engine/mpi/wait.h), where they, or the services that they wait for, have work to do first.
enum class Waiting { kPolling, kPatient };

enum class Combining { kSum, kLeast, kLargest };

// What one rank has for another: something short, and much that follows from it. A change of `said`
// on its way ends the job, as where MPI itself fails; who gets `bulk` has to find one.
struct Letter {
  Bytes said;
  Bytes bulk;
};

class Ranks {
 public:
  virtual ~Ranks() = default;

  // Local.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  bool is_root() const { return rank() == 0; }
  // Local. Whether this rank speaks to a node's service when one rank must do so for all: those of
  // a job's topology do for their own node's; without one they are dealt in turn.
  bool speaks_for(NodeIndex node) const { return speaker_for(node) == rank(); }
  // Local. Which rank does.
  virtual int speaker_for(NodeIndex node) const { return node % size(); }

  // Element by element, of all ranks' values, which are as many on each, on all ranks. Values for
  // kLeast and kLargest are below 2^63: MPICH 4.0.2 compares MPI_UINT64_T as if it had a sign.
  // Synchronises. kUnreachable if a rank cannot be reached, where that does not end the job.
  virtual Status combine(Combining how, std::span<std::uint64_t> values, Waiting waiting) const = 0;
  // What the root has, on all ranks. The root does not wait for the others.
  virtual void broadcast(Bytes& bytes, int root) const = 0;
  // The same, as Waiting::kPatient has it.
  virtual void broadcast_patiently(Bytes& bytes, int root) const { broadcast(bytes, root); }
  // The same of rank 0's.
  virtual void broadcast(Id128& id) const = 0;
  // All ranks' bytes, in order of ranks, on rank 0; empty elsewhere.
  virtual std::vector<Bytes> gather(const Bytes& mine) const = 0;
  // to[r] goes to rank r; what comes back is from each rank.
  virtual std::vector<Bytes> exchange(const std::vector<Bytes>& to) const = 0;
  // Collective over `partners` alone, the same ranks, ascending, on each, this one among them.
  // to[i] goes to partners[i], and from[i] comes from there; what it had before is memory to be
  // used. `meanwhile` is called once, while they are on their way, if that takes time.
  virtual void exchange_letters(std::span<const int> partners, std::span<const Letter> to,
                                std::vector<Letter>& from,
                                const std::function<void()>& meanwhile) const = 0;

  // Where a rank cannot be reached, these leave the values as they were: who goes on agrees.
  void sum(std::span<std::uint64_t> values) const;
  void least(std::span<std::uint64_t> values) const;
  std::uint64_t largest(std::uint64_t value) const;

  // Ok if all ranks' statuses are; else, on every rank, the error of the lowest rank that has one:
  // the same code everywhere, and the same message. Synchronises.
  Status agree(const Status& mine, Waiting waiting = Waiting::kPolling) const;
  // The same, and on success the largest of all ranks' values in `value`.
  Status agree_max(const Status& mine, std::uint64_t& value,
                   Waiting waiting = Waiting::kPolling) const;

  // All ranks' bytes on rank 0, or there the error of the lowest rank that has one; ok and empty
  // elsewhere, whatever became of it: rank 0 shares that.
  Result<std::vector<Bytes>> gather_if_all_ok(const Status& mine, Bytes bytes) const;

  // Rank 0's outcome of what it does for all, and if that is ok what it has, on all ranks. Rank 0
  // does not wait for the others.
  Status share(const Status& of_rank_0) const;
  template <typename T>
  Status share(const Status& of_rank_0, T& value, Waiting waiting = Waiting::kPolling) const {
    Bytes bytes;
    if (is_root() && of_rank_0.is_ok()) bytes = encoded(value);
    DEDUP_TRY(share_bytes(of_rank_0, bytes, waiting));
    return is_root() ? Status::ok() : take(bytes, value);
  }

 private:
  Status share_bytes(const Status& of_rank_0, Bytes& bytes, Waiting waiting) const;
  static Status not_understood();
  template <typename T>
  static Status take(const Bytes& bytes, T& value) {
    std::optional<T> told = decoded<T>(bytes);
    if (!told) return not_understood();
    value = std::move(*told);
    return Status::ok();
  }
};

// This process alone.
class OneRank final : public Ranks {
 public:
  using Ranks::broadcast;
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status combine(Combining, std::span<std::uint64_t>, Waiting) const override {
    return Status::ok();
  }
  void broadcast(Bytes&, int) const override {}
  void broadcast(Id128&) const override {}
  std::vector<Bytes> gather(const Bytes& mine) const override { return {mine}; }
  std::vector<Bytes> exchange(const std::vector<Bytes>& to) const override { return to; }
  void exchange_letters(std::span<const int>, std::span<const Letter> to, std::vector<Letter>& from,
                        const std::function<void()>& meanwhile) const override {
    from.assign(to.begin(), to.end());
    meanwhile();
  }
};

}  // namespace dedup
