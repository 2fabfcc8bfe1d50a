// Bringing a file's chunks back to K copies, without changing its content.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "hints/hints.h"

namespace dedup::engine {

struct Healed {
  std::uint64_t generation = 0;     // that was committed
  std::uint64_t checked = 0;        // chunks that were read, each copy counted; 0 unless asked for
  std::uint64_t bad = 0;            // of them
  std::uint64_t copies_made = 0;    // that were lacking or bad
  std::uint64_t lost_chunks = 0;    // of which there is no good copy: reading them is an error
  std::uint64_t unknown_bytes = 0;  // whose recipe is lost: likewise
  std::uint64_t lowest_copies = 0;  // of any chunk, by the new recipe; 0 if the file has none
};

// Collective over `comm`. Commits a new generation of the same content, of which every chunk and
// recipe shard is on min(K, nodes of the job) nodes. K is `replication`, or if that is 0 what the
// file was committed with. With `verify` each node's ranks first read all chunks of their store and
// compare them with their fingerprints; bad ones are replaced by good ones of other nodes. `mine`:
// this rank's verdict on its own arguments so far.
//
// kIo if some chunk or part of the recipe has no good copy on the nodes that are here, unless
// `accept_loss`: a store that is only away may have it. kArgument if the file's data is not in the
// stores (a plain file); otherwise the errors of opening for writing and of a commit. After an
// error the generation that was there stands.
struct HealOptions {
  unsigned replication = 0;
  bool verify = false;
  bool accept_loss = false;
};
Result<Healed> heal(MPI_Comm comm, const std::string& path, const HealOptions& options,
                    const Status& mine, const hints::Hints& hints);

}  // namespace dedup::engine
