#include "engine/dump/node_chunks.h"

#include <numeric>
#include <span>
#include <type_traits>

#include "base/codec.h"
#include "engine/mpi/checked_message.h"

namespace dedup::engine {
namespace {

static_assert(sizeof(ChunkRecord) == 36 && std::is_trivially_copyable_v<ChunkRecord>);

void encode_verdict(Encoder& e, const Verdict& v) {
  e.put(static_cast<std::uint8_t>(v.keep ? 1 : 0));
  e.put(static_cast<std::uint16_t>(v.targets.size()));
  for (const NodeIndex node : v.targets) e.put(node);
  e.put(v.holders);
}

Verdict decode_verdict(Decoder& d) {
  Verdict v;
  v.keep = d.get<std::uint8_t>() != 0;
  v.targets = d.get_nodes();
  v.holders = d.get_nodes();
  return v;
}

}  // namespace

NodeChunks NodeChunks::gather(const Topology& topology, std::vector<ChunkRecord> mine) {
  NodeChunks all(topology);
  const auto ranks = static_cast<std::size_t>(topology.node_size());
  if (ranks == 1) {
    all.records_ = std::move(mine);
    all.received_ = {all.records_.size()};
  } else {
    all.sent_.resize(ranks);
    const auto to = [&](const ChunkRecord& r) {
      return static_cast<std::size_t>(decider(r.fingerprint, topology.node_size()));
    };
    for (const ChunkRecord& r : mine) ++all.sent_[to(r)];
    std::vector<std::uint64_t> at(ranks);
    std::exclusive_scan(all.sent_.begin(), all.sent_.end(), at.begin(), std::uint64_t{0});
    std::vector<ChunkRecord> sorted(mine.size());
    all.sent_as_.resize(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const std::uint64_t place = at[to(mine[i])]++;
      sorted[place] = mine[i];
      all.sent_as_[i] = static_cast<std::uint32_t>(place);
    }
    mine = {};
    std::vector<std::uint64_t> sizes = all.sent_;
    for (std::uint64_t& size : sizes) size *= sizeof(ChunkRecord);
    all.received_ = exchange_checked(
        topology.node_comm(), std::as_bytes(std::span(sorted)).data(), sizes,
        [&](std::uint64_t total) {
          all.records_.resize(total / sizeof(ChunkRecord));
          return std::as_writable_bytes(std::span(all.records_)).data();
        },
        all.sound_);
    for (std::uint64_t& size : all.received_) size /= sizeof(ChunkRecord);
  }

  plan::FingerprintTable table;
  table.reset(all.records_.size());
  all.chunk_of_.reserve(all.records_.size());
  for (std::uint32_t i = 0; i < all.records_.size(); ++i) {
    const std::uint32_t chunk = table.find_or_enter(
        all.records_[i].fingerprint, all.size(),
        [&](std::uint32_t c) { return all.records_[all.chunks_[c].record].fingerprint; });
    if (chunk == all.size()) all.chunks_.push_back({i, 0});
    ++all.chunks_[chunk].ranks;
    all.chunk_of_.push_back(chunk);
  }
  return all;
}

Result<std::vector<std::uint32_t>> NodeChunks::answer(const Numbered<Verdict>& verdicts,
                                                      const std::vector<std::uint32_t>& verdict_of,
                                                      Numbered<Verdict>& mine_verdicts) && {
  // Who is to act on each chunk: the n-th rank that has it, n by the fingerprint.
  std::vector<std::uint32_t> turn(chunks_.size());
  for (std::uint32_t c = 0; c < size(); ++c) {
    turn[c] = static_cast<std::uint32_t>((*this)[c].fingerprint.prefix() % chunks_[c].ranks);
  }
  // For each rank the verdicts that concern it, then which one for each of its records.
  Encoder encoder;
  std::vector<std::uint64_t> bytes_to;
  std::size_t record = 0;
  for (const std::uint64_t count : received_) {
    const std::size_t begin = encoder.size();
    Numbered<Verdict> used;
    std::vector<std::uint32_t> numbers;
    numbers.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i, ++record) {
      const std::uint32_t chunk = chunk_of_[record];
      const Verdict& verdict = verdicts[verdict_of[chunk]];
      const bool chosen = turn[chunk]-- == 0;
      numbers.push_back(used.number(chosen ? verdict : Verdict{false, {}, verdict.holders}));
    }
    encoder.put(static_cast<std::uint32_t>(used.size()));
    for (std::uint32_t v = 0; v < used.size(); ++v) encode_verdict(encoder, used[v]);
    for (const std::uint32_t n : numbers) encoder.put(n);
    bytes_to.push_back(encoder.size() - begin);
  }
  records_ = {};
  chunk_of_ = {};

  Bytes bytes;
  if (bytes_to.size() == 1) {
    bytes = encoder.take();
    sent_ = received_;
  } else {
    bool sound = true;
    exchange_checked(
        topology_->node_comm(), encoder.bytes().data(), bytes_to,
        [&](std::uint64_t total) {
          bytes.resize(total);
          return bytes.data();
        },
        sound);
    if (!sound) {
      return Status(Code::kIo, "a rank received other verdicts than its node's ranks sent");
    }
    encoder.take();
  }

  std::vector<std::uint32_t> by_place;
  Decoder decoder(bytes);
  for (const std::uint64_t count : sent_) {
    std::vector<std::uint32_t> numbers;
    const auto used = decoder.get<std::uint32_t>();
    for (std::uint32_t v = 0; v < used; ++v) {
      numbers.push_back(mine_verdicts.number(decode_verdict(decoder)));
    }
    for (std::uint64_t i = 0; i < count; ++i)
      by_place.push_back(numbers[decoder.get<std::uint32_t>()]);
  }
  if (sent_as_.empty()) return by_place;
  std::vector<std::uint32_t> out;
  out.reserve(sent_as_.size());
  for (const std::uint32_t place : sent_as_) out.push_back(by_place[place]);
  return out;
}

}  // namespace dedup::engine
