// A node as a store node: what it answers for its own store. The requests are in
// messages/store_node.h.
//
// Every error names this node. All requests on an attached file are kInternal if the file is not
// attached, and need it attached for writing (else kReadOnly) where they change something. One
// thread; never waits for another service. What each request costs is in doc/service.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "plan/placement.h"
#include "service/attached_file.h"
#include "service/executor.h"
#include "service/held_generation.h"
#include "service/messages/store_node.h"
#include "service/server.h"
#include "store/log.h"
#include "store/shard.h"
#include "store/store.h"

namespace dedup::service {

class StoreNode {
 public:
  // `node_name` replaces %n in store templates.
  StoreNode(std::string node_name, NodeIndex self, NodeIndex nodes,
            store::StoreOpener opener = store::Store::open);

  // Also drops files that are marked as deleted and came back. The Status of Store::open() if the
  // store cannot be used.
  Result<FindReply> on(const Find& request);
  Result<GetRecordReply> on(const GetRecord& request);
  // An error leaves what was attached before as it was.
  Result<AttachReply> on(const Attach& request);
  // The generation that the file is, if this job has it attached for reading only.
  std::optional<Id128> read_only_base(const Id128& identity) const;
  // The file is detached whatever the reply. Harmless if it is not attached, unless `drop` is set.
  Result<Empty> on(const Detach& request);
  Result<Empty> hold(const HoldGeneration& request, ConnectionId connection);
  Result<Empty> on(const LetGo& request);
  // Whatever was held for who was at its other end is let go.
  void closed(ConnectionId connection);
  Result<Empty> on(const Adopt& request);
  // kFileInUse if the file is attached, or locked by another job.
  Result<Empty> on(const Drop& request);
  Result<SpaceReply> on(const Space& request);
  Result<NumberReply> on(const OpenSegment& request);
  Result<NumberReply> on(const OpenLog& request);
  Result<LookReply> on(const Look& request);
  Result<ClaimReply> on(const Claim& request);
  Result<Empty> on(const Register& request);
  Result<Empty> on(const Release& request);
  Result<Empty> on(const ForgetSegment& request);
  Result<Empty> on(const Distrust& request);
  Result<LocateReply> on(const Locate& request);
  Result<ChunksReply> on(const GetChunks& request);
  Result<store::Store::Loan> on(const LendSegment& request);
  Result<PutReply> on(const PutChunks& request);
  // kNotFound if the log is gone or was cleared there.
  Result<BytesReply> on(const ReadLog& request);
  // kNotFound if the log is gone.
  Result<RecallReply> on(const RecallLease& request);
  // kNotFound if the shard is not here, kCorrupt if it is not `digest`'s or damaged.
  Result<ListShardReply> on(const ListShard& request);
  Result<ReadShardReply> on(const ReadShard& request);
  Result<PutShardReply> on(const PutShard& request);
  Result<ReferencesReply> on(const References& request);
  Result<ListSharesReply> on(const ListShares& request);
  Result<MakeUnitsReply> on(const MakeUnits& request);
  // kArgument for a unit that the attempt does not have.
  Result<ListUnitsReply> on(const ListUnits& request);
  Result<Empty> on(const JoinStripes& request);
  Result<FindPlacementsReply> on(const FindPlacements& request);
  // kNotFound if the generation is not committed here.
  Result<Empty> on(const PutWritten& request);
  Result<ListWrittenReply> on(const ListWritten& request);
  Result<Empty> on(const PutCached& request);
  Result<WriteIndexReply> on(const WriteIndex& request);
  Result<Empty> on(const Prepare& request);
  Result<Empty> on(const Commit& request);
  // Harmless if there is no such attempt; kArgument if it is committed.
  Result<Empty> on(const Abort& request);
  // kArgument unless this node has just committed that generation.
  Result<CollectReply> on(const Collect& request);

  // What moves segments of a file's store down; null if none has to, or that is being done.
  std::unique_ptr<Executor::Task> spill(const Id128& identity);

 private:
  // The store of a template; the same object for as long as the directory holds the same store, of
  // the same tiers.
  Result<std::shared_ptr<store::Store>> open_store(const std::string& store_template, bool create);
  std::vector<Id128> attached() const;
  Status check_placements(std::span<const plan::Placement> placements) const;
  Status explain(const Status& status) const;
  // Calls work(file), a Result; its error, or that there is no such file, is made to name the node.
  template <typename Work>
  auto with_file(const Id128& identity, Work&& work)
      -> decltype(work(std::declval<AttachedFile&>()));
  // The same of a ReadableFile, which may be one that is held.
  template <typename Work>
  auto with_readable(const Id128& identity, Work&& work)
      -> decltype(work(std::declval<ReadableFile>()));
  // As with_file(); kReadOnly if the file is not attached for writing.
  template <typename Work>
  auto with_writable(const Id128& identity, Work&& work)
      -> decltype(work(std::declval<AttachedFile&>()));

  std::string node_name_;
  NodeIndex self_;
  NodeIndex nodes_;
  store::StoreOpener opener_;
  std::map<std::string, std::shared_ptr<store::Store>> stores_;  // by what dedup_store says
  std::set<std::string> spilling_;                               // of these
  std::unordered_map<Id128, AttachedFile> files_;
  // Of those who are not of this job's ranks, by their tickets.
  struct Held {
    HeldGeneration generation;
    ConnectionId connection;
  };
  std::unordered_map<Id128, Held> held_;
};

}  // namespace dedup::service
