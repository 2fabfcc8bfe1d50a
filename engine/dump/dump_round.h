// One round of a dump: a bounded number of chunks of each rank, from their bytes to their stores.
//
// Every step that communicates is taken by all ranks, whatever went wrong on one of them: its error
// is remembered, and agreed on at the two points where all learn whether to go on (the dealing,
// and the end).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/hasher.h"
#include "engine/dump/chunk_writer.h"
#include "engine/dump/dump.h"
#include "engine/dump/exchange.h"
#include "engine/dump/node_chunks.h"
#include "engine/dump/node_plan.h"
#include "engine/dump/twins.h"
#include "engine/dump/verdict.h"
#include "plan/cut.h"
#include "plan/reduce.h"
#include "plan/settled.h"

namespace dedup::engine {

// What all rounds of all dumps of a Dumper share.
struct DumpState {
  DumpState(const Topology& the_topology, service::Client& the_client, LocalFile& local,
            const Id128& the_identity, const hints::Hints& the_hints)
      : topology(the_topology),
        client(the_client),
        identity(the_identity),
        hints(the_hints),
        copies(std::min<unsigned>(the_hints.replication, the_topology.job_nodes())),
        writer(the_client, local, the_identity, the_hints.fsync == hints::Fsync::kCommit),
        settled(the_hints.threshold),
        twins(the_topology.comm(),
              the_hints.threshold / static_cast<unsigned>(the_topology.size()) + kTwinsAtLeast) {}

  // Remembered by each rank, however many ranks there are.
  static constexpr std::size_t kTwinsAtLeast = 4096;

  const Topology& topology;
  service::Client& client;
  Id128 identity;
  const hints::Hints& hints;
  unsigned copies;  // K, at most the number of nodes
  ChunkWriter writer;
  plan::SettledChunks settled;  // this rank's part
  Twins twins;
  SingleNumbers singles;
  std::vector<NodeIndex> order;  // of partners; on leaders
  std::unique_ptr<Exchange> exchange;
  std::uint32_t exchanges = 0;  // so far; the same on all ranks
  std::optional<Hasher> hasher;
  UniqueNumbers numbers;
};

// Walks a rank's runs chunk by chunk, over several rounds.
class RunCursor {
 public:
  RunCursor(std::span<const DumpRun> runs, std::uint32_t chunk_size)
      : runs_(runs), chunk_size_(chunk_size) {}

  struct Chunk {
    std::uint64_t file_offset = 0;
    std::span<const std::byte> data;  // empty at the end
    bool zero = false;
  };
  Chunk next();

 private:
  std::span<const DumpRun> runs_;
  std::uint32_t chunk_size_;
  std::size_t next_ = 0;
  const DumpRun* run_ = nullptr;
  plan::ChunkCutter cutter_{{}, 1};
};

class DumpRound {
 public:
  // `longest`: bytes of the longest chunk of any rank.
  DumpRound(DumpState& state, std::uint32_t longest, Numbered<NodeSet>& holder_sets,
            DumpResult& result);

  // Collective. Takes chunks from `cursor` until there were `most` that are not zeros, appends
  // their pieces to the result. The same code on all ranks.
  Status run(RunCursor& cursor, std::uint64_t most);

 private:
  // A chunk of this rank, once.
  struct Unique {
    const std::byte* data = nullptr;
    std::uint32_t length = 0;
    std::uint32_t piece = 0;     // the first that consists of it, counted from first_piece_
    std::uint32_t verdict = 0;   // number in verdicts_
    bool single = false;         // nobody else has it, nor its name
    std::uint64_t checksum = 0;  // of the data, when they were cut
  };
  enum class Known : std::uint8_t { kNew, kHeld, kSettled };

  void remember(const Status& status) {
    if (status_.is_ok()) status_ = status;
  }
  const Fingerprint& fingerprint_of(const Unique& u) const {
    return result_.pieces[first_piece_ + u.piece].fingerprint;
  }
  std::span<const std::byte> data_of(const Unique& u) const { return {u.data, u.length}; }
  NodeIndex my_node() const { return state_.topology.my_node(); }
  bool deduplicate() const { return state_.hints.mode != hints::Mode::kNone; }

  // In the order in which they are taken.
  void cut(RunCursor& cursor, std::uint64_t most);
  void name_chunks();
  std::vector<ChunkRecord> shared_records();
  void look_up(const NodeChunks& chunks);
  Status ask_held(const NodeChunks& chunks, const std::vector<std::uint32_t>& which);
  void reduce_over_nodes(const NodeChunks& chunks);
  ChunkTotals total(const NodeChunks& chunks);
  void judge(NodeChunks&& chunks, const plan::Dealer& dealer);
  void judge_singles(const plan::Dealer& dealer);
  Verdict judge_frequent(const plan::FrequentSet::Element& element, const plan::Dealer& dealer);
  Verdict judge_unique(bool held, const plan::Dealer& dealer);
  void prepare_sends(const NodePlan& plan);
  void store_and_exchange(const NodePlan& plan);
  // Stores some of what this rank keeps; false once all is stored.
  bool keep_some();
  void claim_some();
  // Writes what is said of a copy (header_size_ bytes).
  void describe(const Unique& u, std::uint64_t slot, std::byte* header);
  // What was said of a copy that arrived. An error if that or the data is not what was sent.
  Result<StoredChunk> read_parcel(const Parcel& parcel);
  void take(std::span<const Parcel> parcels);
  void put_to_guests();
  void finish_pieces();
  void settle(const plan::Dealer& dealer);

  DumpState& state_;
  Numbered<NodeSet>& holder_sets_;
  DumpResult& result_;
  DumpStats& stats_;
  Status status_;

  std::size_t first_piece_;
  std::vector<Unique> uniques_;
  std::vector<std::uint32_t> shared_;  // those of them that are not single
  Numbered<Verdict> verdicts_;

  // What is known of the chunks that this rank decides about, one for each.
  std::vector<Known> known_;
  std::vector<std::uint32_t> known_holders_;  // numbers in known_sets_
  Numbered<NodeSet> known_sets_;
  plan::FrequentSet frequent_;

  // Chunks to be sent, by target.
  struct Send {
    NodeIndex target = kNoNode;
    std::uint32_t unique = 0;
  };
  std::vector<Send> sends_;
  std::vector<SlotRange> ranges_;         // of those that go through the exchange
  std::vector<std::size_t> range_sends_;  // for each range the first of its sends
  std::size_t header_size_;
  std::size_t longest_;
  std::size_t next_own_ = 0;  // of uniques_, to be stored if this rank is to keep it
  double storing_in_exchange_ = 0;
};

}  // namespace dedup::engine
