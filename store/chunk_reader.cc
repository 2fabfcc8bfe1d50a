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

// How a stretch begins.
enum class Begin {
  kAnew,   // somewhere
  kGoesOn  // where the one before has ended, if it was all there
};

// Finds out where stretches begin: wherever chunks are not wanted one after the other, a stretch is
// long enough, or the numbers of chunks without a header do not go on.
class Stretches {
 public:
  // Whether one begins with the next chunk. `follows`: it is wanted after the one before.
  std::optional<Begin> begins_with(const Fingerprint& name, std::size_t bytes, bool follows) {
    const bool single = is_single(name);
    const std::uint64_t own_number = single ? number_of_single(name) : 0;
    const bool goes_on =
        follows && count_ != 0 && (!single || (numbered_ && own_number == number_ + 1));
    const bool is_long = count_ >= kStretch || bytes_ + bytes > kStretchBytes;
    std::optional<Begin> begin;
    if (!goes_on || is_long) {
      begin = goes_on ? Begin::kGoesOn : Begin::kAnew;
      count_ = 0;
      bytes_ = 0;
    }
    if (!goes_on) numbered_ = false;
    ++count_;
    bytes_ += bytes;
    if (single) {
      numbered_ = true;
      number_ = own_number;
    }
    return begin;
  }

 private:
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
  // Of the last chunk without a header, if stretches have gone on since.
  bool numbered_ = false;
  std::uint64_t number_ = 0;
};

struct StretchBegin {
  std::size_t position = 0;  // in the list of what is wanted
  Begin how = Begin::kAnew;
};

std::vector<StretchBegin> begins_of_stretches(std::span<const ChunkTarget> chunks,
                                              const std::vector<std::size_t>& which) {
  std::vector<StretchBegin> begins;
  Stretches stretches;
  for (std::size_t k = 0; k < which.size(); ++k) {
    const ChunkTarget& chunk = chunks[which[k]];
    const bool follows = k != 0 && which[k] == which[k - 1] + 1;
    const auto begin = stretches.begins_with(chunk.fingerprint, chunk.out.size(), follows);
    if (begin) begins.push_back({k, *begin});
  }
  return begins;
}

void give_seal(const ChunkTarget& chunk, const ChunkSeal& seal) {
  if (chunk.seal != nullptr) *chunk.seal = seal;
}

}  // namespace

std::optional<StretchEnds::End> StretchEnds::take(const Fingerprint& name) {
  if (!is_single(name)) return std::nullopt;
  const std::uint64_t number = number_of_single(name);
  const std::lock_guard lock(mutex_);
  const End* const found = by_next_number_.find(number);
  if (found == nullptr) return std::nullopt;
  const End end = *found;
  by_next_number_.erase(number);
  return end;
}

void StretchEnds::leave(const Fingerprint& last, const End& end) {
  if (!is_single(last)) return;
  const std::uint64_t next = number_of_single(last) + 1;
  const std::lock_guard lock(mutex_);
  by_next_number_.insert(next, end);
}

std::size_t StretchEnds::guess() const {
  const std::lock_guard lock(mutex_);
  return guess_;
}

void StretchEnds::set_guess(std::size_t chunks) {
  const std::lock_guard lock(mutex_);
  guess_ = chunks;
}

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
  guess_ = std::max(kFirstGuess, ends_ == nullptr ? 0 : ends_->guess());
  bool most_went_well = false;
  const auto go_on = [&](std::optional<Positions> result) {
    if (result) left = std::move(*result);
    return result.has_value();
  };
  if (left.empty() || !go_on(read_stretches(chunks, left, most_went_well))) return left;
  // A stretch may end where another one begins. If most went well that is worth another try.
  if (!left.empty() && most_went_well) {
    if (!go_on(read_stretches(chunks, left, most_went_well))) return left;
  }
  if (!left.empty()) go_on(read_located(chunks, left));
  if (ends_ != nullptr) ends_->set_guess(guess_);
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

// Reads stretch after stretch.
class ChunkReader::Pass {
 public:
  Pass(ChunkReader& reader, std::span<const ChunkTarget> chunks, const Positions& which)
      : reader_(reader),
        chunks_(chunks),
        which_(which),
        begins_(begins_of_stretches(chunks, which)),
        locations_(begins_.size()) {}

  // False if nobody knows where chunks are.
  bool run() {
    for (std::size_t s = 0; s < begins_.size(); ++s) {
      const std::size_t end = s + 1 < begins_.size() ? begins_[s + 1].position : which_.size();
      const std::span<const std::size_t> stretch(which_.data() + begins_[s].position,
                                                 end - begins_[s].position);
      begin(stretch);
      std::size_t done = guess(s) ? read_on(stretch) : 0;
      if (done == 0) {
        if (!look_up(s)) return false;
        at_ = {locations_[s]->segment, locations_[s]->offset, 0};
        if (locations_[s]->length != 0) done = read(stretch);
      }
      is_whole_ = done == stretch.size();
      if (!is_whole_) ++broken_;
      left_.insert(left_.end(), stretch.begin() + static_cast<std::ptrdiff_t>(done), stretch.end());
      const bool ends_here = s + 1 == begins_.size() || begins_[s + 1].how == Begin::kAnew;
      if (reader_.ends_ != nullptr && is_whole_ && ends_here) {
        reader_.ends_->leave(fingerprints_.back(), at_);
      }
    }
    return true;
  }

