#include "service/stripe_decoder.h"

#include <algorithm>
#include <utility>

#include "service/messages/store_node.h"
#include "store/segment.h"

namespace dedup::service {
namespace {

// What was sent is what was sealed.
bool is_whole(const ChunksReply& reply, std::span<const NamedChunk> asked,
              std::vector<std::span<const std::byte>>& chunks) {
  chunks = reply.chunks(asked);
  if (chunks.size() != asked.size()) return false;
  const std::vector<store::ChunkSeal> seals = reply.seals(asked);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (chunks[i].size() != asked[i].length ||
        !store::holds(seals[i], {asked[i].fingerprint, chunks[i]})) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::uint32_t> StripeDecoder::length_of(NodeIndex node, const Fingerprint& name) {
  const auto reply = services_.call(node, Locate{identity_, {name}});
  if (!reply.is_ok() || reply->locations.size() != 1 || reply->locations[0].length == 0) {
    return std::nullopt;
  }
  return reply->locations[0].length;
}

plan::StripeDecoding StripeDecoder::decode(const plan::StripeUnit& stripe,
                                           std::vector<NamedChunk> lost) {
  std::vector<bool> can_ask;
  for (const NodeIndex node : stripe.nodes) can_ask.push_back(services_.live().contains(node));
  std::optional<std::vector<plan::UnitChunks>> known;
  if (known_ == stripe.stripe) known = units_;
  plan::StripeDecoding decoding(stripe, std::move(can_ask), std::move(lost), std::move(known));
  while (!decoding.questions().empty()) {
    answer(decoding);
    decoding.go_on();
  }
  if (decoding.units()) {
    known_ = stripe.stripe;
    units_ = *decoding.units();
  }
  return decoding;
}

bool StripeDecoder::read_near(plan::StripeDecoding& decoding, std::size_t question, NodeIndex node,
                              std::span<const NamedChunk> chunks) {
  std::size_t bytes = 0;
  for (const NamedChunk& chunk : chunks) bytes += chunk.length;
  if (bytes > part_bytes_) {
    part_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    part_bytes_ = bytes;
  }
  std::vector<store::ChunkTarget> targets;
  std::vector<std::span<const std::byte>> read;
  std::byte* next = part_.get();
  for (const NamedChunk& chunk : chunks) {
    targets.push_back({chunk.fingerprint, {next, chunk.length}});
    read.emplace_back(next, chunk.length);
    next += chunk.length;
  }
  if (!neighbours_->read(node, targets).empty()) return false;
  decoding.take(question, read);
  return true;
}

// From all nodes at the same time, but for those whose stores this process reads itself.
void StripeDecoder::answer(plan::StripeDecoding& decoding) {
  struct Asked {
    std::size_t question;
    std::vector<NamedChunk> chunks;
    Client::Pending<GetChunks> pending;
  };
  std::vector<Asked> asked;
  std::vector<std::pair<std::size_t, std::vector<NamedChunk>>> near;
  const auto node_of = [&](std::size_t q) {
    return decoding.stripe().nodes[decoding.questions()[q].slot];
  };
  const auto ask = [&](std::size_t q, std::vector<NamedChunk> chunks) {
    auto pending = services_.start(node_of(q), GetChunks{identity_, chunks});
    asked.push_back({q, std::move(chunks), std::move(pending)});
  };
  for (std::size_t q = 0; q < decoding.questions().size(); ++q) {
    const NodeIndex node = node_of(q);
    std::vector<NamedChunk> chunks = decoding.questions()[q].chunks;
    if (chunks[0].length == 0) {
      const auto length = length_of(node, chunks[0].fingerprint);
      if (!length) continue;
      chunks[0].length = *length;
    }
    if (neighbours_ != nullptr && neighbours_->has(node)) {
      near.emplace_back(q, std::move(chunks));
    } else {
      ask(q, std::move(chunks));
    }
  }
  for (auto& [q, chunks] : near) {
    if (!read_near(decoding, q, node_of(q), chunks)) ask(q, std::move(chunks));
  }
  for (Asked& one : asked) {
    const auto reply = one.pending.wait();
    std::vector<std::span<const std::byte>> chunks;
    if (reply.is_ok() && is_whole(*reply, one.chunks, chunks)) decoding.take(one.question, chunks);
  }
}

std::optional<std::vector<plan::UnitChunks>> StripeDecoder::units_of(
    const plan::StripeUnit& stripe) {
  return decode(stripe, {}).units();
}

std::vector<std::size_t> StripeDecoder::make_chunks(const plan::StripeUnit& stripe,
                                                    std::span<const Target> targets) {
  std::vector<NamedChunk> lost;
  for (const Target& target : targets) lost.push_back(target.chunk);
  const plan::StripeDecoding decoding = decode(stripe, std::move(lost));
  std::vector<std::size_t> failed;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto& made = decoding.made()[i];
    if (made) {
      std::copy(made->begin(), made->end(), targets[i].out);
    } else {
      failed.push_back(i);
    }
  }
  return failed;
}

std::optional<Bytes> StripeDecoder::make_part(const plan::StripeUnit& stripe,
                                              const Fingerprint& name) {
  const unsigned slot = plan::slot_of(name);
  if (slot >= stripe.nodes.size()) return std::nullopt;
  if (plan::part_of(name) == plan::Part::kParity) return decode(stripe, {{name, 0}}).made().front();
  const auto units = units_of(stripe);
  if (!units) return std::nullopt;
  const std::span<const plan::UnitChunks> all = *units;
  return plan::encode_stripe_table(stripe.is_parity(slot) ? all : all.subspan(slot, 1));
}

}  // namespace dedup::service
