// The ranks that open, commit or close a file together, as those need them: without MPI, so that
// the same code also runs where one program plays all nodes (test/simulation).
#pragma once

#include <cstdint>
#include <vector>

#include "base/codec.h"
#include "base/status.h"
#include "base/types.h"

namespace dedup::engine {

// How a rank waits for the others: polling, where all are about to come, or leaving its core to
// them (wait.h), where they, or the services that they wait for, have work to do first.
enum class Waiting { kPolling, kPatient };

// All functions but the first three are collective.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Whether this rank speaks to a node's service when one rank must do so for all.
  virtual bool speaks_for(NodeIndex node) const = 0;

  // Ok if all ranks' statuses are; else, on every rank, the error of the lowest rank that has one.
  // Synchronises.
  Status agree(const Status& mine, Waiting waiting = Waiting::kPolling) const;
  // The same, and on success the largest of all ranks' values in `value`.
  virtual Status agree_max(const Status& mine, std::uint64_t& value,
                           Waiting waiting = Waiting::kPolling) const = 0;
  // What rank 0 has, on all ranks. Rank 0 does not wait for the others.
  virtual void broadcast(Bytes& bytes) const = 0;
  virtual void broadcast(Id128& id) const = 0;
  // All ranks' bytes, in order of ranks, on rank 0; empty elsewhere.
  virtual std::vector<Bytes> gather(const Bytes& mine) const = 0;
  virtual std::uint64_t all_max(std::uint64_t value) const = 0;

  // Rank 0's outcome of what it does for all, and if that is ok what it has, on all ranks. Rank 0
  // does not wait for the others.
  Status share(const Status& of_rank_0, Bytes& bytes) const;
  Status share(const Status& of_rank_0) const;
};

// How a status travels between ranks.
void put_status(Encoder& encoder, const Status& status);
Status get_status(Decoder& decoder);

}  // namespace dedup::engine
