#include "engine/chunks/known_chunks.h"

#include <algorithm>

#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kAskAtOnce = 65536;  // fingerprints

Status ask_held(const NodeChunks& chunks, const std::vector<std::uint32_t>& which,
                service::Client& client, const Id128& identity, KnownChunks& known) {
  for (std::size_t begin = 0; begin < which.size(); begin += kAskAtOnce) {
    const std::size_t end = std::min(which.size(), begin + kAskAtOnce);
    service::Held request{identity, {}};
    request.fingerprints.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      request.fingerprints.push_back(chunks[which[i]].fingerprint);
    }
    DEDUP_ASSIGN(const service::HeldReply reply, client.call(client.self(), request));
    std::size_t next = 0;
    for (std::size_t i = begin; i < end && i - begin < reply.held.size(); ++i) {
      if (reply.held[i - begin] == 0) continue;
      const NodeSet holders = next < reply.holders.size() ? reply.holders[next] : NodeSet{};
      ++next;
      known.hold(which[i], holders, client.self(), client.nodes());
    }
  }
  return Status::ok();
}

}  // namespace

void KnownChunks::set(std::uint32_t i, What what, const NodeSet& holders) {
  what_[i] = what;
  holders_[i] = sets_.number(holders);
}

void KnownChunks::hold(std::uint32_t i, NodeSet holders, NodeIndex self, NodeIndex job_nodes) {
  std::erase_if(holders, [&](NodeIndex n) { return n >= job_nodes; });
  const auto at = std::lower_bound(holders.begin(), holders.end(), self);
  if (at == holders.end() || *at != self) holders.insert(at, self);
  set(i, What::kHeld, holders);
}

KnownChunks look_up(const NodeChunks& chunks, const plan::SettledChunks& settled,
                    service::Client& client, const Id128& identity, FirstError& error) {
  KnownChunks known(chunks.size());
  std::vector<std::uint32_t> ask;
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    if (const NodeSet* holders = settled.find(chunks[c].fingerprint)) {
      known.settle(c, *holders);
    } else {
      ask.push_back(c);
    }
  }
  if (error.none()) error.note(ask_held(chunks, ask, client, identity, known));
  return known;
}

}  // namespace dedup::engine
