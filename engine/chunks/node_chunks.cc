#include "engine/chunks/node_chunks.h"

#include <numeric>
#include <type_traits>

#include "base/fields.h"
#include "plan/cut.h"

namespace dedup::engine {
namespace {

static_assert(sizeof(ChunkRecord) == 36 && std::is_trivially_copyable_v<ChunkRecord>);

}  // namespace

DealtRecords deal_records(std::vector<ChunkRecord> mine, int ranks) {
  DealtRecords out;
  out.counts.resize(static_cast<std::size_t>(ranks));
  const auto to = [&](const ChunkRecord& r) {
    return static_cast<std::size_t>(decider(r.fingerprint, ranks));
  };
  for (const ChunkRecord& r : mine) ++out.counts[to(r)];
  std::vector<std::uint64_t> at(out.counts.size());
  std::exclusive_scan(out.counts.begin(), out.counts.end(), at.begin(), std::uint64_t{0});
  out.records.resize(mine.size());
  out.place.resize(mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::uint64_t place = at[to(mine[i])]++;
    out.records[place] = mine[i];
    out.place[i] = static_cast<std::uint32_t>(place);
  }
  return out;
}

NodeChunks::NodeChunks(std::vector<ChunkRecord> records, std::vector<std::uint64_t> counts)
    : records_(std::move(records)), counts_(std::move(counts)) {
  plan::FingerprintTable table;
  table.reset(records_.size());
  chunk_of_.reserve(records_.size());
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    const std::uint32_t chunk = table.find_or_enter(
        records_[i].fingerprint, size(),
        [&](std::uint32_t c) { return records_[chunks_[c].record].fingerprint; });
    if (chunk == size()) chunks_.push_back({i, 0});
    ++chunks_[chunk].ranks;
    chunk_of_.push_back(chunk);
  }
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
