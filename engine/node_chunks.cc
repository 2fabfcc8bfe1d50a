#include "engine/node_chunks.h"

#include <numeric>
#include <type_traits>

#include "base/codec.h"

namespace dedup::engine {
namespace {

static_assert(sizeof(ChunkRecord) == 36 && std::is_trivially_copyable_v<ChunkRecord>);

std::vector<int> offsets_of(const std::vector<int>& counts) {
  std::vector<int> offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
  return offsets;
}

std::size_t total(const std::vector<int>& counts) {
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0));
}

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
    all.received_ = {static_cast<int>(all.records_.size())};
  } else {
    all.sent_.resize(ranks);
    all.received_.resize(ranks);
    const auto to = [&](const ChunkRecord& r) {
      return static_cast<std::size_t>(decider(r.fingerprint, topology.node_size()));
    };
    for (const ChunkRecord& r : mine) ++all.sent_[to(r)];
    std::vector<int> offsets = offsets_of(all.sent_);
    std::vector<int> at = offsets;
    std::vector<ChunkRecord> sorted(mine.size());
    all.sent_as_.resize(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const int place = at[to(mine[i])]++;
      sorted[static_cast<std::size_t>(place)] = mine[i];
      all.sent_as_[i] = static_cast<std::uint32_t>(place);
    }
    mine = {};
    PMPI_Alltoall(all.sent_.data(), 1, MPI_INT, all.received_.data(), 1, MPI_INT,
                  topology.node_comm());
    all.records_.resize(total(all.received_));
    const std::vector<int> from = offsets_of(all.received_);
    MPI_Datatype record;
    PMPI_Type_contiguous(sizeof(ChunkRecord), MPI_BYTE, &record);
    PMPI_Type_commit(&record);
    PMPI_Alltoallv(sorted.data(), all.sent_.data(), offsets.data(), record, all.records_.data(),
                   all.received_.data(), from.data(), record, topology.node_comm());
    PMPI_Type_free(&record);
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

std::vector<std::uint32_t> NodeChunks::answer(const Numbered<Verdict>& verdicts,
                                              const std::vector<std::uint32_t>& verdict_of,
                                              Numbered<Verdict>& mine_verdicts) && {
  // Who is to act on each chunk: the n-th rank that has it, n by the fingerprint.
  std::vector<std::uint32_t> turn(chunks_.size());
  for (std::uint32_t c = 0; c < size(); ++c) {
    turn[c] = static_cast<std::uint32_t>((*this)[c].fingerprint.prefix() % chunks_[c].ranks);
  }
  // For each rank the verdicts that concern it, then which one for each of its records.
  Encoder encoder;
  std::vector<int> bytes_to;
  std::size_t record = 0;
  for (const int count : received_) {
    const std::size_t begin = encoder.size();
    Numbered<Verdict> used;
    std::vector<std::uint32_t> numbers;
    numbers.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i, ++record) {
      const std::uint32_t chunk = chunk_of_[record];
      const Verdict& verdict = verdicts[verdict_of[chunk]];
      const bool chosen = turn[chunk]-- == 0;
      numbers.push_back(used.number(chosen ? verdict : Verdict{false, {}, verdict.holders}));
    }
    encoder.put(static_cast<std::uint32_t>(used.size()));
    for (std::uint32_t v = 0; v < used.size(); ++v) encode_verdict(encoder, used[v]);
    for (const std::uint32_t n : numbers) encoder.put(n);
    bytes_to.push_back(static_cast<int>(encoder.size() - begin));
  }
  records_ = {};
  chunk_of_ = {};

  Bytes bytes;
  if (bytes_to.size() == 1) {
    bytes = encoder.take();
    sent_ = received_;
  } else {
    std::vector<int> bytes_from(bytes_to.size());
    PMPI_Alltoall(bytes_to.data(), 1, MPI_INT, bytes_from.data(), 1, MPI_INT,
                  topology_->node_comm());
    bytes.resize(total(bytes_from));
    const std::vector<int> to = offsets_of(bytes_to);
    const std::vector<int> from = offsets_of(bytes_from);
    PMPI_Alltoallv(encoder.bytes().data(), bytes_to.data(), to.data(), MPI_BYTE, bytes.data(),
                   bytes_from.data(), from.data(), MPI_BYTE, topology_->node_comm());
    encoder.take();
  }

  std::vector<std::uint32_t> by_place;
  Decoder decoder(bytes);
  for (const int count : sent_) {
    std::vector<std::uint32_t> numbers;
    const auto used = decoder.get<std::uint32_t>();
    for (std::uint32_t v = 0; v < used; ++v) {
      numbers.push_back(mine_verdicts.number(decode_verdict(decoder)));
    }
    for (int i = 0; i < count; ++i) by_place.push_back(numbers[decoder.get<std::uint32_t>()]);
  }
  if (sent_as_.empty()) return by_place;
  std::vector<std::uint32_t> out;
  out.reserve(sent_as_.size());
  for (const std::uint32_t place : sent_as_) out.push_back(by_place[place]);
  return out;
}

}  // namespace dedup::engine
