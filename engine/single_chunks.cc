#include "engine/single_chunks.h"

#include <algorithm>

#include "service/messages.h"

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
  service::GetChunks request{identity_, {}};
  for (const Candidate& candidate : candidates) {
    const std::size_t length = data(candidate.chunk).size();
    request.chunks.push_back({candidate.name, static_cast<std::uint32_t>(length)});
  }
  DEDUP_ASSIGN(const service::ChunksReply reply, client_.call(client_.self(), request));
  const auto theirs = reply.chunks(request.chunks);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::span<const std::byte> mine = data(candidates[i].chunk);
    const bool same = i < theirs.size() && std::ranges::equal(theirs[i], mine);
    if (same) {
      known.names[candidates[i].chunk] = candidates[i].name;
    } else {
      known.alike[candidates[i].chunk] = 1;
    }
  }
  return Status::ok();
}

}  // namespace dedup::engine
