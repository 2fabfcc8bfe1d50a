#include "engine/chunks/cut_chunks.h"

#include <algorithm>

namespace dedup::engine {

RunCursor::RunCursor(std::span<const DumpRun> runs, std::uint32_t chunk_size)
    : runs_(runs), chunk_size_(chunk_size) {
  for (const DumpRun& run : runs) left_ += plan::chunk_count(run.length, chunk_size);
}

RunCursor::Chunk RunCursor::next() {
  for (;;) {
    if (run_ != nullptr) {
      const plan::Cut cut = cutter_.next();
      if (cut.length > 0) {
        left_ -= plan::chunk_count(cut.length, chunk_size_);
        return {run_->file_offset + cut.offset, {run_->data + cut.offset, cut.length}, cut.zero};
      }
    }
    if (next_ == runs_.size()) return {};
    run_ = &runs_[next_++];
    cutter_ = plan::ChunkCutter({run_->data, run_->length}, chunk_size_);
  }
}

class ChunkCollector {
 public:
  explicit ChunkCollector(std::vector<DumpedPiece>& pieces)
      : pieces_(pieces), first_piece_(pieces.size()) {}

  // number_of(chunk, hash, name): sets the chunk's name, and returns the number of the chunk that
  // it equals, or the next number if there is none.
  template <typename NumberOf>
  CutChunks collect(RunCursor& cursor, std::uint64_t most, NumberOf&& number_of) {
    out_.chunks_.reserve(std::min(most, cursor.left()));
    for (std::uint64_t count = 0; count < most;) {
      const RunCursor::Chunk chunk = cursor.next();
      if (chunk.data.empty()) break;
      const auto length = static_cast<std::uint32_t>(chunk.data.size());
      DumpedPiece piece{chunk.file_offset, length, 0, chunk.zero, {}};
      out_.sums_.cut += length;
      if (chunk.zero) {
        out_.sums_.zero += length;
        pieces_.push_back(piece);
        continue;
      }
      ++count;
      const FastHash hash = fast_hash(chunk.data);
      piece.placement = number_of(chunk.data, hash, piece.fingerprint);
      if (piece.placement == out_.size()) {
        const auto number = static_cast<std::uint32_t>(pieces_.size() - first_piece_);
        out_.chunks_.push_back({chunk.data.data(), length, number, hash.low});
        out_.sums_.unique += length;
      }
      pieces_.push_back(piece);
    }
    out_.pieces_ = std::span(pieces_).subspan(first_piece_);
    return std::move(out_);
  }

  std::uint32_t next_number() const { return out_.size(); }
  const Fingerprint& name(std::uint32_t number) const {
    return pieces_[first_piece_ + out_.chunks_[number].piece].fingerprint;
  }

 private:
  std::vector<DumpedPiece>& pieces_;
  std::size_t first_piece_;
  CutChunks out_;
};

CutChunks cut_distinct(RunCursor& cursor, std::uint64_t most, ChunkNamer& namer,
                       std::vector<DumpedPiece>& pieces, FirstError& error) {
  ChunkCollector collector(pieces);
  plan::FingerprintTable table;
  table.reset(most);
  return collector.collect(
      cursor, most, [&](std::span<const std::byte> data, const FastHash& hash, Fingerprint& name) {
        const auto named = namer.name(data, hash.low);
        error.note(named.status());
        if (named.is_ok()) name = *named;
        return table.find_or_enter(name, collector.next_number(),
                                   [&](std::uint32_t number) { return collector.name(number); });
      });
}

CutChunks cut_numbered(RunCursor& cursor, std::uint64_t most, UniqueNumbers& numbers,
                       std::vector<DumpedPiece>& pieces) {
  ChunkCollector collector(pieces);
  return collector.collect(cursor, most,
                           [&](std::span<const std::byte>, const FastHash&, Fingerprint& name) {
                             name = numbers.next();
                             return collector.next_number();
                           });
}

}  // namespace dedup::engine
