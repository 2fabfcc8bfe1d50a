// The dump: one collective round of chunking, fingerprinting, reduction, exchange and storing.
//
// After B. Nicolae, "Leveraging naturally distributed data redundancy to reduce collective I/O
// replication overhead" (IPDPS 2015), Algorithms 1 to 3, over nodes in place of ranks. The
// decisions are pure functions in plan/; here is what talks: MPI between the ranks of the
// communicator, and the services for nodes that the communicator does not reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/chunks/dump_result.h"
#include "engine/chunks/own_store.h"
#include "engine/mpi/alone.h"
#include "engine/mpi/topology.h"
#include "hints/hints.h"
#include "service/client.h"
#include "store/log.h"

namespace dedup::engine {

// Dumps of one open file on one communicator. Keeps what earlier dumps of this generation decided
// (at most F fingerprints), so that later ones find their chunks. One thread at a time.
class Dumper {
 public:
  // `topology`, `alone`, `client` and `hints` must outlive the Dumper. Nothing communicates here.
  // `key`: of the file's keyed hashes. `handle`: the same on all ranks, and no other Dumper's.
  Dumper(const Topology& topology, Alone& alone, service::Client& client, OwnStore store,
         const Id128& identity, const Id128& key, const Id128& handle, const hints::Hints& hints);
  ~Dumper();

  // Collective; ranks may have no runs, and if one cannot take part, as `mine` says, none does.
  // Where one rank alone has any, and little, it dumps them by itself, and the others wait. On
  // success every chunk of every rank is, or is being kept, on at least min(K, job nodes) nodes,
  // registered with those nodes' services. On failure all ranks return an error of one code, what
  // was stored is unreferenced and will be reclaimed. Memory: 56 bytes a chunk of this rank, and
  // buffers as doc/dump.md says ("Costs").
  Result<DumpResult> dump(std::span<const DumpRun> runs, const Status& mine = Status::ok());

  // What is dumped until put_away_log() may stand in this log of the node's store already, in
  // memory that it has mapped: single chunks of it stay where they are. Local, both.
  void adopt(std::unique_ptr<store::AdoptedLog> log);
  void put_away_log();

  // Hands all appended chunks to the kernel and, if `flush`, begins to bring them to the disk.
  // Local; before a commit.
  Status finish_segments(bool flush);
  // Waits until they are there. The chunks of a segment for which that fails are lost.
  Status wait_for_flush();

  // Collective. Frees what is kept between dumps; the next one costs more for it.
  void release_buffers();

  // Forgets what earlier dumps decided and starts a new segment at the next append: after a commit,
  // since chunks that the generation does not refer to may be gone. Local.
  void new_generation();

 private:
  struct Private;
  std::unique_ptr<Private> p_;
};

}  // namespace dedup::engine
