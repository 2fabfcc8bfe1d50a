// A committed generation as a process reads it that has no file open in the job and may be none of
// its ranks: through the services of the nodes that have it, which hold it meanwhile. So it needs
// neither MPI nor the stores.
//
// What of it is asked for is asked of the nodes that the recipe names, by their names in the
// generation's record: K nodes for a block of the recipe, as many as a stripe has for a chunk in
// one. Each is told once that it is to hold the generation, when it is asked first. A node that was
// called otherwise when the generation was committed counts as lost.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/piece.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/file_view.h"
#include "plan/block.h"
#include "plan/placement.h"
#include "service/client.h"
#include "service/neighbours.h"
#include "store/commit_record.h"

namespace dedup::engine {

// One thread.
class HeldFile {
 public:
  // `store_templates`: one of them leads to each node's store (hints/hints.h). Asks nobody yet.
  HeldFile(std::shared_ptr<service::Client> client, store::CommitRecord record,
           std::vector<std::string> store_templates);
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;
  // Lets go of it.
  ~HeldFile();

  // A block, with placements on the record's stores. kIo, naming the range and the stores, if no
  // node can give it.
  Result<Block> block(std::uint64_t number);

  struct Wanted {
    NamedChunk chunk;
    const plan::Placement* placement = nullptr;  // on the record's stores
  };
  // The chunks' bytes, each checked by its checksum; empty where no node has it and its stripe
  // cannot make it. Memory: all of them.
  std::vector<Bytes> read(std::span<const Wanted> wanted);

 private:
  // Has those of the record's stores hold the generation that have not been asked to.
  void hold_at(const NodeSet& stores);

  std::shared_ptr<service::Client> client_;
  std::vector<std::string> store_templates_;
  Id128 ticket_;
  service::Neighbours neighbours_;
  CommittedGeneration generation_;
  std::set<NodeIndex> asked_;  // nodes that were told to hold it
};

}  // namespace dedup::engine
