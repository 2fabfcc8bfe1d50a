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

std::size_t CopyHeader::size(unsigned copies) {
  // The numbers, a flag, the placement, and a checksum of all.
  constexpr std::size_t kFixed = sizeof(Fingerprint) + 4 + 4 + 1 + 8 + 8;
  return kFixed + plan::Placement::encoded_at_most(copies);
}

void CopyHeader::write(const plan::Placement& placement, std::span<std::byte> out) const {
  Encoder encoder;
  encoder.bytes().reserve(out.size());
  encoder.put(fingerprint);
  encoder.put(exchange);
  encoder.put(slot);
  encoder.put(static_cast<std::uint8_t>(single ? 1 : 0));
  encoder.put(checksum);
  placement.encode(encoder);
  // Filled up, so that the checksum is of all that travels.
  encoder.bytes().resize(out.size() - sizeof(std::uint64_t));
  encoder.put(message_checksum(encoder.bytes()));
  std::memcpy(out.data(), encoder.bytes().data(), out.size());
}

Result<CopyHeader> CopyHeader::read(std::span<const std::byte> in, plan::Placement& placement) {
  Decoder decoder(in);
  CopyHeader header;
  header.fingerprint = decoder.get_fingerprint();
  header.exchange = decoder.get<std::uint32_t>();
  header.slot = decoder.get<std::uint32_t>();
  header.single = decoder.get<std::uint8_t>() != 0;
  header.checksum = decoder.get<std::uint64_t>();
  placement = plan::Placement::decode(decoder);
  if (!decoder.ok() || decoder.left() < sizeof(std::uint64_t)) return not_as_sent();
  const std::size_t said = in.size() - sizeof(std::uint64_t);
  Decoder end(in.subspan(said));
  if (end.get<std::uint64_t>() != message_checksum(in.first(said))) return not_as_sent();
  return header;
}

void write_no_copy(std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
}

Result<StoredChunk> read_parcel(const Parcel& parcel, std::uint32_t exchange,
                                Numbered<plan::Placement>& placements) {
  plan::Placement placement;
  DEDUP_ASSIGN(const CopyHeader header, CopyHeader::read(parcel.header, placement));
  if (header.exchange != exchange || header.slot != static_cast<std::uint32_t>(parcel.slot)) {
    return not_as_sent();
  }
  if (fast_hash(parcel.data).low != header.checksum) {
    return Status(Code::kIo, "a copy that another node sent has other bytes than were written");
  }
  StoredChunk chunk;
  chunk.fingerprint = header.fingerprint;
  chunk.data = parcel.data;
  chunk.placement = placements.number(placement);
  chunk.single = header.single;
  chunk.checksum = header.checksum;
  return chunk;
}

}  // namespace dedup::engine
