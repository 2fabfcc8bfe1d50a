#include "engine/chunks/stored_chunks.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "store/chunk_reader.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kAskAtOnce = 65536;                    // chunks
constexpr std::size_t kReadAtOnce = std::size_t{512} << 10;  // what a processor keeps near

// Reads chunks of which it is known where they are.
class LocatedChunks : public store::ChunkReader {
 public:
  explicit LocatedChunks(const OwnStore& store) : store_(store) {}

  void add(const Fingerprint& name, const store::ChunkLocation& location) {
    locations_.emplace(name, location);
  }

 private:
  std::optional<std::vector<store::ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) override {
    std::vector<store::ChunkLocation> out;
    out.reserve(fingerprints.size());
    for (const Fingerprint& name : fingerprints) out.push_back(locations_.at(name));
    return out;
  }
  std::shared_ptr<const store::SegmentReader> segment(std::uint64_t number) override {
    const auto reader = store_.segment(number);
    return reader.is_ok() ? *reader : nullptr;
  }

  const OwnStore& store_;
  std::unordered_map<Fingerprint, store::ChunkLocation> locations_;
};

}  // namespace

void StoredChunks::forget_committed() {
  index_ = {};
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

plan::Placement StoredChunks::of_job(plan::Placement committed) const {
  return committed.remap(index_.nodes) ? committed : plan::Placement();
}

void StoredChunks::find_committed(NamedChunks& chunks, std::vector<std::uint8_t>& may_have_twin) {
  const store::IndexReader* committed = index();
  if (committed == nullptr) return;
  // In the index's order, so that each of its pages is read once.
  std::vector<std::uint32_t> order(chunks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return chunks.name(a) < chunks.name(b); });
  std::vector<Candidate> candidates;
  for (const std::uint32_t i : order) {
    if (committed->has_strong()) may_have_twin[i] = 1;
    const auto entry = committed->find_single(fast_part(chunks.name(i)));
    if (!entry.is_ok()) continue;
    may_have_twin[i] = 1;
    candidates.push_back({i, entry->fingerprint, entry->location, entry->placement});
  }
  // In the order of the data, in which they mostly stand in the segments.
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.chunk < b.chunk; });
  const std::vector<std::uint8_t> same = compare(chunks, candidates);
  std::unordered_map<std::uint32_t, plan::Placement> placements;  // by number in the index
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (same[c] == 0) continue;
    const auto [entry, is_new] = placements.try_emplace(candidates[c].placement);
    if (is_new) entry->second = of_job(committed->placement(candidates[c].placement));
    chunks.name_held(candidates[c].chunk, candidates[c].name, entry->second);
  }
}

std::vector<std::uint8_t> StoredChunks::compare(const NamedChunks& chunks,
                                                std::span<const Candidate> candidates) const {
  std::vector<std::uint8_t> same(candidates.size());
  Bytes buffer;
  for (std::size_t begin = 0, end = 0; begin < candidates.size(); begin = end) {
    std::size_t bytes = 0;
    LocatedChunks reader(store_);
    for (; end < candidates.size() && (end == begin || bytes < kReadAtOnce); ++end) {
      bytes += chunks.length(candidates[end].chunk);
      reader.add(candidates[end].name, candidates[end].location);
    }
    buffer.resize(bytes);
    std::vector<store::ChunkTarget> targets;
    targets.reserve(end - begin);
    std::byte* at = buffer.data();
    for (std::size_t c = begin; c < end; ++c) {
      const std::uint32_t length = chunks.length(candidates[c].chunk);
      targets.push_back({candidates[c].name, {at, length}});
      at += length;
      same[c] = 1;
    }
    for (const std::size_t missing : reader.read(targets)) same[begin + missing] = 0;
    for (std::size_t c = begin; c < end; ++c) {
      const std::span<const std::byte> stored = targets[c - begin].out;
      const std::span<const std::byte> written = chunks.data(candidates[c].chunk);
      // Not std::ranges::equal(): it compares byte by byte.
      const bool equal = stored.size() == written.size() &&
                         std::memcmp(stored.data(), written.data(), stored.size()) == 0;
      if (!equal) same[c] = 0;
    }
  }
  return same;
}

Status StoredChunks::look(NamedChunks& chunks, std::span<const FastHash> hashes,
                          const service::DumpRound& round,
                          std::vector<std::uint8_t>& may_have_twin) {
  std::vector<std::uint32_t> asked;
  for (std::uint32_t i = 0; i < chunks.size();) {
    service::Look request{identity_, round, {}, {}, {}};
    asked.clear();
    for (; i < chunks.size() && asked.size() < kAskAtOnce; ++i) {
      if (chunks.is_held(i)) continue;
      asked.push_back(i);
      request.hashes.push_back(hashes[i]);
      request.strong.push_back(chunks.is_open(i) ? 0 : 1);
      if (!chunks.is_open(i)) request.names.push_back(chunks.name(i));
    }
    if (asked.empty()) break;
    if (request.names.empty()) request.strong.clear();
    DEDUP_ASSIGN(const service::LookReply reply, client_.call(client_.self(), request));
    DEDUP_TRY(take_answer(chunks, asked, reply, may_have_twin));
  }
  return Status::ok();
}

Status StoredChunks::take_answer(NamedChunks& chunks, std::span<const std::uint32_t> asked,
                                 const service::LookReply& reply,
                                 std::vector<std::uint8_t>& may_have_twin) const {
  if (reply.held.size() != asked.size() ||
      (!reply.alike.empty() && reply.alike.size() != asked.size())) {
    return {Code::kInternal, "a service answered a look with a wrong count"};
  }
  // Another handle of this job may have committed meanwhile: then the numbers are others.
  const bool is_same_base = index_.reader && index_.reader->attempt() == reply.base;
  std::vector<plan::Placement> committed;
  for (const plan::Placement& placement : reply.committed) {
    committed.push_back(is_same_base ? of_job(placement) : plan::Placement());
  }
  std::size_t placed = 0;
  std::vector<Candidate> candidates;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    const std::uint32_t i = asked[k];
    if (reply.held[k] != service::Held::kNot) {
      const auto& list = reply.held[k] == service::Held::kSince ? reply.placements : committed;
      chunks.name_held(i, chunks.name(i), list[reply.placed[placed++]]);
    }
    if (reply.alike.empty() || reply.alike[k] == 0) continue;
    const service::FoundSingle& single = reply.singles[candidates.size()];
    candidates.push_back({i, single.name, single.location, single.placement});
  }
  const std::vector<std::uint8_t> same = compare(chunks, candidates);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const std::uint32_t i = candidates[c].chunk;
    if (same[c] != 0) {
      chunks.name_held(i, candidates[c].name, reply.placements[candidates[c].placement]);
    } else if (chunks.is_open(i)) {
      may_have_twin[i] = 1;
    }
  }
  return Status::ok();
}

}  // namespace dedup::engine
