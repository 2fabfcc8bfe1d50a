#include "engine/dump/node_exchange.h"

#include "engine/mpi/checked_message.h"

namespace dedup::engine {

NodeChunks NodeExchange::gather(ChunkRecords mine, FirstError& error) {
  if (topology_.node_size() == 1) {
    sent_ = {mine.list.size()};
    return {std::move(mine), sent_};
  }
  DealtRecords dealt = deal_records(std::move(mine), lanes_of(topology_));
  place_ = std::move(dealt.place);
  sent_ = std::move(dealt.counts);
  Bytes bytes;
  bool sound = true;
  const std::vector<std::uint64_t> sizes = exchange_checked(
      topology_.node_comm(), dealt.bytes.data(), dealt.sizes,
      [&](std::uint64_t total) {
        bytes.resize(total);
        return bytes.data();
      },
      sound);
  dealt = {};
  auto chunks = NodeChunks::read(bytes, sizes);
  if (sound && chunks.is_ok()) return std::move(*chunks);
  error.note({Code::kIo, "a rank received other fingerprints than its node's ranks sent"});
  return {};
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
