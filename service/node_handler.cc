// Takes requests apart for the three roles of a node.
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fields.h"
#include "service/block_home.h"
#include "service/executor.h"
#include "service/file_home.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "service/restore.h"
#include "service/server.h"
#include "service/store_node.h"

namespace dedup::service {

namespace {

class NodeHandler : public Handler {
 public:
  NodeHandler(const std::string& node_name, NodeIndex self, NodeIndex nodes, Executor& executor)
      : node_name_(node_name),
        self_(self),
        executor_(executor),
        store_node_(node_name, self, nodes) {}
  ~NodeHandler() override {
    // Its tasks use what goes now.
    executor_.stop();
    executor_.deliver();
  }

  void handle(Opcode opcode, std::span<const std::byte> body,
              std::unique_ptr<Responder> responder) override {
    const bool known =
        answer_one_of<OpenBegin, OpenEnd, CloseBegin, CloseEnd, GetFile, GetSize, ExtendSize,
                      SetSize, Lock, Unlock, SharedAdd, SharedSet, CommitDone, NextGeneration,
                      SetAside, BeginWriteBack, TellWritten, StopWriteBack>(file_home_, opcode,
                                                                            body, responder) ||
        answer_one_of<WriteLog, WriteChunks, Convert, Truncate, Resolve, InstallBase, Snapshot,
                      EndCommit, ReturnLease>(block_homes_, opcode, body, responder) ||
        answer_one_of<Attach, Detach, Restore, Collect, OpenSegment, LendSegment, AwaitWriter,
                      AskWriters, HoldGeneration>(*this, opcode, body, responder) ||
        answer_one_of<Find, GetRecord, Adopt, Drop, Space, OpenLog, Look, Claim, Register, Release,
                      ForgetSegment, Distrust, Locate, GetChunks, PutChunks, ReadLog, RecallLease,
                      ListShard, ReadShard, PutShard, ListShares, MakeUnits, ListUnits, JoinStripes,
                      FindPlacements, References, WriteIndex, Prepare, Commit, Abort, PutWritten,
                      ListWritten, PutCached, LetGo>(store_node_, opcode, body, responder);
    if (!known) {
      reject(*responder, "unknown request " + std::to_string(static_cast<unsigned>(opcode)));
    }
  }

  void closed(ConnectionId connection) override {
    file_home_.closed(connection);
    store_node_.closed(connection);
    std::erase_if(awaiting_, [&](const auto& one) {
      return one.second.responder->connection() == connection;
    });
    const auto task = tasks_.find(connection);
    if (task == tasks_.end()) return;
    executor_.cancel(task->second);
    tasks_.erase(task);
  }
  void set_waker(std::function<void()> wake) override { executor_.set_waker(std::move(wake)); }
  void woken() override { executor_.deliver(); }

