// Commit records that many stores have: each is held once, and in what ranks and services tell each
// other of them its digest stands for it. A record is as long as its file has stores and shards,
// and all of these have it: without digests a search of N nodes would move N² entries.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/types.h"
#include "store/commit_record.h"

namespace dedup {
class Decoder;
class Encoder;
}  // namespace dedup

namespace dedup::store {

// What tells a record from every other one: a kept generation's has the attempt of the file's.
struct RecordDigest {
  Id128 identity;
  Id128 attempt;
  std::uint64_t checksum = 0;  // of the record as it is encoded
  auto operator<=>(const RecordDigest&) const = default;
};

// Used as the record that it is, which it must be complete for: one that came in a message is not
// before KnownRecords has made it so. Cheap to copy.
class SharedRecord {
 public:
  SharedRecord() = default;
  // Implicit, as a record is one.
  SharedRecord(CommitRecord record);

  bool is_complete() const { return record_ != nullptr; }
  const RecordDigest& digest() const { return digest_; }
  const CommitRecord& operator*() const { return *record_; }
  const CommitRecord* operator->() const { return record_.get(); }
  operator const CommitRecord&() const { return *record_; }

  friend bool operator==(const SharedRecord& a, const SharedRecord& b) {
    return a.digest_ == b.digest_;
  }

  // In a message: its digest.
  void encode(Encoder& e) const;
  static SharedRecord decode(Decoder& d);

 private:
  RecordDigest digest_;
  std::shared_ptr<const CommitRecord> record_;
};

class KnownRecords {
 public:
  void add(const SharedRecord& record) { records_.emplace(record.digest(), record); }
  // Null if it is not known.
  const SharedRecord* find(const RecordDigest& digest) const;
  // False if the record is not known.
  bool complete(SharedRecord& record) const;

 private:
  std::map<RecordDigest, SharedRecord> records_;  // complete
};

}  // namespace dedup::store
