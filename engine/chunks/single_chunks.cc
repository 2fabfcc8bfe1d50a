#include "engine/chunks/single_chunks.h"

#include <algorithm>

#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kAskAtOnce = 65536;  // hashes
constexpr std::size_t kReadAtOnce = std::size_t{4} << 20;

}  // namespace

Result<SingleChunks::Known> SingleChunks::find(
    std::span<const FastHash> hashes,
    const std::function<std::span<const std::byte>(std::size_t)>& data) {
  Known known{std::vector<std::optional<Fingerprint>>(hashes.size()),
              std::vector<std::uint8_t>(hashes.size())};
  std::vector<Candidate> candidates;
  for (std::size_t begin = 0; begin < hashes.size(); begin += kAskAtOnce) {
    const auto some = hashes.subspan(begin, std::min(kAskAtOnce, hashes.size() - begin));
    DEDUP_ASSIGN(
        const service::AlikeReply reply,
        client_.call(client_.self(), service::Alike{identity_, {some.begin(), some.end()}}));
    std::size_t next = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      known.alike[begin + i] = reply.strong ? 1 : 0;
      if (i >= reply.found.size() || reply.found[i] == 0 || next == reply.names.size()) continue;
      candidates.push_back({begin + i, reply.names[next++]});
    }
  }
  for (std::size_t begin = 0, end = 0; begin < candidates.size(); begin = end) {
    std::size_t bytes = 0;
    while (end < candidates.size() && (end == begin || bytes < kReadAtOnce)) {
      bytes += data(candidates[end++].chunk).size();
    }
    DEDUP_TRY(compare(std::span(candidates).subspan(begin, end - begin), data, known));
  }
  return known;
}

Status SingleChunks::compare(std::span<const Candidate> candidates,
                             const std::function<std::span<const std::byte>(std::size_t)>& data,
                             Known& known) {
  // A chunk that only begins with the same bytes is another one.
  service::Locate where{identity_, {}};
  for (const Candidate& candidate : candidates) where.fingerprints.push_back(candidate.name);
  DEDUP_ASSIGN(const service::LocateReply located, client_.call(client_.self(), where));
  service::GetChunks request{identity_, {}};
  std::vector<Candidate> asked;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::size_t length = data(candidates[i].chunk).size();
    known.alike[candidates[i].chunk] = 1;
    if (i >= located.locations.size() || located.locations[i].length != length) continue;
    request.chunks.push_back({candidates[i].name, static_cast<std::uint32_t>(length)});
    asked.push_back(candidates[i]);
  }
  if (asked.empty()) return Status::ok();
  DEDUP_ASSIGN(const service::ChunksReply reply, client_.call(client_.self(), request));
  const auto theirs = reply.chunks(request.chunks);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::size_t chunk = asked[i].chunk;
    if (i < theirs.size() && std::ranges::equal(theirs[i], data(chunk))) {
      known.names[chunk] = asked[i].name;
      known.alike[chunk] = 0;
    }
  }
  return Status::ok();
}

}  // namespace dedup::engine
