#include "engine/chunks/settle.h"

namespace dedup::engine {

void finish_pieces(const NamedChunks& chunks, const Verdicts& verdicts,
                   Numbered<plan::Placement>& placements) {
  std::vector<std::uint32_t> number(verdicts.list.size());
  for (std::uint32_t v = 0; v < number.size(); ++v) {
    number[v] = placements.number(verdicts.list[v].placement);
  }
  for (DumpedPiece& piece : chunks.pieces()) {
    if (piece.zero) continue;
    const std::uint32_t chunk = piece.placement;
    piece.fingerprint = chunks.name(chunk);
    piece.placement = number[verdicts.of[chunk]];
  }
}

std::vector<std::pair<Fingerprint, plan::Placement>> settled_part(const plan::FrequentSet& result,
                                                                  const plan::Dealer& dealer,
                                                                  int rank, const Lanes& lanes) {
  std::vector<std::pair<Fingerprint, plan::Placement>> chunks;
  plan::Dealer::Deal deal;
  for (const auto& element : result.elements()) {
    if (lanes.decider(element.fingerprint) != rank) continue;
    dealer.deal(result.designated(element), element.fingerprint.prefix(), deal);
    chunks.emplace_back(element.fingerprint, deal.placement);
  }
  return chunks;
}

}  // namespace dedup::engine
