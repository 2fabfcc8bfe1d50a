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
      const plan::Placement placement =
          next < reply.placements.size() ? reply.placements[next] : plan::Placement{};
      ++next;
      known.hold(which[i], placement, client.self(), client.live());
    }
  }
  return Status::ok();
}

}  // namespace

void KnownChunks::set(std::uint32_t i, What what, const plan::Placement& placement) {
  what_[i] = what;
  placements_[i] = distinct_.number(placement);
}

void KnownChunks::hold(std::uint32_t i, const plan::Placement& placement, NodeIndex self,
                       const plan::LiveNodes& live) {
  plan::Placement here = placement.surviving(live);
  here.add_copy(self);
  set(i, What::kHeld, here);
}

KnownChunks look_up(const NodeChunks& chunks, const plan::SettledChunks& settled,
                    service::Client& client, const Id128& identity, FirstError& error) {
  KnownChunks known(chunks.size());
  std::vector<std::uint32_t> ask;
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    if (const plan::Placement* placement = settled.find(chunks[c].fingerprint)) {
      known.settle(c, *placement);
    } else {
      ask.push_back(c);
    }
  }
  if (error.none()) error.note(ask_held(chunks, ask, client, identity, known));
  return known;
}

}  // namespace dedup::engine