  Positions& left() { return left_; }
  // Of several stretches one that breaks off says little of the others.
  bool most_went_well() const {
    return left_.size() <= which_.size() / 2 ||
           (broken_ == 1 && which_.size() - left_.size() >= kFirstGuess / 2);
  }

 private:
  void begin(std::span<const std::size_t> stretch) {
    fingerprints_.clear();
    outs_.clear();
    for (const std::size_t i : stretch) {
      fingerprints_.push_back(chunks_[i].fingerprint);
      outs_.push_back(chunks_[i].out);
    }
    seals_.assign(outs_.size(), {});
  }

  // Whether what was read before tells where a stretch begins.
  bool guess(std::size_t s) {
    if (begins_[s].how == Begin::kGoesOn) return is_whole_;
    if (reader_.ends_ == nullptr || locations_[s]) return false;
    const auto end = reader_.ends_->take(fingerprints_[0]);
    if (end) at_ = *end;
    return end.has_value();
  }

  // Looks up where a stretch begins, and with it those after it that do not go on from another.
  bool look_up(std::size_t s) {
    if (locations_[s]) return true;
    std::vector<std::size_t> asked;
    Positions firsts;
    for (std::size_t t = s; t < begins_.size(); ++t) {
      if (locations_[t] || (t != s && begins_[t].how == Begin::kGoesOn)) continue;
      asked.push_back(t);
      firsts.push_back(which_[begins_[t].position]);
    }
    const auto locations = reader_.locate(chunks_, firsts);
    if (!locations) return false;
    for (std::size_t k = 0; k < asked.size(); ++k) locations_[asked[k]] = (*locations)[k];
    return true;
  }

  // The group that begins with the i-th chunk of the stretch, if its list is next.
  bool enter_group(std::size_t i) {
    if (!segment_ || !is_single(fingerprints_[i])) return false;
    const auto length = static_cast<std::uint32_t>(outs_[i].size());
    const auto group = segment_->group_at(at_.offset, fingerprints_[i], length);
    if (!group) return false;
    at_.offset = group->offset;
    at_.left_in_group = group->chunks;
    return true;
  }

  // As read(), where a group may have ended.
  std::size_t read_on(std::span<const std::size_t> stretch) {
    open();
    if (at_.left_in_group == 0) enter_group(0);
    return read(stretch);
  }

  // Stretches of one segment mostly follow each other.
  void open() {
    if (segment_ && number_ == at_.segment) return;
    number_ = at_.segment;
    segment_ = reader_.segment(number_);
  }

  // How many of a stretch stand where at_ is, which goes behind them.
  std::size_t read(std::span<const std::size_t> stretch) {
    open();
    std::size_t& at_once = reader_.guess_;
    std::size_t done = 0;
    while (segment_ && done < outs_.size()) {
      const bool knows_group = at_.left_in_group != 0;
      std::size_t asked = std::min(at_once, outs_.size() - done);
      if (knows_group) asked = std::min(asked, at_.left_in_group);
      const std::size_t got = read_some(stretch, done, asked);
      done += got;
      // That the first is there was known.
      if (got == asked && asked > 1) at_once = std::max(at_once, std::min(2 * asked, kStretch));
      if (done == outs_.size()) break;
      const bool may_end_here = knows_group ? at_.left_in_group == 0 : got < asked;
      if (may_end_here && done != 0 && enter_group(done)) continue;
      if (got == asked) continue;
      // Of nothing it was the place that was wrong, not how many there are.
      if (done != 0) at_once = std::max(got, kLeastGuess);
      break;
    }
    return done;
  }

  std::size_t read_some(std::span<const std::size_t> stretch, std::size_t done, std::size_t asked) {
    const std::size_t got = segment_->read_following(
        at_.offset, std::span(fingerprints_).subspan(done, asked),
        std::span(outs_).subspan(done, asked), std::span(seals_).subspan(done, asked));
    for (std::size_t i = done; i < done + got; ++i) {
      give_seal(chunks_[stretch[i]], seals_[i]);
      const auto length = static_cast<std::uint32_t>(outs_[i].size());
      at_.offset = chunk_end(fingerprints_[i], {number_, at_.offset, length});
    }
    at_.left_in_group -= std::min(got, at_.left_in_group);
    return got;
  }

  ChunkReader& reader_;
  std::span<const ChunkTarget> chunks_;
  const Positions& which_;
  std::vector<StretchBegin> begins_;
  std::vector<std::optional<ChunkLocation>> locations_;  // of what was looked up; length 0: nowhere
  // Of the stretch that is read.
  std::vector<Fingerprint> fingerprints_;
  std::vector<std::span<std::byte>> outs_;
  std::vector<ChunkSeal> seals_;
  // Where the next chunk is to be, and the segment that was read last.
  StretchEnds::End at_;
  std::shared_ptr<const SegmentReader> segment_;
  std::uint64_t number_ = 0;
  bool is_whole_ = false;
  std::size_t broken_ = 0;
  Positions left_;
};

std::optional<ChunkReader::Positions> ChunkReader::read_stretches(
    std::span<const ChunkTarget> chunks, const Positions& which, bool& most_went_well) {
  Pass pass(*this, chunks, which);
  if (!pass.run()) return std::nullopt;
  most_went_well = pass.most_went_well();
  return std::move(pass.left());
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
