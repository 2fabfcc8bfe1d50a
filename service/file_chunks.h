// What one node's store has of one file's chunks: those of the committed generation, looked up in
// its index on disk, and those that came since, in memory; and the segments they are in.
//
// A chunk whose segment is gone, or too short for it, counts as not there, so that a commit stores
// it again. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "service/chunk_index.h"
#include "service/messages/store_node.h"
#include "store/index.h"
#include "store/segment.h"
#include "store/store.h"

namespace dedup::service {

class FileChunks {
 public:
  // `store` must outlive it. `base`: attempt of the committed generation; zero: none.
  FileChunks(store::Store& store, const Id128& identity, const Id128& base);

  const Id128& base() const { return base_; }
  // Another generation is the base, or the same one came to be here: its index is opened anew.
  void set_base(const Id128& base);
  // Until there is a base: what this index names, of segments that are this file's too, counts as
  // committed.
  void set_donor(std::unique_ptr<store::IndexReader> index);

  // Of the committed generation, or of the donor as long as there is none; null if there is none
  // here, or none that can be read.
  const store::IndexReader* base_index();
  // Whether that is the donor's.
  bool has_donors_index() const { return base_.is_zero() && base_index_ != nullptr; }

  // --- What is here -----------------------------------------------------------------------------
  // Where each chunk is; length 0: not here.
  std::vector<store::ChunkLocation> locate(std::span<const Fingerprint> fingerprints);
  LookReply look(const Look& request);
  // The chunks' bytes, checked. kArgument if they are more than a message holds.
  Result<ChunksReply> read(std::span<const NamedChunk> chunks);

  // --- What comes in ----------------------------------------------------------------------------
  // A number for a new segment; it is open from now on: chunks in it may be registered.
  Result<std::uint64_t> open_segment();
  Result<std::uint64_t> open_log();
  // A log that becomes a segment, too: the same. kArgument if no log has been given that number.
  Status open_segment_of(std::uint64_t log);
  std::vector<std::uint8_t> claim(const Claim& request);
  void release(std::span<const Fingerprint> fingerprints);
  // Whether what the base's index names may be other than it says.
  bool distrusts_any() const { return is_index_damaged_ || !distrusted_.empty(); }
  // Whether a segment could not be flushed: the disk may not have it.
  bool has_forgotten(std::uint64_t segment) const { return forgotten_.contains(segment); }
  // What the committed generation has of these here is bad: from now on they are not here, unless
  // they were stored again since. Good until set_base(). Those that read well but are not what they
  // are named after are made unreadable for good.
  Status distrust(std::span<const Fingerprint> fingerprints);
  // What is here of this chunk cannot be read: from now on it is not here, and may come again.
  void forget(const Fingerprint& fingerprint);
  // kArgument if a chunk's segment is not open or has no such place; then none is registered.
  Status add(const Register& request);
  // Appends those that are not here and not claimed to a segment of this object's own.
  Result<PutReply> put(const PutChunks& request);
  // A chunk that came since the last commit is kept so now; false if it did not.
  bool place(const Fingerprint& fingerprint, const plan::Placement& placement);

  // --- Commit -----------------------------------------------------------------------------------
  void begin_attempt();  // clears all marks and looks at the segments anew
  // `placement`: a number of intern(), good until committed().
  bool mark(const Fingerprint& fingerprint, std::uint32_t placement) {
    return index_.mark(fingerprint, placement);
  }
  std::uint32_t intern(const plan::Placement& placement) { return index_.intern(placement); }
  // Units of stripes that the file does not need whole, as the last commit found that referred to
  // everything.
  const std::vector<UnitShare>& shares() const { return shares_; }
  void set_shares(std::vector<UnitShare> shares) { shares_ = std::move(shares); }
  void forget_shares(std::span<const Id128> stripes);
  ChunkIndex::Pinned pin(const Fingerprint& fingerprint, std::uint32_t placement) {
    return index_.pin(fingerprint, placement);
  }
  const ChunkIndex& index() const { return index_; }
  // No more is appended to the own segment: later chunks go to another one.
  void close_own_segment() { own_.reset(); }
  // A segment that could not be flushed: its chunks count as not here any more.
  void forget_segment(std::uint64_t number);
  // Flushes those of `segments` that no commit of this job has flushed: an earlier one may not
  // have, nor the donor's. One that cannot be flushed is forgotten.
  Status flush(std::span<const std::uint64_t> segments);
  // The first number that no segment or log has.
  Result<std::uint64_t> next_number();
  // Generation `base` is committed and its index has what counts of the segments below
  // `first_open`; only those from there on stay open. `live`: the segments that the index names,
  // ascending; `flushed`: flush() was called for them.
  void committed(const Id128& base, std::uint64_t first_open, std::span<const std::uint64_t> live,
                 bool flushed);
  std::vector<std::uint64_t> open_segments() const;

 private:
  class Reader;

  // What ranks of this node looked at in a handle's newest round.
  struct LookedUp {
    std::uint64_t round = 0;
    std::vector<Fingerprint> names;
    bool sorted = true;
  };

  std::vector<std::uint8_t> claim(std::span<const Fingerprint> fingerprints);
  // found(i, entry) for each of `which` that is here, as find(index, fingerprint) finds it.
  template <typename Find, typename Found>
  void find_in_base(std::span<const Fingerprint> fingerprints, std::vector<std::uint32_t> which,
                    const Find& find, const Found& found);
  bool present(const Fingerprint& fingerprint, const store::ChunkLocation& location);
  std::uint64_t segment_size(std::uint64_t segment);
  Status append(const PutChunks& request, std::span<const std::uint32_t> which,
                std::vector<store::ChunkLocation>& locations);

  // At most kRunChunks.
  Status append(std::span<const store::SegmentChunk> chunks,
                std::span<store::ChunkLocation> locations);

  store::Store& store_;
  Id128 identity_;
  Id128 base_;

  ChunkIndex index_;
  std::unique_ptr<store::IndexReader> base_index_;
  bool base_opened_ = false;                       // or found to be unreadable
  std::uint64_t next_number_ = 0;                  // 0: not known yet
  std::unordered_set<Fingerprint> distrusted_;     // chunks of the base
  bool is_index_damaged_ = false;                  // of the base: some look-up failed
  std::unordered_map<Id128, LookedUp> looked_up_;  // by handle
  std::set<std::uint64_t> open_;                   // segments
  std::set<std::uint64_t> flushed_;                // segments, by this job
  std::set<std::uint64_t> forgotten_;              // the disk may not have them
  std::unordered_map<std::uint64_t, std::uint64_t> segment_sizes_;  // as last looked at; 0: gone
  std::unique_ptr<store::SegmentWriter> own_;
  std::vector<UnitShare> shares_;
};

}  // namespace dedup::service
