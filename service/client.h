// A process's way to the services of all nodes.
//
// Connections are made when first needed, proven by challenge (HMAC over the job's secret, which is
// never sent), and kept in a pool per node; a request has a connection to itself until its reply
// has been read, so several threads, and several requests to different nodes, may be under way at
// once. Nothing here knows MPI. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/status.h"
#include "base/types.h"
#include "service/messages.h"

namespace dedup::service {

using Secret = std::array<std::uint8_t, 32>;

// How to reach a node's service.
struct Peer {
  std::string node;                    // the node's name
  std::vector<std::string> addresses;  // Server::addresses(), all of them; tried in turn
  std::uint16_t port = 0;              // Server::port()
};

class Client {
 public:
  Client(std::vector<Peer> peers, NodeIndex self, const Secret& secret);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  NodeIndex nodes() const;
  NodeIndex self() const;  // this process's node
  const std::string& node_name(NodeIndex node) const;

  class Raw;
  struct RawDeleter {
    void operator()(Raw* raw) const;
  };
  using RawPointer = std::unique_ptr<Raw, RawDeleter>;

  // A request that was sent and whose reply has not been read. wait() must be called once; a
  // Pending that is destroyed without it closes its connection. It must not outlive the Client.
  template <typename Request>
  class Pending {
   public:
    explicit Pending(RawPointer raw) : raw_(std::move(raw)) {}
    Result<typename Request::Reply> wait() {
      DEDUP_ASSIGN(Bytes bytes, Client::receive(*raw_));
      Decoder decoder(bytes);
      typename Request::Reply reply = Request::Reply::decode(decoder);
      if (!decoder.ok()) return Client::bad_reply(*raw_);
      return reply;
    }

   private:
    RawPointer raw_;
  };

  // Sends without waiting. Failures (node unreachable) surface in wait().
  template <typename Request>
  Pending<Request> start(NodeIndex node, const Request& request) {
    Encoder encoder;
    request.encode(encoder);
    return Pending<Request>(send(node, Request::kOpcode, encoder.bytes()));
  }

  template <typename Request>
  Result<typename Request::Reply> call(NodeIndex node, const Request& request) {
    return start(node, request).wait();
  }

 private:
  RawPointer send(NodeIndex node, Opcode opcode, std::span<const std::byte> body);
  // The reply's body, or the error that the service replied with or that the connection had
  // (kUnreachable, naming the node).
  static Result<Bytes> receive(Raw& raw);
  static Status bad_reply(const Raw& raw);

  struct Private;
  std::unique_ptr<Private> p_;
};

}  // namespace dedup::service
