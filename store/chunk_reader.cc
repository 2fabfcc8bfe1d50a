#include "store/chunk_reader.h"

#include <algorithm>
#include <numeric>

#include "base/hasher.h"

namespace dedup::store {
namespace {

// A stretch, of which the first chunk is looked up. So much is read at once that it is still in the
// processor's cache when it is checked.
constexpr std::size_t kStretch = 64;
constexpr std::size_t kStretchBytes = std::size_t{512} << 10;
constexpr std::size_t kFirstGuess = 8;
constexpr std::size_t kLeastGuess = 2;  // the one that was looked up, and one more

// Finds out where stretches begin: wherever chunks are not wanted one after the other, a stretch is
// long enough, or the numbers of chunks without a header do not go on.
class Stretches {
 public:
  // Whether one begins with the next chunk. `follows`: it is wanted after the one before.
  bool begins_with(const Fingerprint& name, std::size_t bytes, bool follows) {
    const bool single = is_single(name);
    const std::uint64_t own_number = single ? number_of_single(name) : 0;
    const bool goes_on = follows && count_ != 0 && count_ < kStretch &&
                         bytes_ + bytes <= kStretchBytes &&
                         (!single || (numbered_ && own_number == number_ + 1));
    if (!goes_on) {
      count_ = 0;
      bytes_ = 0;
      numbered_ = false;
    }
    ++count_;
    bytes_ += bytes;
    if (single) {
      numbered_ = true;
      number_ = own_number;
    }
    return !goes_on;
  }

