// What a commit tells the nodes of its recipe: which of their chunks it refers to, so that they
// stay, and which it does not any more. A node that lacks what it should have gets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/numbered.h"
#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "engine/protocol/restores.h"
#include "plan/block.h"
#include "plan/cut.h"
#include "plan/placement.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// Of one rank. Memory: fingerprints for about 4 MiB; 16 bytes a stripe. One thread.
class Referrals {
 public:
  // All must outlive it.
  Referrals(JobFile& file, const Id128& attempt, Restores& restores)
      : file_(file), attempt_(attempt), restores_(restores) {}

  // To the chunks of these pieces of a block, or of all, and to all parts of the stripes that they
  // are in. What was referred to is not sent before send().
  void refer(const Block& block, std::span<const std::uint32_t> pieces);
  void refer(const Block& block);
  // A node's chunks take so many bytes that blocks referred to, and do not any more.
  void drop(NodeIndex node, std::uint64_t bytes);
  // Whether there is enough to be sent for a message to each node.
  bool is_much() const;
  Status send();

  // Refers to all parts of these stripes at once, each stripe once. Those of which parts are not
  // there, and could not be made again: a recipe must not rely on these.
  Result<std::set<Id128>> confirm(const std::vector<plan::StripeUnit>& stripes);

  // Chunks of which no node has a good copy.
  std::uint64_t lost_chunks() const { return lost_chunks_; }
  // Whether that is so of parts of a stripe that send() referred to.
  bool has_lost_parts() const { return has_lost_parts_; }

 private:
  // A chunk that there are references to, one to each node of a placement.
  struct Referred {
    Fingerprint fingerprint;
    std::uint32_t length = 0;
    std::uint32_t placement = 0;  // number in Batch::placements
  };
  // By the nodes that should have them: numbers in Batch::chunks.
  using ByNode = std::map<NodeIndex, std::vector<std::uint32_t>>;
  // References that were not sent yet.
  struct Batch {
    ByNode by_node;
    std::vector<Referred> chunks;
    plan::FingerprintTable table;
    std::size_t room = 0;  // in the table
    Numbered<plan::Placement> placements;
    std::size_t count = 0;
  };
  // Nodes that lack a chunk, by its name and how it is kept.
  struct Lack {
    std::uint32_t length = 0;
    std::vector<NodeIndex> nodes;
  };
  using Lacking = std::map<std::pair<Fingerprint, std::uint32_t>, Lack>;
  struct Outcome {
    Lacking partly;  // which only some of their nodes could get
    Lacking lost;    // which no node could get
  };

  static void make_room(Batch& batch, std::size_t chunks);
  static std::uint32_t number_of(Batch& batch, const Fingerprint& fingerprint,
                                 std::uint32_t placement, std::uint32_t fresh);
  static void add(Batch& batch, const Referred& chunk, std::span<const NodeIndex> nodes);
  static void add_stripe(Batch& batch, const plan::StripeUnit& stripe);
  service::References request_to(NodeIndex node, const Batch& batch,
                                 const std::vector<std::uint32_t>& chunks);
  Result<ByNode> ask(const Batch& batch, const ByNode& references);  // those that are missing
  // Sends all, and has nodes get what they lack. What could not be had.
  Result<Lacking> bring(Batch& batch);
  Result<Outcome> restore(const Batch& batch, const Lacking& wanted);

  JobFile& file_;
  Id128 attempt_;
  Restores& restores_;
  Batch batch_;
  std::map<NodeIndex, std::uint64_t> dropped_;  // bytes that the nodes were not told of yet
  std::set<Id128> confirmed_;
  std::uint64_t lost_chunks_ = 0;
  bool has_lost_parts_ = false;
};

}  // namespace dedup::engine
