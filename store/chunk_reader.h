// Reading many chunks of one store.
//
// Chunks that are wanted one after the other mostly stand one after the other, since writers append
// them in the file's order; and what stands there says whether it is the one. So only the first of
// them is looked up, and those after it are read from where they would follow it, a stretch at a
// time; also by the next read, if it goes on where one before has ended (StretchEnds). A chunk
// without a header is guessed only where its number follows that of the last such chunk before it:
// in a group the one with the next number stands there, and at a group's end the salt, so it is
// that chunk or none. (Anybody can make chunks of one checksum, so that alone would prove
// nothing.) How many at once depends on how the guesses before went: twice as many as last time
// after one that held, as many as held after one that did not, so that data in any order cost about
// one chunk in 64 read in vain. What is not found like that is looked up, and read in the order in
// which it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/lru.h"
#include "base/piece.h"
#include "base/types.h"
#include "store/segment.h"

namespace dedup::store {

// A chunk that is wanted, and where its bytes go: as many as it has.
struct ChunkTarget {
  Fingerprint fingerprint;
  std::span<std::byte> out;
  ChunkSeal* seal = nullptr;  // if it is wanted
};

// Those of chunks that are wanted one after the other which would be looked up.
std::vector<Fingerprint> firsts_of_stretches(std::span<const NamedChunk> chunks);

// What reads of one file's chunks in one store leave for those to come: where they ended, and how
// many chunks at once went well. Only behind chunks without a header, whose numbers tell what
// follows. About 10 KiB. Thread-safe.
class StretchEnds {
 public:
  struct End {
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;
    std::size_t left_in_group = 0;  // chunks that follow in the same group, at least; 0: not known
  };
  // The one behind which `name` would stand. Taken: who reads on from there leaves another one.
  std::optional<End> take(const Fingerprint& name);
  // A read ended behind `last`.
  void leave(const Fingerprint& last, const End& end);
  std::size_t guess() const;
  void set_guess(std::size_t chunks);

 private:
  static constexpr std::size_t kMost = 64;

  mutable std::mutex mutex_;
  Lru<std::uint64_t, End> by_next_number_{kMost};
  std::size_t guess_ = 0;
};

// One thread.
class ChunkReader {
 public:
  // `ends`: if others read there, too; must outlive it.
  explicit ChunkReader(StretchEnds* ends = nullptr) : ends_(ends) {}
  virtual ~ChunkReader() = default;

  // Every chunk is checked by its checksum. The positions of those that cannot be had, ascending.
  std::vector<std::size_t> read(std::span<const ChunkTarget> chunks);

 private:
  // Where each of them is; length 0: not here. Nothing if nobody knows: then nothing can be had.
  virtual std::optional<std::vector<ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) = 0;
  // Null if it cannot be read.
  virtual std::shared_ptr<const SegmentReader> segment(std::uint64_t number) = 0;

  using Positions = std::vector<std::size_t>;
  class Pass;  // of read_stretches()
  // Both return those of `which` that they did not get; nothing if nobody knows where chunks are.
  std::optional<Positions> read_stretches(std::span<const ChunkTarget> chunks,
                                          const Positions& which, bool& most_went_well);
  std::optional<Positions> read_located(std::span<const ChunkTarget> chunks,
                                        const Positions& which);
  // Of the lengths that are wanted.
  std::optional<std::vector<ChunkLocation>> locate(std::span<const ChunkTarget> chunks,
                                                   const Positions& which);

  StretchEnds* ends_;
  std::size_t guess_ = 0;  // chunks to read at once
};

}  // namespace dedup::store