 private:
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  // Of the stretch's last chunk without a header, if it has one.
  bool numbered_ = false;
  std::uint64_t number_ = 0;
};

// Their positions in `which`.
std::vector<std::size_t> begins_of_stretches(std::span<const ChunkTarget> chunks,
                                             const std::vector<std::size_t>& which) {
  std::vector<std::size_t> begins;
  Stretches stretches;
  for (std::size_t k = 0; k < which.size(); ++k) {
    const ChunkTarget& chunk = chunks[which[k]];
    const bool follows = k != 0 && which[k] == which[k - 1] + 1;
    if (stretches.begins_with(chunk.fingerprint, chunk.out.size(), follows)) begins.push_back(k);
  }
  return begins;
}

void give_seal(const ChunkTarget& chunk, const ChunkSeal& seal) {
  if (chunk.seal != nullptr) *chunk.seal = seal;
}

}  // namespace

std::vector<Fingerprint> firsts_of_stretches(std::span<const NamedChunk> chunks) {
  std::vector<Fingerprint> firsts;
  Stretches stretches;
  for (const NamedChunk& chunk : chunks) {
    if (stretches.begins_with(chunk.fingerprint, chunk.length, true)) {
      firsts.push_back(chunk.fingerprint);
    }
  }
  return firsts;
}

std::vector<std::size_t> ChunkReader::read(std::span<const ChunkTarget> chunks) {
  Positions left(chunks.size());
  std::iota(left.begin(), left.end(), std::size_t{0});
  guess_ = kFirstGuess;
  const auto go_on = [&](std::optional<Positions> result) {
    if (result) left = std::move(*result);
    return result.has_value();
  };
  if (left.empty() || !go_on(read_stretches(chunks, left))) return left;
  // A stretch may end where another one begins. If most went well that is worth another try.
  if (!left.empty() && left.size() <= chunks.size() / 2) {
    if (!go_on(read_stretches(chunks, left))) return left;
  }
  if (!left.empty()) go_on(read_located(chunks, left));
  return left;
}

std::optional<std::vector<ChunkLocation>> ChunkReader::locate(std::span<const ChunkTarget> chunks,
                                                              const Positions& which) {
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(which.size());
  for (const std::size_t i : which) fingerprints.push_back(chunks[i].fingerprint);
  auto locations = locate(fingerprints);
  if (!locations || locations->size() != which.size()) return std::nullopt;
  for (std::size_t k = 0; k < which.size(); ++k) {
    ChunkLocation& location = (*locations)[k];
    if (location.length != chunks[which[k]].out.size()) location = {};
  }
  return locations;
}

std::optional<ChunkReader::Positions> ChunkReader::read_stretches(
    std::span<const ChunkTarget> chunks, const Positions& which) {
  const std::vector<std::size_t> begins = begins_of_stretches(chunks, which);
  Positions firsts;
  firsts.reserve(begins.size());
  for (const std::size_t begin : begins) firsts.push_back(which[begin]);
  const auto locations = locate(chunks, firsts);
  if (!locations) return std::nullopt;

  Positions left;
  std::vector<Fingerprint> fingerprints;
  std::vector<std::span<std::byte>> outs;
  std::vector<ChunkSeal> seals;
  // Stretches of one segment mostly follow each other.
  std::shared_ptr<const SegmentReader> reader;
  std::uint64_t number = 0;
  for (std::size_t s = 0; s < begins.size(); ++s) {
    const std::size_t end = s + 1 < begins.size() ? begins[s + 1] : which.size();
    const std::span<const std::size_t> stretch(which.data() + begins[s], end - begins[s]);
    fingerprints.clear();
    outs.clear();
    for (const std::size_t i : stretch) {
      fingerprints.push_back(chunks[i].fingerprint);
      outs.push_back(chunks[i].out);
    }
    seals.assign(outs.size(), {});
    const ChunkLocation& first = (*locations)[s];
    const bool is_here = first.length != 0;
    if (is_here && (!reader || number != first.segment)) {
      number = first.segment;
      reader = segment(number);
    }
    std::size_t done = 0;
    for (std::uint64_t offset = first.offset; is_here && reader && done < outs.size();) {
      const std::size_t asked = std::min(guess_, outs.size() - done);
      const std::size_t got = reader->read_following(
          offset, std::span(fingerprints).subspan(done, asked),
          std::span(outs).subspan(done, asked), std::span(seals).subspan(done, asked));
      for (std::size_t i = done; i < done + got; ++i) {
        give_seal(chunks[stretch[i]], seals[i]);
        const auto length = static_cast<std::uint32_t>(outs[i].size());
        offset = chunk_end(fingerprints[i], {first.segment, offset, length});
      }
      done += got;
      if (got < asked) {
        guess_ = std::max(got, kLeastGuess);
        break;
      }
      // That the first is there was known.
      if (asked > 1) guess_ = std::max(guess_, std::min(2 * asked, kStretch));
    }
    left.insert(left.end(), stretch.begin() + static_cast<std::ptrdiff_t>(done), stretch.end());
  }
  return left;
}

std::optional<ChunkReader::Positions> ChunkReader::read_located(std::span<const ChunkTarget> chunks,
                                                                const Positions& which) {
  struct Found {
    ChunkLocation location;
    std::size_t index;
  };
  const auto locations = locate(chunks, which);
  if (!locations) return std::nullopt;
  std::vector<Found> found;
  Positions failed;
  for (std::size_t k = 0; k < which.size(); ++k) {
    if ((*locations)[k].length == 0) {
      failed.push_back(which[k]);
    } else {
      found.push_back({(*locations)[k], which[k]});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.location < b.location; });
  for (std::size_t begin = 0, end; begin < found.size(); begin = end) {
    std::vector<ChunkLocation> run;
    std::vector<Fingerprint> fingerprints;
    std::vector<std::span<std::byte>> outs;
    std::vector<ChunkSeal> seals;
    const std::uint64_t number = found[begin].location.segment;
    for (end = begin; end < found.size() && found[end].location.segment == number; ++end) {
      run.push_back(found[end].location);
      fingerprints.push_back(chunks[found[end].index].fingerprint);
      outs.push_back(chunks[found[end].index].out);
    }
    seals.resize(run.size());
    const auto reader = segment(number);
    const bool all = reader != nullptr && reader->read_run(run, fingerprints, outs, seals).is_ok();
    for (std::size_t k = 0; k < run.size(); ++k) {
      // One by one, so that a damaged chunk costs that chunk only.
      if (all || (reader != nullptr &&
                  reader->read(run[k], fingerprints[k], outs[k], {&seals[k], 1}).is_ok())) {
        give_seal(chunks[found[begin + k].index], seals[k]);
      } else {
        failed.push_back(found[begin + k].index);
      }
    }
  }
  std::sort(failed.begin(), failed.end());
  return failed;
}

}  // namespace dedup::store
