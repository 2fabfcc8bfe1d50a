#include "engine/chunks/name_chunks.h"

#include <optional>
#include <utility>

namespace dedup::engine {

void NamedChunks::name_single(std::size_t i, const Fingerprint& name) {
  chunks_.rename(i, name);
  kinds_[i] = Kind::kSingle;
  ++singles_;
}

std::uint64_t NamedChunks::held_bytes() const {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < size(); ++i) bytes += is_held(i) ? length(i) : 0;
  return bytes;
}

void NamedChunks::name_held(std::size_t i, const Fingerprint& name,
                            const plan::Placement& placement) {
  chunks_.rename(i, name);
  share(i);
  held_[i] = placements_.number(placement);
}

ChunkRecords NamedChunks::take_records() {
  ChunkRecords records;
  records.list.reserve(size() - singles_);
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (!is_single(i)) records.list.push_back({name(i), length(i), held_[i]});
  }
  records.placements = std::move(placements_);
  held_ = {};
  return records;
}

void share_twins(NamedChunks& chunks, const std::vector<std::uint8_t>& may_have_twin) {
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    if (chunks.is_open(i) && may_have_twin[i] != 0) chunks.share(i);
  }
}

void name_the_rest(NamedChunks& chunks, SingleNumbers& numbers, const store::AdoptedLog* log) {
  constexpr std::uint64_t kNowhere = store::AdoptedLog::kNowhere;
  std::optional<std::uint64_t> next;  // where the chunk with the next number must stand
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    if (!chunks.is_open(i)) continue;
    if (log != nullptr) {
      const std::uint64_t place = log->place_of(chunks.data(i));
      if (place != next) numbers.skip();
      next = place == kNowhere ? kNowhere : place + chunks.length(i);
    }
    chunks.name_single(i, name_of_single(chunks.name(i), numbers.next()));
  }
}

}  // namespace dedup::engine
