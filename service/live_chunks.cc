#include "service/live_chunks.h"

#include <algorithm>

namespace dedup::service {
namespace {

constexpr std::size_t kLocateAtOnce = 65536;
// Entries are visited in an order that no processor guesses: how many are fetched ahead.
constexpr std::ptrdiff_t kAhead = 16;

}  // namespace

LiveChunks::LiveChunks(FileChunks& chunks, std::span<const FingerprintNumbers::Item> carried)
    : chunks_(chunks), carried_(carried) {
  // One that was stored again meanwhile is among the registered ones.
  for (const auto& chunk : carried) chunks_.mark(chunk.fingerprint, chunk.number);
  marked_ = chunks_.index().marked_in_order();
}

template <typename Visitor>
Status LiveChunks::walk(const Visitor& visit) {
  const ChunkIndex& index = chunks_.index();
  auto next = marked_.begin();
  for (std::size_t begin = 0; begin < carried_.size(); begin += kLocateAtOnce) {
    const auto some = carried_.subspan(begin, std::min(kLocateAtOnce, carried_.size() - begin));
    std::vector<Fingerprint> names;
    for (const auto& chunk : some) names.push_back(chunk.fingerprint);
    const std::vector<store::ChunkLocation> locations = chunks_.locate(names);
    for (std::size_t i = 0; i < some.size(); ++i) {
      while (next != marked_.end() && index.at(*next).fingerprint < names[i]) {
        DEDUP_TRY(visit(index.at(*next++), true));
      }
      if (next != marked_.end() && index.at(*next).fingerprint == names[i]) continue;
      if (locations[i].length == 0) {
        return {Code::kIo, "chunk " + names[i].hex() + " was here and is gone"};
      }
      DEDUP_TRY(visit(store::IndexEntry{names[i], locations[i], some[i].number}, false));
    }
  }
  for (; next != marked_.end(); ++next) {
    if (marked_.end() - next > kAhead) index.prefetch(next[kAhead]);
    DEDUP_TRY(visit(index.at(*next), true));
  }
  return Status::ok();
}

Status LiveChunks::for_each(const Visit& visit) {
  return walk([&](const store::IndexEntry& entry, bool) { return visit(entry); });
}

Status LiveChunks::for_each_new(const Visit& visit) {
  for (const std::uint32_t number : marked_) DEDUP_TRY(visit(chunks_.index().at(number)));
  return Status::ok();
}

const std::uint32_t* LiveChunks::carried(const Fingerprint& fingerprint) const {
  const auto found = std::lower_bound(
      carried_.begin(), carried_.end(), fingerprint,
      [](const auto& chunk, const Fingerprint& name) { return chunk.fingerprint < name; });
  const bool is_here = found != carried_.end() && found->fingerprint == fingerprint;
  return is_here && !chunks_.index().find(fingerprint, nullptr) ? &found->number : nullptr;
}

Result<LiveChunks::Space> LiveChunks::measure() {
  Space space;
  DEDUP_TRY(walk([&](const store::IndexEntry& entry, bool is_new) {
    const std::uint64_t stored = store::stored_size(entry.fingerprint, entry.location.length);
    space.by_segment[entry.location.segment] += stored;
    if (!is_new) space.carried += stored;
    ++space.chunks;
    return Status::ok();
  }));
  return space;
}

}  // namespace dedup::service
