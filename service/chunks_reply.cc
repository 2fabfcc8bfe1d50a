#include "service/chunks_reply.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dedup::service {
namespace {

constexpr std::uint8_t kHere = 1;

constexpr std::size_t kSealSize = 16;

std::size_t size_of_seals(std::span<const NamedChunk> asked) {
  return kSealSize * static_cast<std::size_t>(
                         std::count_if(asked.begin(), asked.end(), [](const NamedChunk& chunk) {
                           return store::has_header(chunk.fingerprint);
                         }));
}

// False if no such reply begins there; else it is behind it.
bool skip_reply(Decoder& d) {
  for (std::uint32_t left = d.get_count(1); left > 0; --left) {
    if (d.get<std::uint8_t>() > 1) d.fail();
  }
  d.get_bytes();
  d.get_bytes();
  return d.ok();
}

}  // namespace

ChunksReply::ChunksReply(std::span<const NamedChunk> asked) {
  std::size_t bytes = 0;
  for (const NamedChunk& chunk : asked) bytes += chunk.length;
  Encoder start;
  start.put(static_cast<std::uint32_t>(asked.size()));
  for (std::size_t i = 0; i < asked.size(); ++i) start.put(kHere);
  start.put_bytes(Bytes(size_of_seals(asked)));
  start.put(static_cast<std::uint32_t>(bytes));
  body_.reserve(start.size() + bytes);
  body_ = start.bytes();
  body_.resize(start.size() + bytes);
}

std::size_t ChunksReply::bytes_at(std::span<const NamedChunk> asked) {
  return seals_at(asked.size()) + size_of_seals(asked) + 4;
}

void ChunksReply::set_seals(std::span<const NamedChunk> asked,
                            std::span<const store::ChunkSeal> seals) {
  Encoder out;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!store::has_header(asked[i].fingerprint)) continue;
    out.put(seals[i].salt);
    out.put(seals[i].checksum);
  }
  std::copy(out.bytes().begin(), out.bytes().end(), body_.data() + seals_at(asked.size()));
}

std::vector<store::ChunkSeal> ChunksReply::seals(std::span<const NamedChunk> asked) const {
  std::vector<store::ChunkSeal> out(asked.size());
  Decoder in{std::span(body_).subspan(seals_at(asked.size()))};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!store::has_header(asked[i].fingerprint)) continue;
    out[i].salt = in.get<std::uint64_t>();
    out[i].checksum = in.get<std::uint64_t>();
  }
  return out;
}

std::vector<std::span<std::byte>> ChunksReply::room(std::span<const NamedChunk> asked) {
  std::vector<std::span<std::byte>> out;
  out.reserve(asked.size());
  std::size_t at = bytes_at(asked);
  for (const NamedChunk& chunk : asked) {
    out.push_back(std::span(body_).subspan(at, chunk.length));
    at += chunk.length;
  }
  return out;
}

void ChunksReply::leave_out(std::span<const NamedChunk> asked,
                            std::span<const std::size_t> missing) {
  if (missing.empty()) return;
  std::size_t from = bytes_at(asked);
  std::size_t to = from;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!missing.empty() && missing.front() == i) {
      body_[flags_at() + i] = std::byte{0};
      missing = missing.subspan(1);
    } else {
      std::memmove(body_.data() + to, body_.data() + from, asked[i].length);
      to += asked[i].length;
    }
    from += asked[i].length;
  }
  body_.resize(to);
  const std::size_t begin = bytes_at(asked);
  Encoder bytes;
  bytes.put(static_cast<std::uint32_t>(to - begin));
  std::memcpy(body_.data() + begin - bytes.size(), bytes.bytes().data(), bytes.size());
}

std::vector<std::span<const std::byte>> ChunksReply::chunks(
    std::span<const NamedChunk> asked) const {
  std::vector<std::span<const std::byte>> out;
  Decoder in(body_);
  if (in.get<std::uint32_t>() != asked.size()) return out;
  std::size_t at = bytes_at(asked);
  // What goes on differently was asked for by other names.
  if (body_.size() < at) return out;
  in = Decoder{std::span(body_).subspan(seals_at(asked.size()) - 4)};
  if (in.get<std::uint32_t>() != size_of_seals(asked)) return out;
  out.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::size_t length = body_[flags_at() + i] == std::byte{kHere} ? asked[i].length : 0;
    if (length > body_.size() - at) return {};
    out.push_back(std::span(body_).subspan(at, length));
    at += length;
  }
  if (at != body_.size()) out.clear();
  return out;
}

ChunksReply ChunksReply::decode(Decoder& d) {
  ChunksReply reply;
  Decoder behind = d;
  if (!skip_reply(behind)) {
    d.fail();
    return reply;
  }
  reply.body_.resize(behind.position() - d.position());
  d.get_raw(reply.body_.data(), reply.body_.size());
  return reply;
}

bool ChunksReply::from_body(Bytes body, ChunksReply& out) {
  Decoder d(body);
  if (!skip_reply(d) || !d.at_end()) return false;
  out.body_ = std::move(body);
  return true;
}

}  // namespace dedup::service
