// How a collective write becomes rounds of a dump.
//
// Accesses in long pieces are handed over where they are (plan/stretches.h). Accesses in pieces
// that are shorter than a chunk or 4 KiB, whichever is less, on average over all ranks, go through
// a two-phase exchange first (plan/domains.h): chunks of such pieces would take more memory for
// what is known of them than promised, and neighbours in the file often have other ranks' pieces
// between them. Above that the exchange would only move data about and mix what ranks have in
// common with what they have not.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/dump/dump.h"
#include "engine/mpi/topology.h"
#include "plan/access.h"

namespace dedup::engine {

// The rounds of one write. Where pieces of several ranks overlap, any of them wins.
class RoundSource {
 public:
  // Collective: one allreduce of 16 bytes. `topology` and `access` with what it refers to must
  // outlive the source. `buffer`: bytes this may allocate; what a chunk and 128 bytes for each rank
  // of the communicator need is taken anyway. Looks at the first 65536 fragments to judge.
  static Result<RoundSource> create(const Topology& topology, const plan::Access& access,
                                    std::uint32_t chunk_size, std::uint64_t buffer);
  RoundSource(RoundSource&&) noexcept;
  RoundSource& operator=(RoundSource&&) noexcept;
  ~RoundSource();

  // Collective. True: a round, maybe of no run on this rank; its runs are valid until the next
  // call, and at most 2^18 chunks. False, on all ranks: no rank has anything left. An error is the
  // same on all ranks. Costs an allreduce of at most 32 bytes, and, for a two-phase window, an
  // all-to-all of 24 bytes and the pieces' way to their aggregators.
  Result<bool> next(std::vector<DumpRun>& runs);

  // The same on all ranks.
  bool is_two_phase() const;

 private:
  class Rounds;
  class InPlace;
  class TwoPhase;
  explicit RoundSource(std::unique_ptr<Rounds> rounds);
  std::unique_ptr<Rounds> rounds_;
};

}  // namespace dedup::engine
