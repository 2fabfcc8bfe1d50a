#include "service/compaction.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "store/segment.h"

namespace dedup::service {
namespace {

// A segment is sparse if less than one of so many parts of the space that it takes is live. What
// another file has, too, is copied later: as long as that one is there, a copy takes space and
// frees none.
constexpr std::uint64_t kSparse = 2;
constexpr std::uint64_t kSparseIfShared = 4;
constexpr std::size_t kCopyBytes = std::size_t{4} << 20;

std::vector<std::uint64_t> find_sparse(const store::Store& store, const Id128& identity,
                                       const LiveChunks::Space& space) {
  std::vector<std::uint64_t> sparse;
  const auto sizes = store.segments(identity);
  if (!sizes.is_ok()) return sparse;
  for (const auto& size : *sizes) {
    const auto it = space.by_segment.find(size.segment);
    const std::uint64_t parts = size.is_shared ? kSparseIfShared : kSparse;
    if (it != space.by_segment.end() && it->second < size.space / parts) {
      sparse.push_back(size.segment);
    }
  }
  return sparse;
}

// Copies chunks of one segment, in the order of their offsets. `sound` says which failure it was:
// false if the segment's chunks could not be read.
Status copy_segment(const store::SegmentReader& reader, store::SegmentWriter& writer,
                    std::span<const store::IndexEntry> entries,
                    std::vector<store::IndexEntry>& moved, bool& sound) {
  sound = true;
  for (std::size_t begin = 0, end; begin < entries.size(); begin = end) {
    std::size_t bytes = 0;
    std::vector<store::ChunkLocation> locations;
    std::vector<Fingerprint> fingerprints;
    for (end = begin; end < entries.size() && bytes < kCopyBytes; ++end) {
      const store::IndexEntry& entry = entries[end];
      locations.push_back(entry.location);
      fingerprints.push_back(entry.fingerprint);
      bytes += entry.location.length;
    }
    Bytes buffer(bytes);
    std::vector<std::span<std::byte>> outs;
    std::size_t at = 0;
    for (const auto& location : locations) {
      outs.push_back(std::span(buffer).subspan(at, location.length));
      at += location.length;
    }
    const Status status = reader.read_run(locations, fingerprints, outs);
    if (!status.is_ok()) {
      sound = false;
      return status;
    }
    std::vector<store::SegmentChunk> chunks;
    for (std::size_t i = 0; i < outs.size(); ++i) chunks.push_back({fingerprints[i], outs[i]});
    DEDUP_TRY(writer.append(chunks, locations));
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      moved.push_back({fingerprints[i], locations[i], entries[begin + i].placement});
    }
  }
  return Status::ok();
}

// Fills `moved`, which is good only if this succeeds.
Status copy_all(const store::Store& store, const Id128& identity, store::SegmentWriter& writer,
                LiveChunks& live, const std::vector<std::uint64_t>& sparse, bool flush,
                std::vector<store::IndexEntry>& moved) {
  std::vector<store::IndexEntry> entries;
  DEDUP_TRY(live.for_each([&](const store::IndexEntry& entry) {
    if (std::binary_search(sparse.begin(), sparse.end(), entry.location.segment)) {
      entries.push_back(entry);
    }
    return Status::ok();
  }));
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.location < b.location; });
  for (std::size_t begin = 0, end; begin < entries.size(); begin = end) {
    const std::uint64_t segment = entries[begin].location.segment;
    end = begin;
    while (end < entries.size() && entries[end].location.segment == segment) ++end;
    const auto reader = store.segment(identity, segment);
    if (!reader.is_ok()) continue;
    bool sound;
    const Status status = copy_segment(
        **reader, writer, std::span(entries).subspan(begin, end - begin), moved, sound);
    if (sound) DEDUP_TRY(status);
  }
  return flush ? writer.flush() : writer.write_out();
}

}  // namespace

Compaction compact(store::Store& store, FileChunks& chunks, const Id128& identity, LiveChunks& live,
                   const LiveChunks::Space& space, bool flush) {
  const std::vector<std::uint64_t> sparse = find_sparse(store, identity, space);
  if (sparse.empty()) return {};
  const auto number = chunks.open_segment();
  if (!number.is_ok()) return {};
  Compaction out{*number, {}};
  Status status;
  {
    // Not in a faster tier than what it is made of: that may be lost sooner.
    auto writer = store.create_segment(identity, *number, store::SegmentUse::kCopies);
    status = writer.status();
    if (status.is_ok()) {
      status = copy_all(store, identity, **writer, live, sparse, flush, out.moved);
    }
  }
  if (!status.is_ok() || out.moved.empty()) {
    // If even that fails, the next collection finds a segment that nobody refers to.
    (void)store.remove_segment(identity, *number);
    return {};
  }
  std::sort(out.moved.begin(), out.moved.end(),
            [](const auto& a, const auto& b) { return a.fingerprint < b.fingerprint; });
  return out;
}

}  // namespace dedup::service
