// The file home of one node: the files whose path's home it is, as this job has them open.
//
// What each request does is said in messages/file_home.h. A file is known from the first
// OpenEnd that is ok to the CloseEnd of its last handle; requests that name an identity or handle
// that is not known get kNotFound. Requests that may have to wait take a Responder and answer it
// when their turn or lock comes, in order of arrival. Turns and locks are bound to the connection
// on which they were asked for only in that they end when it does. One thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/lru.h"
#include "base/status.h"
#include "base/types.h"
#include "service/messages/file_home.h"
#include "service/server.h"

namespace dedup::service {

class FileHome {
 public:
  void on(const OpenBegin& request, std::unique_ptr<Responder> responder);
  Result<Empty> on(const OpenEnd& request);
  void on(const CloseBegin& request, std::unique_ptr<Responder> responder);
  Result<Empty> on(const CloseEnd& request);
  Result<FileInfo> on(const GetFile& request);
  Result<SizeReply> on(const GetSize& request);
  Result<SizeReply> on(const ExtendSize& request);
  Result<SizeReply> on(const SetSize& request);
  void on(const Lock& request, std::unique_ptr<Responder> responder);
  Result<Empty> on(const Unlock& request);
  Result<SharedValue> on(const SharedAdd& request);
  Result<Empty> on(const SharedSet& request);
  Result<FileInfo> on(const CommitDone& request);
  Result<GenerationNumber> on(const NextGeneration& request);
  Result<Empty> on(const SetAside& request);
  Result<Empty> on(const BeginWriteBack& request);
  Result<WriteBackState> on(const TellWritten& request);
  Result<Empty> on(const StopWriteBack& request);

  void closed(ConnectionId connection);

 private:
  // Of a path beyond these a session ends with the last close, which costs 24 bytes of each record.
  static constexpr std::size_t kEndedSessions = 4096;
  // Of files beyond these a copy that has writers may be gone on with, if locks do not tell.
  static constexpr std::size_t kStopped = 4096;

  // Answers are collected while state changes and given when it is whole again.
  struct Answer {
    std::unique_ptr<Responder> responder;
    Status status;
    Bytes body;
  };
  using Answers = std::vector<Answer>;

  // Holders of a lock and those who wait for it. kDump and kCommit share one queue, so that a
  // stream of dumps cannot keep a commit waiting for ever.
  struct LockClaim {
    LockKind kind = LockKind::kDump;
    Id128 owner;
    ConnectionId connection = 0;
    std::uint64_t known = 0;               // version of the file's state that it has
    std::unique_ptr<Responder> responder;  // while it waits
  };
  struct LockQueue {
    std::vector<LockClaim> held;
    std::deque<LockClaim> waiting;

    // `info`: what the file is.
    void grant(const FileInfo& info, Answers& answers);
    bool unlock(LockKind kind, const Id128& owner);
    void closed(ConnectionId connection);
  };

  // Who waits for a path's turn: an open, or the close of `handle`.
  struct TurnClaim {
    std::unique_ptr<Responder> responder;
    bool close = false;
    Id128 handle;
    std::string path;  // of an open
  };
  enum class Turn { kFree, kOpen, kClose };
  // One that goes on in the background.
  struct Writing {
    Id128 handle;
    std::set<std::uint32_t> writers;  // that have not ended
    bool is_wanted = true;
    bool is_in_trouble = false;
    WriteBackState outcome{};
  };
  struct Path {
    FileInfo info;  // empty unless known
    bool known = false;
    bool deleted = false;
    std::uint64_t last_number = 0;                     // that an attempt was given in this time
    std::unordered_map<Id128, std::uint64_t> handles;  // and their shared file pointers
    std::optional<Writing> writing;
    LockQueue commits;  // kDump and kCommit
    LockQueue atomics;
    // Of a block there may be several, all but one of which have ended: one that ended before its
    // owner told of it, or is about to be told of.
    std::set<Lease> leases;

    Turn turn = Turn::kFree;
    ConnectionId turn_connection = 0;
    bool committed_in_turn = false;  // info is newer than what this turn's open was told
    std::deque<TurnClaim> waiting;

    LockQueue& locks(LockKind kind) { return kind == LockKind::kAtomic ? atomics : commits; }
  };

  Result<Path*> find(const Id128& identity);
  // Of blocks that end beyond `size`.
  static std::vector<Lease> leases_beyond(const Path& path, std::uint64_t size);
  static Result<std::uint64_t*> find_pointer(Path& path, const Id128& handle);
  Status register_handle(Path& path, const OpenEnd& request);
  std::vector<Id128> set_aside(const std::string& path) const;
  // Gives the turn to those who wait, as long as it is free.
  void give_turn(Path& path, Answers& answers);
  // Ends the turn; forgets the file if nobody has it open any more, and the path if nobody waits.
  void end_turn(const std::string& name, Answers& answers);
  void stop_write_back(Path& path);
  void forget(Path& path, Answers& answers);
  static void send(Answers& answers);

  // A file that was set aside stays known under a name that is no path.
  std::unordered_map<std::string, Path> paths_;
  std::unordered_map<Id128, std::string> names_;  // of known files
  // By path: the job's last session there that made attempts, once it has ended.
  Lru<std::string, store::LineageEntry> ended_{kEndedSessions};
  Lru<Id128, bool> stopped_{kStopped};  // files whose write-back was
};

}  // namespace dedup::service
