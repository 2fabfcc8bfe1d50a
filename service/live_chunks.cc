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

Status LiveChunks::for_each(const std::function<Status(const store::IndexEntry&)>& visit) {
  const ChunkIndex& index = chunks_.index();
  auto next = marked_.begin();
  for (std::size_t begin = 0; begin < carried_.size(); begin += kLocateAtOnce) {
    const auto some = carried_.subspan(begin, std::min(kLocateAtOnce, carried_.size() - begin));
    std::vector<Fingerprint> names;
    for (const auto& chunk : some) names.push_back(chunk.fingerprint);
    const std::vector<store::ChunkLocation> locations = chunks_.locate(names);
    for (std::size_t i = 0; i < some.size(); ++i) {
      while (next != marked_.end() && index.at(*next).fingerprint < names[i]) {
        DEDUP_TRY(visit(index.at(*next++)));
      }
      if (next != marked_.end() && index.at(*next).fingerprint == names[i]) continue;
      if (locations[i].length == 0) {
        return {Code::kIo, "chunk " + names[i].hex() + " was here and is gone"};
      }
      DEDUP_TRY(visit({names[i], locations[i], some[i].number}));
    }
  }
  for (; next != marked_.end(); ++next) {
    if (marked_.end() - next > kAhead) index.prefetch(next[kAhead]);
    DEDUP_TRY(visit(index.at(*next)));
  }
  return Status::ok();
}

}  // namespace dedup::service
