#include "store/shard.h"

#include <utility>

#include "store/format.h"
#include "store/shard_content.h"

namespace dedup::store {

EncodedBlock with_checksum(std::uint64_t number, Bytes bytes) {
  const std::uint64_t checksum = format::checksum(bytes, number);
  return {number, std::move(bytes), checksum};
}

bool holds(const EncodedBlock& block) {
  return format::checksum(block.bytes, block.number) == block.checksum;
}

BlockSummary summary_of(const EncodedBlock& block) {
  return {block.number, static_cast<std::uint32_t>(block.bytes.size()), block.checksum};
}

ShardDigest::ShardDigest(const Id128& identity, const Id128& attempt, std::uint32_t shard) {
  const Bytes header = encode_shard_header(identity, attempt, shard);
  named_.put_raw(header.data(), header.size());
}

void ShardDigest::add(const BlockSummary& block) {
  put_summary(named_, block);
}

Digest ShardDigest::digest() const {
  return format::sha256(named_.bytes());
}

Result<Bytes> ShardReader::read(std::uint64_t block_number) const {
  DEDUP_ASSIGN(EncodedBlock block, read_encoded(block_number));
  return std::move(block.bytes);
}

}  // namespace dedup::store
