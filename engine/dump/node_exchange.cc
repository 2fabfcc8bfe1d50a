#include "engine/dump/node_exchange.h"

#include <span>

#include "engine/mpi/checked_message.h"

namespace dedup::engine {

NodeChunks NodeExchange::gather(std::vector<ChunkRecord> mine, FirstError& error) {
  if (topology_.node_size() == 1) {
    sent_ = {mine.size()};
    return {std::move(mine), sent_};
  }
  DealtRecords dealt = deal_records(std::move(mine), topology_.node_size());
  place_ = std::move(dealt.place);
  sent_ = std::move(dealt.counts);
  std::vector<std::uint64_t> sizes = sent_;
  for (std::uint64_t& size : sizes) size *= sizeof(ChunkRecord);
  std::vector<ChunkRecord> records;
  bool sound = true;
  std::vector<std::uint64_t> counts = exchange_checked(
      topology_.node_comm(), std::as_bytes(std::span(dealt.records)).data(), sizes,
      [&](std::uint64_t total) {
        records.resize(total / sizeof(ChunkRecord));
        return std::as_writable_bytes(std::span(records)).data();
      },
      sound);
  if (!sound) {
    error.note({Code::kIo, "a rank received other fingerprints than its node's ranks sent"});
  }
  for (std::uint64_t& size : counts) size /= sizeof(ChunkRecord);
  dealt = {};
  return {std::move(records), std::move(counts)};
}

Result<std::vector<std::uint32_t>> NodeExchange::answer(NodeChunks chunks,
                                                        const NodeVerdicts& judged,
                                                        Numbered<Verdict>& verdicts) {
  Answers answers = std::move(chunks).answer(judged);
  Bytes bytes;
  if (topology_.node_size() == 1) {
    bytes = std::move(answers.bytes);
  } else {
    bool sound = true;
    exchange_checked(
        topology_.node_comm(), answers.bytes.data(), answers.sizes,
        [&](std::uint64_t total) {
          bytes.resize(total);
          return bytes.data();
        },
        sound);
    if (!sound) {
      return Status(Code::kIo, "a rank received other verdicts than its node's ranks sent");
    }
    answers = {};
  }
  DEDUP_ASSIGN(std::vector<std::uint32_t> dealt, read_answers(bytes, sent_, verdicts));
  if (place_.empty()) return dealt;
  std::vector<std::uint32_t> in_order;
  in_order.reserve(place_.size());
  for (const std::uint32_t place : place_) in_order.push_back(dealt[place]);
  return in_order;
}

}  // namespace dedup::engine
