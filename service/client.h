// A process's way to the services of all nodes.
//
// Connections are made when first needed, proven by challenge (HMAC over the job's secret, which is
// never sent), and kept in a pool per node; a request has a connection to itself until its reply
// has been read, so several threads, and several requests to different nodes, may be under way at
// once. Nothing here knows MPI. Thread-safe.
//
// To a service on the same host they are sockets of that host, not of the network, with the same
// proofs and frames. It may lend what it has open: its neighbours then read it themselves.
//
// Nobody waits for ever for a node that is lost. A process that was killed closes its connections;
// one that gives no answer for a while, its patience, is asked whether it runs at all (pulse.h),
// and is waited for as long as it does.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "base/types.h"
#include "hints/node.h"
#include "plan/placement.h"
#include "service/messages/request.h"
#include "store/segment.h"

namespace dedup::service {

class LocalCalls;

using Secret = std::array<std::uint8_t, 32>;

// How to reach a node's service.
struct Peer {
  std::string node;                    // the node's name
  std::vector<std::string> addresses;  // Server::addresses(), all of them; tried in turn
  std::uint16_t port = 0;              // Server::port()
  std::string domain{};                // of failures (hints/node.h); empty: it is not said
  std::uint16_t pulse = 0;             // Server::pulse(); 0: nobody can ask, it is waited for
};

// How requests get to the nodes' services. Thread-safe.
class Transport {
 public:
  // A request under way.
  class Call {
   public:
    virtual ~Call() = default;
    // Once: the reply's body, or the error that the service replied with or that kept the request
    // from it or the reply from here (kUnreachable, naming the node). What may be repeated was.
    virtual Result<Bytes> receive() = 0;
    // Whether something has come: the reply, or the connection's end. False says that the service
    // has not answered yet, not only that no answer was seen; so it is true where that cannot be
    // told, which is over the network: what was sent may arrive later than what was sent after it
    // to somebody else.
    virtual bool is_ready() { return true; }
    // Then: what came with it (Responder::lend).
    virtual store::LentSegment take_lent() { return {}; }
  };

  virtual ~Transport() = default;
  virtual NodeIndex nodes() const = 0;
  virtual NodeIndex self() const = 0;  // this process's node
  virtual const std::string& node_name(NodeIndex node) const = 0;
  // Of each node, as plan::LiveNodes has them; none if nobody says one.
  virtual std::vector<std::uint32_t> domains() const { return {}; }
  // Whether a node's process runs.
  virtual bool is_there(NodeIndex /*node*/) { return true; }
  // Whether some node could not be reached.
  virtual bool has_missed() const { return false; }
  // Without waiting; failures surface in receive().
  virtual std::unique_ptr<Call> send(NodeIndex node, Opcode opcode, Bytes body) = 0;
  // Whether a node's process is on this host, and may lend it what it has open.
  virtual bool is_neighbour(NodeIndex /*node*/) { return false; }
};

class Client {
 public:
  // Over TCP; `local`, if there is one, is the way to this node's own service, and must outlive it.
  Client(std::vector<Peer> peers, NodeIndex self, const Secret& secret, LocalCalls* local = nullptr,
         std::chrono::seconds patience = hints::kNodeTimeout);
  explicit Client(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)), live_(transport_->nodes(), transport_->domains()) {}

  NodeIndex nodes() const { return transport_->nodes(); }
  NodeIndex self() const { return transport_->self(); }
  // All nodes of the job: of those the recipe may name, these can be asked.
  const plan::LiveNodes& live() const { return live_; }
  const std::string& node_name(NodeIndex node) const { return transport_->node_name(node); }

  // Asks whether a node's process runs, which a busy service's does. False after end().
  bool is_there(NodeIndex node) { return !has_ended() && transport_->is_there(node); }
  // Whether a node's process, another one, is on this host, and may lend it what it has open.
  bool is_neighbour(NodeIndex node) { return !has_ended() && transport_->is_neighbour(node); }
  // Whether some request could not be carried out since a node could not be reached. It may have
  // been for a moment only.
  bool has_missed() const { return has_ended() || transport_->has_missed(); }
  // Requests fail from now on, as kUnreachable with this text, or an earlier one's. By
  // one thread at a time.
  void end(const std::string& why);
  // Ok, or why requests fail.
  Status standing() const;

  // A request that was sent and whose reply has not been read. wait() must be called once; a
  // Pending that is destroyed without it closes its connection. It must not outlive the Client.
  template <typename Request>
  class Pending {
   public:
    Pending(std::unique_ptr<Transport::Call> call, const Client& client, NodeIndex node)
        : call_(std::move(call)), client_(&client), node_(node) {}
    Result<typename Request::Reply> wait() {
      using Reply = typename Request::Reply;
      DEDUP_ASSIGN(Bytes bytes, call_->receive());
      if constexpr (requires(Reply & reply) { Reply::from_body(std::move(bytes), reply); }) {
        Reply reply;
        if (!Reply::from_body(std::move(bytes), reply)) return client_->bad_reply(node_);
        return reply;
      } else {
        std::optional<Reply> reply = decoded<Reply>(bytes);
        if (!reply) return client_->bad_reply(node_);
        return *std::move(reply);
      }
    }

    // Both: see Transport::Call.
    store::LentSegment take_lent() { return call_->take_lent(); }
    bool is_ready() { return client_->has_ended() || call_->is_ready(); }

   private:
    std::unique_ptr<Transport::Call> call_;
    const Client* client_;
    NodeIndex node_;
  };

  // Sends without waiting. Failures (node unreachable) surface in wait().
  template <typename Request>
  Pending<Request> start(NodeIndex node, const Request& request) {
    return Pending<Request>(send(node, Request::kOpcode, encoded(request)), *this, node);
  }

  template <typename Request>
  Result<typename Request::Reply> call(NodeIndex node, const Request& request) {
    return start(node, request).wait();
  }

  template <typename Request>
  struct Borrowed {
    store::LentSegment segment;
    typename Request::Reply reply;
  };
  // For a request that a service answers with a segment. kIo if it did not arrive: too many files
  // are open here, or on their way from there.
  template <typename Request>
  Result<Borrowed<Request>> borrow(NodeIndex node, const Request& request) {
    Pending<Request> call = start(node, request);
    Borrowed<Request> borrowed;
    DEDUP_ASSIGN(borrowed.reply, call.wait());
    borrowed.segment = call.take_lent();
    if (!borrowed.segment.is_there()) {
      return Status(Code::kIo, "what a service lent did not arrive");
    }
    return borrowed;
  }

 private:
  std::unique_ptr<Transport::Call> send(NodeIndex node, Opcode opcode, Bytes body);
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }
  Status bad_reply(NodeIndex node) const;

  std::unique_ptr<Transport> transport_;
  plan::LiveNodes live_;
  Status why_ended_;  // before has_ended_ is set
  std::atomic<bool> has_ended_{false};
};

}  // namespace dedup::service
