// What a commit tells the nodes of its recipe: which of their chunks it refers to, so that they
// stay, and which it does not any more. A node that lacks what it should have gets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/numbered.h"
#include "base/status.h"
#include "engine/protocol/job_file.h"
#include "engine/protocol/reference_exchange.h"
#include "engine/protocol/restores.h"
#include "plan/block.h"
#include "plan/cut.h"
#include "plan/placement.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// Of one rank; all ranks of a commit have one, and send together, in rounds: a rank that has much
// begins one, which the others join when they have much, or nothing more to refer to. Memory:
// fingerprints for about 4 MiB, and as much that is handed on for others; 16 bytes a stripe. One
// thread.
class Referrals {
 public:
  // All must outlive it.
  Referrals(JobFile& file, const Id128& attempt, Restores& restores)
      : file_(file), attempt_(attempt), restores_(restores), exchange_(file) {}

  // To the chunks of these pieces of a block, or of all, and to all parts of the stripes that they
  // are in. What was referred to is not sent before a round.
  void refer(const Block& block, std::span<const std::uint32_t> pieces);
  void refer(const Block& block);
  // A node's chunks take so many bytes that blocks referred to, and do not any more.
  void drop(NodeIndex node, std::uint64_t bytes);
  // Collective if there is enough to be sent: a round.
  Status send_if_much();
  // Collective: rounds, until no rank has anything to send. `mine`: whether this rank has referred
  // to all that it has to. Returns the same on all ranks: any rank's error, also of an earlier
  // round, after which there is none.
  Status finish(const Status& mine);

  // Refers to all parts of these stripes at once, each stripe once. Those of which parts are not
  // there, and could not be made again: a recipe must not rely on these.
  Result<std::set<Id128>> confirm(const std::vector<plan::StripeUnit>& stripes);

  // Chunks of which no node has a good copy.
  std::uint64_t lost_chunks() const { return lost_chunks_; }
  // Whether that is so of parts of a stripe that were referred to in a round.
  bool has_lost_parts() const { return has_lost_parts_; }
  // Whether a node lacked anything in a round. The same on all ranks.
  bool has_lacked() const { return has_lacked_; }

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
  ReferencesByNode requests_of(const Batch& batch, const ByNode& references);
  static ByNode lacking_of(const ByNode& references, const LackingByNode& lacking);
  // References that the nodes lack, if this rank, whose status this is, goes on to ask.
  struct Missing {
    ByNode references;
    bool is_nothing = true;  // on no rank that asks
    Status heard;            // else this rank does not go on
  };
  using Ask = std::function<Result<Missing>(const Batch&, const ByNode&, const Status&)>;
  Result<Missing> ask_alone(const Batch& batch, const ByNode& references, const Status& mine);
  Result<Missing> ask_together(const Batch& batch, const ByNode& references, const Status& mine);
  // Sends all, and has nodes get what they lack. What could not be had.
  Result<Lacking> bring(const Batch& batch, const Ask& ask);
  // Has the nodes get it; adds what could not be had to `lost`, and says what is to be asked again.
  Status make_up(const Batch& batch, const ByNode& missing, Lacking& lost, ByNode& again);
  // What is still missing may be lost only if it is a part of a stripe.
  Status check(const Batch& batch, const ByNode& still, Lacking& lost) const;
  Status round(const Status& mine, bool goes_on);
  Status send();
  Result<Outcome> restore(const Batch& batch, const Lacking& wanted);

  JobFile& file_;
  Id128 attempt_;
  Restores& restores_;
  ReferenceExchange exchange_;
  Batch batch_;
  std::map<NodeIndex, std::uint64_t> dropped_;  // bytes that the nodes were not told of yet
  std::set<Id128> confirmed_;
  std::uint64_t lost_chunks_ = 0;
  bool has_lost_parts_ = false;
  bool has_lacked_ = false;
  Status failed_;         // of a round
  bool goes_on_ = false;  // after the last round some rank does
};

}  // namespace dedup::engine