  // Block homes know the files that are attached, too.
  Result<AttachReply> on(const Attach& request) {
    const std::optional<Id128> before = store_node_.read_only_base(request.identity);
    DEDUP_ASSIGN(AttachReply reply, store_node_.on(request));
    if (before != store_node_.read_only_base(request.identity)) end_awaiting(request.identity);
    block_homes_.attach(request.identity, request.base);
    spill(request.identity);
    return reply;
  }
  Result<Empty> on(const Detach& request) {
    end_awaiting(request.identity);
    block_homes_.detach(request.identity);
    return store_node_.on(request);
  }
  // With a generation that is committed there is more that may move down.
  Result<CollectReply> on(const Collect& request) {
    auto reply = store_node_.on(request);
    spill(request.identity);
    return reply;
  }
  // What could not move while the last generation was committed, since it was open still.
  Result<NumberReply> on(const OpenSegment& request) {
    spill(request.identity);
    return store_node_.on(request);
  }
  void on(const Restore& request, std::unique_ptr<Responder> responder) {
    Executor::Ticket& task = tasks_[responder->connection()];
    task = executor_.add(
        std::make_unique<RestoreTask>(request, self_, store_node_, std::move(responder)),
        request.in_background ? Executor::Precedence::kBackground : Executor::Precedence::kCommit,
        request.bytes_per_second);
  }
  void on(const AwaitWriter& request, std::unique_ptr<Responder> responder) {
    const auto [waiting, is_new] = awaiting_.try_emplace(request.ticket);
    if (is_new) {
      waiting->second.responder = std::move(responder);
    } else {
      responder->reply(Status(Code::kArgument, "a ticket that is in use"), {});
    }
  }
  Result<AskWritersReply> on(const AskWriters& request) {
    AskWritersReply reply;
    const std::optional<Id128> base = store_node_.read_only_base(request.identity);
    if (!base) return reply;
    reply.may_write = false;
    reply.base = *base;
    const auto waiting = awaiting_.find(request.ticket);
    reply.is_awaited = waiting != awaiting_.end();
    if (reply.is_awaited) waiting->second.files.insert(request.identity);
    return reply;
  }
  void on(const HoldGeneration& request, std::unique_ptr<Responder> responder) {
    const auto reply = store_node_.hold(request, responder->connection());
    responder->reply(reply.status(), {});
  }
  void on(const LendSegment& request, std::unique_ptr<Responder> responder) {
    Result<store::Store::Loan> loan = store_node_.on(request);
    if (loan.is_ok()) {
      responder->lend(std::move(loan->segment), encoded(LendReply{loan->may_move}));
    } else {
      responder->reply(loan.status(), {});
    }
  }

 private:
  void spill(const Id128& identity) {
    auto task = store_node_.spill(identity);
    if (task) executor_.add(std::move(task), Executor::Precedence::kBackground);
  }

  // A process that wants to know when somebody can write to one of these.
  struct Awaiting {
    std::unique_ptr<Responder> responder;
    std::unordered_set<Id128> files;
  };
  void end_awaiting(const Id128& identity) {
    for (auto it = awaiting_.begin(); it != awaiting_.end();) {
      const bool ends = it->second.files.contains(identity);
      if (ends) it->second.responder->reply({}, {});
      it = ends ? awaiting_.erase(it) : std::next(it);
    }
  }

  // Whether the opcode is one of these requests'; if so, it is answered, or will be.
  template <typename... Requests, typename Home>
  bool answer_one_of(Home& home, Opcode opcode, std::span<const std::byte> body,
                     std::unique_ptr<Responder>& responder) {
    return ((Requests::kOpcode == opcode && answer<Requests>(home, body, responder)) || ...);
  }

  template <typename Request, typename Home>
  bool answer(Home& home, std::span<const std::byte> body, std::unique_ptr<Responder>& responder) {
    const std::optional<Request> request = decoded<Request>(body);
    if (!request) {
      reject(*responder,
             "malformed request " + std::to_string(static_cast<unsigned>(Request::kOpcode)));
    } else if constexpr (requires { home.on(*request, std::move(responder)); }) {
      home.on(*request, std::move(responder));
    } else {
      Result<typename Request::Reply> result = home.on(*request);
      Bytes reply;
      if (result.is_ok()) reply = body_of(*std::move(result));
      responder->reply(result.status(), std::move(reply));
    }
    return true;
  }

  // Encoded; large replies are kept so.
  template <typename Reply>
  static Bytes body_of(Reply&& reply) {
    if constexpr (requires { std::move(reply).take_body(); }) {
      return std::move(reply).take_body();
    } else {
      return encoded(reply);
    }
  }

  void reject(Responder& responder, const std::string& why) {
    responder.reply(Status(Code::kInternal, "service of node " + node_name_ + ": " + why), {});
  }

  std::string node_name_;
  NodeIndex self_;
  Executor& executor_;
  std::unordered_map<ConnectionId, Executor::Ticket> tasks_;  // the last one of each
  std::unordered_map<Id128, Awaiting> awaiting_;              // by their tickets
  FileHome file_home_;
  BlockHomes block_homes_;
  StoreNode store_node_;
};

}  // namespace

std::unique_ptr<Handler> make_node_handler(const std::string& node_name, NodeIndex self,
                                           NodeIndex nodes, Executor& executor) {
  return std::make_unique<NodeHandler>(node_name, self, nodes, executor);
}

}  // namespace dedup::service
