#include "store/segment.h"

#include "base/hasher.h"
#include "store/chunk_header.h"

namespace dedup::store {
namespace {

// What a header says of a chunk before its checksum.
std::uint64_t sealed_checksum(std::uint64_t salt, const SegmentChunk& chunk) {
  Bytes begin;
  begin.reserve(kCheckedSize);
  put_number(begin, salt, kSaltSize);
  put_name(begin, chunk);
  return chunk_checksum(begin, chunk.data);
}

}  // namespace

bool has_header(const Fingerprint& fingerprint) {
  return !is_single(fingerprint);
}

ChunkSeal seal_of(const SegmentChunk& chunk) {
  if (!has_header(chunk.fingerprint)) return {};
  return {0, sealed_checksum(0, chunk)};
}

bool holds(const ChunkSeal& seal, const SegmentChunk& chunk) {
  if (is_single(chunk.fingerprint)) return fits_single(chunk.fingerprint, chunk.data);
  return seal.checksum == sealed_checksum(seal.salt, chunk);
}

std::string segment_text(const Id128& identity, std::uint64_t number) {
  return "segment " + std::to_string(number) + " of file " + identity.hex();
}

std::uint64_t chunk_end(const Fingerprint& fingerprint, const ChunkLocation& location) {
  return location.offset + header_size(fingerprint) + location.length;
}

std::uint64_t stored_size(const Fingerprint& fingerprint, std::uint32_t length) {
  return (has_header(fingerprint) ? kChunkHeaderSize : kGroupEntrySize) + std::uint64_t{length};
}

Result<ChunkLocation> SegmentWriter::append(const Fingerprint& fingerprint,
                                            std::span<const std::byte> data) {
  const SegmentChunk chunk{fingerprint, data};
  ChunkLocation location;
  DEDUP_TRY(append({&chunk, 1}, {&location, 1}));
  return location;
}

Status SegmentReader::read(const ChunkLocation& location, const Fingerprint& fingerprint,
                           std::span<std::byte> out, std::span<ChunkSeal> seals) const {
  return read_run({&location, 1}, {&fingerprint, 1}, {&out, 1}, seals);
}

}  // namespace dedup::store
