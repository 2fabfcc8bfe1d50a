#include "engine/chunks/copies.h"

#include <algorithm>
#include <cstring>

#include "base/checksum.h"
#include "base/fields.h"
#include "base/hasher.h"

namespace dedup::engine {
namespace {

Status not_as_sent() {
  return {Code::kIo, "a copy that another node sent did not arrive as it was sent"};
}

}  // namespace

std::size_t CopyHeader::size(unsigned copies) {
  // With the placement, and a checksum of all.
  return least_encoded_size<CopyHeader>() + plan::Placement::encoded_at_most(copies) +
         sizeof(std::uint64_t);
}

void CopyHeader::write(const plan::Placement& placement, std::span<std::byte> out) const {
  Encoder encoder;
  encoder.bytes().reserve(out.size());
  put_fields(encoder, *this);
  placement.encode(encoder);
  // Filled up, so that the checksum is of all that travels.
  encoder.bytes().resize(out.size() - sizeof(std::uint64_t));
  encoder.put(message_checksum(encoder.bytes()));
  std::memcpy(out.data(), encoder.bytes().data(), out.size());
}

Result<CopyHeader> CopyHeader::read(std::span<const std::byte> in, plan::Placement& placement) {
  Decoder decoder(in);
  const auto header = get_fields<CopyHeader>(decoder);
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
