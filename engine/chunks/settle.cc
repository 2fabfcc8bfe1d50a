#include "engine/chunks/settle.h"

namespace dedup::engine {

void finish_pieces(const NamedChunks& chunks, const Verdicts& verdicts,
                   Numbered<NodeSet>& holder_sets) {
  std::vector<std::uint32_t> number(verdicts.list.size());
  for (std::uint32_t v = 0; v < number.size(); ++v) {
    number[v] = holder_sets.number(verdicts.list[v].holders);
  }
  for (DumpedPiece& piece : chunks.pieces()) {
    if (piece.zero) continue;
    const std::uint32_t chunk = piece.holders;
    piece.fingerprint = chunks.name(chunk);
    piece.holders = number[verdicts.of[chunk]];
  }
}

std::vector<std::pair<Fingerprint, NodeSet>> settled_part(const plan::FrequentSet& result,
                                                          const plan::Dealer& dealer, int rank,
                                                          int ranks) {
  std::vector<std::pair<Fingerprint, NodeSet>> chunks;
  plan::Dealer::Deal deal;
  for (const auto& element : result.elements()) {
    if (decider(element.fingerprint, ranks) != rank) continue;
    dealer.deal(result.designated(element), element.fingerprint.prefix(), deal);
    chunks.emplace_back(element.fingerprint, deal.holders);
  }
  return chunks;
}

}  // namespace dedup::engine
