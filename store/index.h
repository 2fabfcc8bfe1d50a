// A generation's index on one store: which chunks of that generation it holds, and where.
//
// Written at commit (file `index` in the generation's directory), sorted by fingerprint. It is also
// what decides which segments are live: a segment that no generation's index names is garbage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hasher.h"
#include "base/status.h"
#include "base/types.h"
#include "store/segment.h"

namespace dedup::store {

struct IndexEntry {
  Fingerprint fingerprint;
  ChunkLocation location;
};

// Writes an index file front to back, checksummed per page of entries. Memory: 1 MiB and 0.4 bytes
// an entry. One thread.
class IndexWriter {
 public:
  // kFileExists if there is a file.
  static Result<std::unique_ptr<IndexWriter>> create(const std::string& path, const Id128& identity,
                                                     const Id128& attempt);
  ~IndexWriter();
  // In ascending order of fingerprints, each once: kInternal otherwise.
  Status add(const IndexEntry& entry);
  // Without it the file is none; flushes it if asked.
  Status finish(bool flush);

 private:
  struct Private;
  explicit IndexWriter(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// Looks chunks up in an index file, which is never loaded as a whole: each page's first fingerprint
// stands in memory (0.4 bytes a chunk), pages are read and checked when used, and up to 4 MiB of
// them kept. (Read, not mapped: a bad sector is an error here, and would be a SIGBUS there.) One
// thread at a time.
class IndexReader {
 public:
  static Result<std::unique_ptr<IndexReader>> open(const std::string& path);
  ~IndexReader();

  std::uint64_t size() const;  // entries
  const Id128& attempt() const;
  // kNotFound if the store does not hold the chunk in this generation; kCorrupt if the page that
  // would say so is damaged.
  Result<ChunkLocation> find(const Fingerprint& fingerprint) const;
  // The chunk's place in the order of fingerprints, as at() takes it; fails as find() does.
  Result<std::uint64_t> position(const Fingerprint& fingerprint) const;
  Result<IndexEntry> at(std::uint64_t i) const;  // in order of fingerprints
  // A chunk whose name says that it had no twin and that it has this fast hash; fails as find().
  Result<Fingerprint> find_single(const FastHash& hash) const;
  // Whether there are chunks with strong fingerprints (also if the writer did not say).
  bool has_strong() const;
  // Segments that the index names, each with the bytes of its live chunks (stored_size()).
  struct SegmentUse {
    std::uint64_t segment;
    std::uint64_t live_bytes;
  };
  const std::vector<SegmentUse>& segments() const;

 private:
  struct Private;
  explicit IndexReader(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

struct SegmentSize {
  std::uint64_t segment;
  std::uint64_t bytes;  // of the file
};

// Segments of which the index names less than half the bytes: worth rewriting, by appending their
// live chunks to a new segment. Those not in `sizes` are left out.
std::vector<std::uint64_t> sparse_segments(const IndexReader& index,
                                           std::span<const SegmentSize> sizes);

}  // namespace dedup::store
