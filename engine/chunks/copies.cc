#include "engine/chunks/copies.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "base/codec.h"
#include "base/hasher.h"

namespace dedup::engine {
namespace {

Status not_as_sent() {
  return {Code::kIo, "a copy that another node sent did not arrive as it was sent"};
}

}  // namespace

std::size_t CopyHeader::size(unsigned holders) {
  // The numbers, a flag, the count of holders, and a checksum of all.
  constexpr std::size_t kFixed = sizeof(Fingerprint) + 4 + 4 + 1 + 8 + 2 + 8;
  return kFixed + sizeof(NodeIndex) * holders;
}

void CopyHeader::write(const NodeSet& holders, std::span<std::byte> out) const {
  Encoder encoder;
  encoder.bytes().reserve(out.size());
  encoder.put(fingerprint);
  encoder.put(exchange);
  encoder.put(slot);
  encoder.put(static_cast<std::uint8_t>(single ? 1 : 0));
  encoder.put(checksum);
  encoder.put(holders);
  encoder.put(message_checksum(encoder.bytes()));
  std::memcpy(out.data(), encoder.bytes().data(), encoder.size());
}

Result<CopyHeader> CopyHeader::read(std::span<const std::byte> in, NodeSet& holders) {
  Decoder decoder(in);
  CopyHeader header;
  header.fingerprint = decoder.get_fingerprint();
  header.exchange = decoder.get<std::uint32_t>();
  header.slot = decoder.get<std::uint32_t>();
  header.single = decoder.get<std::uint8_t>() != 0;
  header.checksum = decoder.get<std::uint64_t>();
  holders = decoder.get_nodes();
  const std::size_t said = decoder.position();
  const bool sound = decoder.get<std::uint64_t>() == message_checksum(in.first(said));
  if (!decoder.ok() || !sound) return not_as_sent();
  return header;
}

void write_no_copy(std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
}

Result<StoredChunk> read_parcel(const Parcel& parcel, std::uint32_t exchange,
                                Numbered<NodeSet>& holder_sets) {
  NodeSet holders;
  DEDUP_ASSIGN(const CopyHeader header, CopyHeader::read(parcel.header, holders));
  if (header.exchange != exchange || header.slot != static_cast<std::uint32_t>(parcel.slot)) {
    return not_as_sent();
  }
  if (fast_hash(parcel.data).low != header.checksum) {
    return Status(Code::kIo, "a copy that another node sent has other bytes than were written");
  }
  StoredChunk chunk;
  chunk.fingerprint = header.fingerprint;
  chunk.data = parcel.data;
  chunk.holders = holder_sets.number(holders);
  chunk.single = header.single;
  chunk.checksum = header.checksum;
  return chunk;
}

}  // namespace dedup::engine
