#include "engine/chunks/stored_chunks.h"

#include <algorithm>
#include <numeric>

namespace dedup::engine {
namespace {

constexpr std::size_t kAskAtOnce = 65536;  // chunks

}  // namespace

void StoredChunks::forget_committed() {
  index_ = {};
  segment_sizes_ = {};
  opened_ = false;
}

// As the service does: what is damaged is as good as none, and an error of the disk may pass.
const store::IndexReader* StoredChunks::index() {
  if (!opened_) {
    auto opened = store_.index();
    if (!opened.is_ok() && opened.status().code() == Code::kIo) return nullptr;
    if (opened.is_ok() && opened->reader->size() != 0) index_ = std::move(*opened);
    opened_ = true;
  }
  return index_.reader.get();
}

bool StoredChunks::is_present(const store::IndexEntry& entry) {
  const auto [size, is_new] = segment_sizes_.try_emplace(entry.location.segment);
  if (is_new) {
    const auto bytes = store_.segment_size(entry.location.segment);
    if (bytes.is_ok()) size->second = *bytes;
  }
  return store::chunk_end(entry.fingerprint, entry.location) <= size->second;
}

plan::Placement StoredChunks::of_job(plan::Placement committed) const {
  return committed.remap(index_.nodes) ? committed : plan::Placement();
}

void StoredChunks::find_committed(NamedChunks& chunks) {
  const store::IndexReader* committed = index();
  if (committed == nullptr) return;
  // In the index's order, so that each of its pages is read once.
  std::vector<std::uint32_t> order(chunks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return chunks.name(a) < chunks.name(b); });
  std::unordered_map<std::uint32_t, plan::Placement> placements;  // by number in the index
  for (const std::uint32_t i : order) {
    const auto entry = committed->find_content(chunks.name(i));
    if (!entry.is_ok() || entry->location.length != chunks.length(i) || !is_present(*entry)) {
      continue;
    }
    const auto [placement, is_new] = placements.try_emplace(entry->placement);
    if (is_new) placement->second = of_job(committed->placement(entry->placement));
    chunks.name_held(i, entry->fingerprint, placement->second);
  }
}

Status StoredChunks::look(NamedChunks& chunks, const service::DumpRound& round) {
  std::vector<std::uint32_t> asked;
  for (std::uint32_t i = 0; i < chunks.size();) {
    service::Look request{identity_, round, {}, {}, {}};
    if (index_.reader) request.searched = index_.reader->attempt();
    asked.clear();
    const std::size_t most = std::min<std::size_t>(chunks.size() - i, kAskAtOnce);
    asked.reserve(most);
    request.names.reserve(most);
    request.shared.reserve(most);
    for (; i < chunks.size() && asked.size() < kAskAtOnce; ++i) {
      if (chunks.is_held(i)) continue;
      asked.push_back(i);
      request.names.push_back(chunks.name(i));
      request.shared.push_back(chunks.is_open(i) ? 0 : 1);
    }
    if (asked.empty()) break;
    DEDUP_ASSIGN(const service::LookReply reply, client_.call(client_.self(), request));
    DEDUP_TRY(take_answer(chunks, asked, reply));
  }
  return Status::ok();
}

Status StoredChunks::take_answer(NamedChunks& chunks, std::span<const std::uint32_t> asked,
                                 const service::LookReply& reply) const {
  if (reply.held.size() != asked.size()) {
    return {Code::kInternal, "a service answered a look with a wrong count"};
  }
  // Another handle of this job may have committed meanwhile: then the numbers are others.
  const bool is_same_base = index_.reader && index_.reader->attempt() == reply.base;
  std::vector<plan::Placement> committed;
  for (const plan::Placement& placement : reply.committed) {
    committed.push_back(is_same_base ? of_job(placement) : plan::Placement());
  }
  std::size_t next = 0;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    if (reply.held[k] == service::Held::kNot) continue;
    const service::FoundChunk& found = reply.found[next++];
    const auto& list = reply.held[k] == service::Held::kSince ? reply.placements : committed;
    const Fingerprint& name = chunks.name(asked[k]);
    const bool is_shared = found.single == service::FoundChunk::kShared;
    chunks.name_held(asked[k], is_shared ? name : name_of_single(name, found.single),
                     list[found.placement]);
  }
  return Status::ok();
}

}  // namespace dedup::engine
