#include "store/shared_record.h"

#include "base/checksum.h"
#include "base/fields.h"

namespace dedup::store {

SharedRecord::SharedRecord(CommitRecord record)
    : digest_{record.identity, record.attempt, message_checksum(record.encode())},
      record_(std::make_shared<const CommitRecord>(std::move(record))) {}

void SharedRecord::encode(Encoder& e) const {
  put_fields(e, digest_);
}

SharedRecord SharedRecord::decode(Decoder& d) {
  SharedRecord record;
  get_fields(d, record.digest_);
  return record;
}

const SharedRecord* KnownRecords::find(const RecordDigest& digest) const {
  const auto known = records_.find(digest);
  return known == records_.end() ? nullptr : &known->second;
}

bool KnownRecords::complete(SharedRecord& record) const {
  if (record.is_complete()) return true;
  const SharedRecord* const known = find(record.digest());
  if (known == nullptr) return false;
  record = *known;
  return true;
}

}  // namespace dedup::store
