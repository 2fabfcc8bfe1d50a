// The reply to a request for chunks: their bytes, and which of them are there.
//
// It is kept as it is sent, so that chunks are read to where they are sent from, and copied from
// where they were received to where they are wanted. Numbers little-endian:
//   u32 count of chunks asked for; for each a byte, 1 if it is here, 0 if it is missing or damaged;
//   u32 bytes of seals; for each that has a header (store/segment.h) its seal: u64 salt, u64
//   checksum; u32 bytes that follow; the bytes of the chunks that are here, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/piece.h"
#include "base/types.h"
#include "store/segment.h"

namespace dedup::service {

class ChunksReply {
 public:
  ChunksReply() : ChunksReply(std::span<const NamedChunk>()) {}
  // All of them here, of zeros. They must fit into a message.
  explicit ChunksReply(std::span<const NamedChunk> asked);

  // Where each chunk's bytes are to be put.
  std::vector<std::span<std::byte>> room(std::span<const NamedChunk> asked);
  // Each chunk's seal, as what it was read from has it.
  void set_seals(std::span<const NamedChunk> asked, std::span<const store::ChunkSeal> seals);
  // These, by their positions, ascending, are not here after all. Once.
  void leave_out(std::span<const NamedChunk> asked, std::span<const std::size_t> missing);

  // Each chunk's bytes, none if it is not here. Nothing at all if this is no reply to `asked`. They
  // may have been damaged on the way: seals() tells.
  std::vector<std::span<const std::byte>> chunks(std::span<const NamedChunk> asked) const;

  // Of each; only if chunks() gave something.
  std::vector<store::ChunkSeal> seals(std::span<const NamedChunk> asked) const;

  bool operator==(const ChunksReply&) const = default;

  std::size_t encoded_size() const { return body_.size(); }
  void encode(Encoder& e) const { e.put_raw(body_.data(), body_.size()); }
  static ChunksReply decode(Decoder& d);
  // The same without a copy. from_body() takes what decode() takes: nothing else must follow.
  Bytes take_body() && { return std::move(body_); }
  static bool from_body(Bytes body, ChunksReply& out);

 private:
  static std::size_t flags_at() { return 4; }
  static std::size_t seals_at(std::size_t count) { return flags_at() + count + 4; }
  static std::size_t bytes_at(std::span<const NamedChunk> asked);

  Bytes body_;
};

}  // namespace dedup::service
