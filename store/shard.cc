#include "store/shard.h"

#include <cassert>
#include <utility>

#include "base/codec.h"
#include "store/format.h"
#include "store/shard_content.h"

namespace dedup::store {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

}  // namespace

EncodedBlock with_checksum(std::uint64_t number, Bytes bytes) {
  const std::uint64_t checksum = format::checksum(bytes, number);
  return {number, std::move(bytes), checksum};
}

bool holds(const EncodedBlock& block) {
  return format::checksum(block.bytes, block.number) == block.checksum;
}

struct ShardBuilder::Private {
  Bytes header;
  Encoder table;
  std::uint64_t end = kShardHeaderSize;
  std::uint64_t last = kNone;  // block added
  Digest digest{};
};

ShardBuilder::ShardBuilder(const Id128& identity, const Id128& attempt, std::uint32_t shard)
    : p_(std::make_unique<Private>()) {
  p_->header = encode_shard_header(identity, attempt, shard);
}
ShardBuilder::~ShardBuilder() = default;

Bytes ShardBuilder::header() const {
  return p_->header;
}

Bytes ShardBuilder::add(std::uint64_t block_number, const Block& block) {
  assert(p_->last == kNone || block_number > p_->last);
  p_->last = block_number;
  Bytes bytes = encode_block(block);
  p_->table.put(block_number);
  p_->table.put(p_->end);
  p_->table.put(static_cast<std::uint32_t>(bytes.size()));
  p_->table.put(std::uint32_t{0});
  p_->table.put(format::checksum(bytes, block_number));
  p_->end += bytes.size();
  return bytes;
}

Bytes ShardBuilder::finish() {
  Bytes named = p_->header;
  named.insert(named.end(), p_->table.bytes().begin(), p_->table.bytes().end());
  p_->digest = format::sha256(named);
  Encoder footer;
  footer.put_raw(kShardFooterMagic.data(), kShardFooterMagic.size());
  footer.put(p_->end);
  footer.put(static_cast<std::uint64_t>(p_->table.size() / kShardEntrySize));
  footer.put_raw(p_->digest.data(), p_->digest.size());
  format::put_checksum(footer);
  Bytes out = p_->table.take();
  out.insert(out.end(), footer.bytes().begin(), footer.bytes().end());
  return out;
}

const Digest& ShardBuilder::digest() const {
  return p_->digest;
}

Result<Bytes> ShardReader::read(std::uint64_t block_number) const {
  DEDUP_ASSIGN(EncodedBlock block, read_encoded(block_number));
  return std::move(block.bytes);
}

}  // namespace dedup::store
