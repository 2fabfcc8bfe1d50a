#include "service/compaction.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/fs.h"
#include "store/segment.h"

namespace dedup::service {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{4} << 20;

struct Move {
  std::uint32_t entry;
  store::ChunkLocation to;
};

std::vector<std::uint64_t> find_sparse(const store::Store& store, const Id128& identity,
                                       std::span<const store::IndexEntry> entries) {
  std::unordered_map<std::uint64_t, std::uint64_t> live;
  for (const auto& entry : entries) {
    live[entry.location.segment] += store::kChunkHeaderSize + entry.location.length;
  }
  std::vector<std::uint64_t> sparse;
  const auto sizes = store.segments(identity);
  if (!sizes.is_ok()) return sparse;
  for (const auto& size : *sizes) {
    const auto it = live.find(size.segment);
    if (it != live.end() && it->second < size.bytes / 2) sparse.push_back(size.segment);
  }
  return sparse;
}

// Copies chunks of one segment, given by their numbers in `entries` in the order of their offsets.
// `sound` says which failure it was: false if the segment's chunks could not be read.
Status copy_segment(const store::SegmentReader& reader, store::SegmentWriter& writer,
                    std::span<const store::IndexEntry> entries,
                    std::span<const std::uint32_t> which, std::vector<Move>& moves, bool& sound) {
  sound = true;
  for (std::size_t begin = 0, end; begin < which.size(); begin = end) {
    std::size_t bytes = 0;
    std::vector<store::ChunkLocation> locations;
    std::vector<Fingerprint> fingerprints;
    for (end = begin; end < which.size() && bytes < kCopyBytes; ++end) {
      const store::IndexEntry& entry = entries[which[end]];
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
    for (std::size_t i = begin; i < end; ++i) {
      DEDUP_ASSIGN(const auto to, writer.append(fingerprints[i - begin], outs[i - begin]));
      moves.push_back({which[i], to});
    }
  }
  return Status::ok();
}

// Fills `moves`, which are good only if this succeeds.
Status copy_all(const store::Store& store, const Id128& identity, store::SegmentWriter& writer,
                std::span<const store::IndexEntry> entries,
                const std::vector<std::uint64_t>& sparse, bool flush, std::vector<Move>& moves) {
  std::vector<std::uint32_t> which;
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    if (std::binary_search(sparse.begin(), sparse.end(), entries[i].location.segment)) {
      which.push_back(i);
    }
  }
  std::sort(which.begin(), which.end(), [&](std::uint32_t a, std::uint32_t b) {
    return entries[a].location < entries[b].location;
  });
  for (std::size_t begin = 0, end; begin < which.size(); begin = end) {
    const std::uint64_t segment = entries[which[begin]].location.segment;
    end = begin;
    while (end < which.size() && entries[which[end]].location.segment == segment) ++end;
    const auto reader = store::SegmentReader::open(store.segment_path(identity, segment));
    if (!reader.is_ok()) continue;
    bool sound;
    const Status status = copy_segment(**reader, writer, entries,
                                       std::span(which).subspan(begin, end - begin), moves, sound);
    if (sound) DEDUP_TRY(status);
  }
  return flush ? writer.flush() : writer.write_out();
}

}  // namespace

std::uint64_t compact(store::Store& store, FileChunks& chunks, const Id128& identity,
                      std::span<store::IndexEntry> entries, bool flush) {
  const std::vector<std::uint64_t> sparse = find_sparse(store, identity, entries);
  if (sparse.empty()) return 0;
  const auto number = chunks.open_segment();
  if (!number.is_ok()) return 0;
  const std::string path = store.segment_path(identity, *number);
  std::vector<Move> moves;
  Status status;
  {
    auto writer = store::SegmentWriter::create(path, identity, *number);
    status = writer.status();
    if (status.is_ok()) {
      status = copy_all(store, identity, **writer, entries, sparse, flush, moves);
    }
  }
  if (!status.is_ok() || moves.empty()) {
    // If even that fails, the next collection finds a segment that nobody refers to.
    (void)store::fs::remove_file(path);
    return 0;
  }
  for (const Move& move : moves) entries[move.entry].location = move.to;
  return *number;
}

}  // namespace dedup::service
