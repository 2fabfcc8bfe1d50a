// A generation's index on one store: which chunks of that generation it holds, and where.
//
// Written at commit, sorted by fingerprint. It is also what decides which segments are live: a
// segment that no generation's index names is garbage. And it says how each chunk is kept, on the
// other nodes too, as the recipe had it when it was committed: whoever writes the same content
// again need not ask them. That may be outdated; what holds is in the recipe.
//
// An index consists of runs, each sorted by fingerprint. What is as it was in the generation before
// stays where it is: a commit writes one run of what is new, and takes over runs of the base whole,
// as second names (as tables of an LSM tree: O'Neil et al., The Log-Structured Merge-Tree, 1996).
// A chunk of an older run may not belong to the generation any more.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hasher.h"
#include "base/status.h"
#include "base/types.h"
#include "plan/placement.h"
#include "store/segment.h"

namespace dedup::store {

struct IndexEntry {
  // The placement is not known: an index of version 1 knows none.
  static constexpr std::uint32_t kNotPlaced = 0;

  Fingerprint fingerprint;
  ChunkLocation location;
  std::uint32_t placement = kNotPlaced;  // a number that the index' reader or writer knows
};

// Of a file, the index of which another begins with, by its oldest runs.
struct IndexBase {
  Id128 attempt;           // zero: none
  std::size_t runs = 0;    // how many of them
  std::uint64_t dead = 0;  // of what they name so many bytes at most are not live (stored_size())
};

// Writes an index' newest run, front to back. Memory: 1 MiB, 0.5 bytes an entry, and the
// placements, each once. One thread.
class IndexWriter {
 public:
  virtual ~IndexWriter() = default;
  // The number by which entries name a placement, whose nodes are stores of the generation's record
  // by their numbers there. Equal ones have one number.
  virtual std::uint32_t number(const plan::Placement& placement) = 0;
  // In ascending order of fingerprints, each once, with a placement that number() gave or none:
  // kInternal otherwise.
  virtual Status add(const IndexEntry& entry) = 0;
  // Without it the index is none; makes the run durable if asked.
  virtual Status finish(bool flush) = 0;
};

// Looks chunks up in an index, which is never loaded as a whole: 0.5 bytes of memory a chunk, and
// for each run 4 MiB and its placements, each once. One thread at a time.
class IndexReader {
 public:
  virtual ~IndexReader() = default;

  virtual std::uint64_t size() const = 0;  // entries, of all runs
  virtual const Id128& attempt() const = 0;
  // Oldest first; their entries have places in that order.
  struct Run {
    Id128 attempt;  // which wrote it
    std::uint64_t entries = 0;
  };
  virtual std::vector<Run> runs() const = 0;
  // Of what the index names so many bytes at most are not live.
  virtual std::uint64_t dead_bytes() const = 0;
  // kNotFound if the store does not hold the chunk in this generation; kCorrupt if what would say
  // so is damaged.
  virtual Result<IndexEntry> find(const Fingerprint& fingerprint) const = 0;
  // The chunk's place, as at() takes it; fails as find() does. Of several runs' the newest's
  // counts.
  virtual Result<std::uint64_t> position(const Fingerprint& fingerprint) const = 0;
  virtual Result<IndexEntry> at(std::uint64_t i) const = 0;  // of a run in order of fingerprints
  // A chunk with this content, as content_of() its name says (base/hasher.h); fails as find().
  virtual Result<IndexEntry> find_content(const Fingerprint& content) const = 0;
  // How a chunk is kept whose entry has this number: on stores of the generation's record, by their
  // numbers there. On none if it is not known.
  virtual const plan::Placement& placement(std::uint32_t number) const = 0;
  // Segments that the index names, ascending, each with the bytes of its chunks (stored_size()).
  struct SegmentUse {
    std::uint64_t segment = 0;
    std::uint64_t live_bytes = 0;
    std::uint64_t end = 0;  // of the last of them in the segment (chunk_end()); 0: not known
  };
  virtual const std::vector<SegmentUse>& segments() const = 0;
};

struct SegmentSize {
  std::uint64_t segment;
  std::uint64_t bytes;        // that it has, whatever they are, holes counted
  std::uint64_t space;        // of these, without holes
  bool is_shared = false;     // another file has it, too
  std::uint64_t content = 0;  // which one it is, whatever files have it
};

}  // namespace dedup::store
