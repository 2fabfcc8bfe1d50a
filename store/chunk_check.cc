#include "store/chunk_check.h"

#include <algorithm>
#include <memory>
#include <span>

#include "base/hasher.h"
#include "store/index.h"
#include "store/segment.h"

namespace dedup::store {
namespace {

constexpr std::uint64_t kStretch = std::uint64_t{64} << 20;

bool is_part(const ChunkLocation& location, unsigned part, unsigned parts) {
  return (location.segment + location.offset / kStretch) % parts == part;
}

// The part's chunks, in the order in which they lie on disk.
std::vector<IndexEntry> entries_of(const IndexReader& index, unsigned part, unsigned parts,
                                   ChunkCheck& check) {
  std::vector<IndexEntry> out;
  std::string last;
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    const auto entry = index.at(i);
    if (entry.is_ok()) {
      if (is_part(entry->location, part, parts)) out.push_back(*entry);
    } else if (part == 0 && entry.status().message() != last) {
      last = entry.status().message();  // the same for all entries of a page
      check.texts.push_back(last);
    }
  }
  std::sort(out.begin(), out.end(),
            [](const IndexEntry& a, const IndexEntry& b) { return a.location < b.location; });
  return out;
}

// Chunks of one segment.
class SegmentCheck {
 public:
  SegmentCheck(const Store& store, const Id128& identity, std::uint64_t number, ChunkCheck& check)
      : name_(segment_text(identity, number)), check_(check) {
    auto opened = store.segment(identity, number);
    if (opened.is_ok()) {
      reader_ = std::move(*opened);
    } else {
      why_ = opened.status().message();
    }
  }

  ~SegmentCheck() {
    if (bad_ == 0) return;
    check_.texts.push_back(name_ + ": " + std::to_string(bad_) + " of " + std::to_string(chunks_) +
                           " chunks are bad; the first: " + why_);
  }

  // An error only if nothing can be checked at all.
  Status check(const IndexEntry& entry, FingerprintCheck& fingerprints, Bytes& buffer) {
    ++chunks_;
    ++check_.chunks;
    check_.bytes += entry.location.length;
    check_.stored += stored_size(entry.fingerprint, entry.location.length);
    if (!reader_) return found_bad(entry, why_);
    buffer.resize(entry.location.length);
    const Status read = reader_->read(entry.location, entry.fingerprint, buffer);
    if (!read.is_ok()) return found_bad(entry, read.message());
    DEDUP_ASSIGN(const bool holds, fingerprints.holds(entry.fingerprint, buffer));
    if (!holds) {
      return found_bad(entry, "chunk " + entry.fingerprint.hex() + " has another content");
    }
    if (kind_of(entry.fingerprint) == NameKind::kSha1) ++check_.unproven;
    return Status::ok();
  }

 private:
  Status found_bad(const IndexEntry& entry, const std::string& why) {
    if (bad_++ == 0) why_ = why;
    check_.bad.push_back(entry.fingerprint);
    return Status::ok();
  }

  std::string name_;
  ChunkCheck& check_;
  std::shared_ptr<const SegmentReader> reader_;  // null if it cannot be opened
  std::string why_;
  std::uint64_t chunks_ = 0;
  std::uint64_t bad_ = 0;
};

}  // namespace

Result<ChunkCheck> check_chunks(const Store& store, const Id128& identity, const Id128& attempt,
                                unsigned part, unsigned parts) {
  DEDUP_ASSIGN(const auto index, store.index(identity, attempt));
  ChunkCheck check;
  const std::vector<IndexEntry> entries = entries_of(*index, part, parts, check);
  FingerprintCheck fingerprints;
  Bytes buffer;
  for (std::size_t i = 0; i < entries.size();) {
    const std::uint64_t number = entries[i].location.segment;
    SegmentCheck segment(store, identity, number, check);
    for (; i < entries.size() && entries[i].location.segment == number; ++i) {
      DEDUP_TRY(segment.check(entries[i], fingerprints, buffer));
    }
  }
  return check;
}

}  // namespace dedup::store
