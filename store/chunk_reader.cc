#include "store/chunk_reader.h"

#include <algorithm>
#include <numeric>

namespace dedup::store {
namespace {

// Of which the first is looked up. So much is read at once that it is still in the processor's
// cache when it is checked.
constexpr std::size_t kStretch = 64;
// A stretch may end where another one begins: what is left is tried once more.
constexpr int kRounds = 2;

}  // namespace

std::vector<std::size_t> ChunkReader::read(std::span<const ChunkTarget> chunks) {
  std::vector<std::size_t> left(chunks.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  guess_ = kStretch;
  for (int round = 0; round < kRounds && !left.empty(); ++round) {
    left = read_stretches(chunks, left);
  }
  return left.empty() ? left : read_located(chunks, left);
}

std::vector<ChunkLocation> ChunkReader::locate(std::span<const ChunkTarget> chunks,
                                               const std::vector<std::size_t>& which) {
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(which.size());
  for (const std::size_t i : which) fingerprints.push_back(chunks[i].fingerprint);
  std::vector<ChunkLocation> locations = locate(fingerprints);
  locations.resize(which.size());
  for (std::size_t k = 0; k < which.size(); ++k) {
    if (locations[k].length != chunks[which[k]].out.size()) locations[k] = {};
  }
  return locations;
}

std::vector<std::size_t> ChunkReader::read_stretches(std::span<const ChunkTarget> chunks,
                                                     const std::vector<std::size_t>& which) {
  // Chunks that are wanted one after the other, cut where a stretch is long enough.
  std::vector<std::size_t> firsts;
  for (std::size_t k = 0, length = 0; k < which.size(); ++k, ++length) {
    if (k != 0 && which[k] == which[k - 1] + 1 && length < kStretch) continue;
    firsts.push_back(which[k]);
    length = 0;
  }
  const std::vector<ChunkLocation> locations = locate(chunks, firsts);

  std::vector<std::size_t> left;
  std::vector<Fingerprint> fingerprints;
  std::vector<std::span<std::byte>> outs;
  auto next = which.begin();
  for (std::size_t s = 0; s < firsts.size(); ++s) {
    const auto begin = next;
    next =
        s + 1 < firsts.size() ? std::lower_bound(begin, which.end(), firsts[s + 1]) : which.end();
    fingerprints.clear();
    outs.clear();
    for (auto it = begin; it != next; ++it) {
      fingerprints.push_back(chunks[*it].fingerprint);
      outs.push_back(chunks[*it].out);
    }
    const SegmentReader* const reader =
        locations[s].length == 0 ? nullptr : segment(locations[s].segment);
    std::size_t done = 0;
    for (std::uint64_t offset = locations[s].offset; reader != nullptr && done < outs.size();) {
      const std::size_t asked = std::min(guess_, outs.size() - done);
      const std::size_t got =
          reader->read_following(offset, std::span(fingerprints).subspan(done, asked),
                                 std::span(outs).subspan(done, asked));
      for (std::size_t i = done; i < done + got; ++i) offset += kChunkHeaderSize + outs[i].size();
      done += got;
      guess_ = got == asked ? std::min(2 * guess_, kStretch) : std::max<std::size_t>(got, 1);
      if (got < asked) break;
    }
    left.insert(left.end(), begin + static_cast<std::ptrdiff_t>(done), next);
  }
  return left;
}

std::vector<std::size_t> ChunkReader::read_located(std::span<const ChunkTarget> chunks,
                                                   const std::vector<std::size_t>& which) {
  struct Found {
    ChunkLocation location;
    std::size_t index;
  };
  std::vector<Found> found;
  std::vector<std::size_t> failed;
  const std::vector<ChunkLocation> locations = locate(chunks, which);
  for (std::size_t k = 0; k < which.size(); ++k) {
    if (locations[k].length == 0) {
      failed.push_back(which[k]);
    } else {
      found.push_back({locations[k], which[k]});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.location < b.location; });
  for (std::size_t begin = 0, end; begin < found.size(); begin = end) {
    std::vector<ChunkLocation> run;
    std::vector<Fingerprint> fingerprints;
    std::vector<std::span<std::byte>> outs;
    const std::uint64_t number = found[begin].location.segment;
    for (end = begin; end < found.size() && found[end].location.segment == number; ++end) {
      run.push_back(found[end].location);
      fingerprints.push_back(chunks[found[end].index].fingerprint);
      outs.push_back(chunks[found[end].index].out);
    }
    const SegmentReader* const reader = segment(number);
    if (reader != nullptr && reader->read_run(run, fingerprints, outs).is_ok()) continue;
    // One by one, so that a damaged chunk costs that chunk only.
    for (std::size_t k = 0; k < run.size(); ++k) {
      if (reader == nullptr || !reader->read(run[k], fingerprints[k], outs[k]).is_ok()) {
        failed.push_back(found[begin + k].index);
      }
    }
  }
  std::sort(failed.begin(), failed.end());
  return failed;
}

}  // namespace dedup::store
