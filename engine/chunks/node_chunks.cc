#include "engine/chunks/node_chunks.h"

#include <numeric>
#include <span>
#include <type_traits>

#include "base/fields.h"
#include "plan/cut.h"

namespace dedup::engine {

// Ranks of one node lay it out alike.
static_assert(sizeof(ChunkRecord) == 40 && std::is_trivially_copyable_v<ChunkRecord>);

DealtRecords deal_records(ChunkRecords mine, const Lanes& lanes) {
  DealtRecords out;
  out.counts.resize(static_cast<std::size_t>(lanes.ranks));
  const auto to = [&](const ChunkRecord& r) {
    return static_cast<std::size_t>(lanes.decider(r.fingerprint));
  };
  for (const ChunkRecord& r : mine.list) ++out.counts[to(r)];
  std::vector<std::uint64_t> at(out.counts.size());
  std::exclusive_scan(out.counts.begin(), out.counts.end(), at.begin(), std::uint64_t{0});
  std::vector<std::uint32_t> in_order(mine.list.size());
  out.place.resize(mine.list.size());
  for (std::uint32_t i = 0; i < mine.list.size(); ++i) {
    const std::uint64_t place = at[to(mine.list[i])]++;
    in_order[place] = i;
    out.place[i] = static_cast<std::uint32_t>(place);
  }
  // For each rank the placements that concern it, then the records.
  Encoder encoder;
  encoder.bytes().reserve(mine.list.size() * sizeof(ChunkRecord));
  auto next = in_order.begin();
  for (const std::uint64_t count : out.counts) {
    const std::size_t begin = encoder.size();
    const auto end = next + static_cast<std::ptrdiff_t>(count);
    Numbered<plan::Placement> used;
    for (auto i = next; i != end; ++i) {
      std::uint32_t& held = mine.list[*i].held;
      if (held != ChunkRecord::kNotHeld) held = used.number(mine.placements[held]);
    }
    encoder.put(static_cast<std::uint32_t>(used.size()));
    for (std::uint32_t p = 0; p < used.size(); ++p) used[p].encode(encoder);
    for (; next != end; ++next) encoder.put_raw(&mine.list[*next], sizeof(ChunkRecord));
    out.sizes.push_back(encoder.size() - begin);
  }
  out.bytes = encoder.take();
  return out;
}

NodeChunks::NodeChunks(ChunkRecords records, std::vector<std::uint64_t> counts)
    : records_(std::move(records.list)),
      placements_(std::move(records.placements)),
      counts_(std::move(counts)) {
  plan::FingerprintTable table;
  table.reset(records_.size());
  chunk_of_.reserve(records_.size());
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const std::uint32_t chunk = table.find_or_enter(
        records_[i].fingerprint, size(),
        [&](std::uint32_t c) { return records_[chunks_[c].record].fingerprint; });
    if (chunk == size()) chunks_.push_back({i, 0, ChunkRecord::kNotHeld});
    ++chunks_[chunk].ranks;
    // Another rank may have asked later, when it was there.
    if (records_[i].held != ChunkRecord::kNotHeld) chunks_[chunk].held = records_[i].held;
    chunk_of_.push_back(chunk);
  }
}

Result<NodeChunks> NodeChunks::read(const Bytes& bytes, const std::vector<std::uint64_t>& sizes) {
  const Status other(Code::kIo, "a rank received other fingerprints than its node's ranks sent");
  ChunkRecords records;
  records.list.reserve(bytes.size() / sizeof(ChunkRecord));
  std::vector<std::uint64_t> counts;
  std::span<const std::byte> left(bytes);
  for (const std::uint64_t size : sizes) {
    if (size > left.size()) return other;
    Decoder decoder(left.first(size));
    left = left.subspan(size);
    std::vector<std::uint32_t> numbers;
    const std::uint32_t used = decoder.get_count(least_encoded_size<plan::Placement>());
    for (std::uint32_t p = 0; p < used && decoder.ok(); ++p) {
      numbers.push_back(records.placements.number(plan::Placement::decode(decoder)));
    }
    const std::size_t before = records.list.size();
    while (decoder.ok() && !decoder.at_end()) {
      ChunkRecord record;
      decoder.get_raw(&record, sizeof record);
      if (record.held != ChunkRecord::kNotHeld) {
        if (record.held >= numbers.size()) return other;
        record.held = numbers[record.held];
      }
      records.list.push_back(record);
    }
    if (!decoder.ok()) return other;
    counts.push_back(records.list.size() - before);
  }
  if (!left.empty()) return other;
  return NodeChunks(std::move(records), std::move(counts));
}

const plan::Placement* NodeChunks::held(std::uint32_t i) const {
  return chunks_[i].held == ChunkRecord::kNotHeld ? nullptr : &placements_[chunks_[i].held];
}

Answers NodeChunks::answer(const NodeVerdicts& verdicts) && {
  // Who is to act on each chunk: the n-th rank that has it, n by the fingerprint.
  std::vector<std::uint32_t> turn(chunks_.size());
  for (std::uint32_t c = 0; c < size(); ++c) {
    turn[c] = static_cast<std::uint32_t>((*this)[c].fingerprint.prefix() % chunks_[c].ranks);
  }
  records_ = {};
  // For each rank the verdicts that concern it, then which one for each of its records.
  Answers out;
  Encoder encoder;
  std::size_t record = 0;
  for (const std::uint64_t count : counts_) {
    const std::size_t begin = encoder.size();
    Numbered<Verdict> used;
    std::vector<std::uint32_t> numbers;
    numbers.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i, ++record) {
      const std::uint32_t chunk = chunk_of_[record];
      const Verdict& verdict = verdicts.list[verdicts.of[chunk]];
      const bool chosen = turn[chunk]-- == 0;
      numbers.push_back(used.number(chosen ? verdict : Verdict{false, {}, verdict.placement}));
    }
    encoder.put(static_cast<std::uint32_t>(used.size()));
    for (std::uint32_t v = 0; v < used.size(); ++v) put_fields(encoder, used[v]);
    for (const std::uint32_t n : numbers) encoder.put(n);
    out.sizes.push_back(encoder.size() - begin);
  }
  chunk_of_ = {};
  chunks_ = {};
  out.bytes = encoder.take();
  return out;
}

Result<std::vector<std::uint32_t>> read_answers(const Bytes& bytes,
                                                const std::vector<std::uint64_t>& counts,
                                                Numbered<Verdict>& verdicts) {
  std::vector<std::uint32_t> out;
  Decoder decoder(bytes);
  for (const std::uint64_t count : counts) {
    std::vector<std::uint32_t> numbers;
    const std::uint32_t used = decoder.get_count(least_encoded_size<Verdict>());
    for (std::uint32_t v = 0; v < used && decoder.ok(); ++v) {
      numbers.push_back(verdicts.number(get_fields<Verdict>(decoder)));
    }
    for (std::uint64_t i = 0; i < count && decoder.ok(); ++i) {
      const auto number = decoder.get<std::uint32_t>();
      if (number >= numbers.size()) decoder.fail();
      if (decoder.ok()) out.push_back(numbers[number]);
    }
  }
  if (decoder.ok() && decoder.at_end()) return out;
  return Status(Code::kIo, "a rank received other verdicts than its node's ranks sent");
}

}  // namespace dedup::engine
