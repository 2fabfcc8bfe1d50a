#include "tools/dedupctl/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "tools/dedupctl/decode.h"
#include "tools/dedupctl/holding.h"

namespace dedup::ctl {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{16} << 20;
constexpr std::uint64_t kNobody = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kRangesShown = 10;

// A piece of a batch that is part of a chunk.
struct Wanted {
  const Piece* piece = nullptr;
  std::size_t block = 0;     // within the batch
  std::uint64_t number = 0;  // of the block
  bool decided = false;
  NodeIndex owner = kNoNode;  // the store that is to read it; kNoNode: none has it
  int source = -1;            // the rank that its bytes come from; −1: none, they are lost
  Bytes bytes;                // on that rank

  NamedChunk chunk() const { return {piece->fingerprint, piece->chunk_length}; }
  void take(std::span<const std::byte> whole) {
    const auto part = whole.subspan(piece->chunk_offset, piece->length);
    bytes.assign(part.begin(), part.end());
  }
};

// A chunk, and the pieces one after the other that are parts of it.
struct Chunk {
  std::vector<std::size_t> pieces;  // their places among those that are wanted
};

// One batch. All ranks do the same steps with the same pieces.
class Batch {
 public:
  Batch(Generation& generation, std::span<const NumberedBlock> blocks)
      : generation_(generation), blocks_(blocks) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (const Piece& piece : blocks[b].block.pieces) {
        if (piece.is_zero()) continue;
        Wanted& wanted = wanted_.emplace_back();
        wanted.piece = &piece;
        wanted.block = b;
        wanted.number = blocks[b].number;
      }
    }
  }

  // Finds a store for each piece and reads it there; where that fails, another one. What is on none
  // is made from its stripe.
  void read() {
    while (
        std::any_of(wanted_.begin(), wanted_.end(), [](const Wanted& w) { return !w.decided; })) {
      assign();
      std::vector<std::uint64_t> failed(wanted_.size());
      for (Part& part : generation_.parts()) read_from(part, failed);
      generation_.ranks().sum(failed);
      for (std::size_t i = 0; i < wanted_.size(); ++i) {
        if (failed[i] != 0) continue;
        Wanted& w = wanted_[i];
        w.decided = true;
        w.source = w.owner == kNoNode ? -1 : generation_.rank_of(w.owner);
      }
    }
    make();
  }

  // Of pieces that no store has.
  std::uint64_t lost_bytes() const {
    std::uint64_t sum = 0;
    for (const Wanted& w : wanted_) sum += w.source < 0 ? w.piece->length : 0;
    return sum;
  }

  // The pieces' bytes, of those that this rank is to bring; the others are empty.
  std::vector<Bytes> take_own() {
    std::vector<Bytes> own;
    for (Wanted& w : wanted_) {
      own.push_back(w.source == generation_.ranks().rank() ? std::move(w.bytes) : Bytes());
    }
    return own;
  }

  // Brings the pieces to the writers; each block's bytes where it is written, nothing elsewhere.
  std::vector<Bytes> collect(const std::vector<int>& writers) {
    const Ranks& ranks = generation_.ranks();
    const auto count = static_cast<std::size_t>(ranks.size());
    std::vector<Bytes> to(count);
    for (Wanted& w : wanted_) {
      if (w.source != ranks.rank()) continue;
      Bytes& out = to[static_cast<std::size_t>(writer_of(writers, w.block))];
      out.insert(out.end(), w.bytes.begin(), w.bytes.end());
      w.bytes = {};
    }
    const std::vector<Bytes> from = ranks.exchange(to);
    std::vector<Bytes> blocks(blocks_.size());
    std::vector<std::size_t> at(count);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (writer_of(writers, b) != ranks.rank()) continue;
      const std::uint64_t begin = blocks_[b].number * kBlockSpan;
      blocks[b].resize(std::min(kBlockSpan, generation_.record().size - begin));
    }
    for (const Wanted& w : wanted_) {
      if (w.source < 0 || writer_of(writers, w.block) != ranks.rank()) continue;
      const auto source = static_cast<std::size_t>(w.source);
      std::copy_n(from[source].begin() + static_cast<std::ptrdiff_t>(at[source]), w.piece->length,
                  blocks[w.block].begin() + w.piece->begin);
      at[source] += w.piece->length;
    }
    return blocks;
  }

 private:
  // Of the stores that have a piece's chunk one is chosen, for different blocks different ones.
  void assign() {
    const std::uint64_t stores = generation_.record().stores.size();
    std::vector<std::uint64_t> keys(wanted_.size(), kNobody);
    for (const Part& part : generation_.parts()) {
      for (std::size_t i = 0; i < wanted_.size(); ++i) {
        const Wanted& w = wanted_[i];
        if (w.decided || !part.place_of(w.chunk())) continue;
        keys[i] = std::min(keys[i], (part.position() + w.number) % stores);
      }
    }
    generation_.ranks().least(keys);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      Wanted& w = wanted_[i];
      if (w.decided) continue;
      w.decided = keys[i] == kNobody;
      w.owner = w.decided ? kNoNode
                          : static_cast<NodeIndex>((keys[i] + stores - w.number % stores) % stores);
    }
  }

  // Reads what this store is to read.
  void read_from(Part& part, std::vector<std::uint64_t>& failed) {
    std::vector<Chunk> chunks;
    std::size_t bytes = 0;
    const auto flush = [&] {
      read_chunks(part, chunks, bytes, failed);
      chunks.clear();
      bytes = 0;
    };
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const Wanted& w = wanted_[i];
      if (w.decided || w.owner != part.position()) continue;
      const bool is_same =
          !chunks.empty() &&
          wanted_[chunks.back().pieces.front()].piece->fingerprint == w.piece->fingerprint;
      if (is_same) {
        chunks.back().pieces.push_back(i);
        continue;
      }
      if (bytes + w.piece->chunk_length > kReadAtOnce) flush();
      bytes += w.piece->chunk_length;
      chunks.push_back({{i}});
    }
    flush();
  }

  // `bytes`: of all of them.
  void read_chunks(Part& part, const std::vector<Chunk>& chunks, std::size_t bytes,
                   std::vector<std::uint64_t>& failed) {
    if (buffer_.size() < bytes) buffer_.resize(bytes);
    std::span<std::byte> rest(buffer_);
    std::vector<store::ChunkTarget> targets;
    targets.reserve(chunks.size());
    for (const Chunk& chunk : chunks) {
      const Piece& piece = *wanted_[chunk.pieces.front()].piece;
      targets.push_back({piece.fingerprint, rest.first(piece.chunk_length)});
      rest = rest.subspan(piece.chunk_length);
    }
    std::vector<bool> is_bad(chunks.size());
    for (const std::size_t bad : part.read(targets)) {
      part.distrust(targets[bad].fingerprint);
      is_bad[bad] = true;
    }
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (const std::size_t i : chunks[c].pieces) {
        Wanted& w = wanted_[i];
        failed[i] = is_bad[c] ? 1 : 0;
        if (!is_bad[c]) w.take(targets[c].out);
      }
    }
  }

  const plan::StripeUnit* stripe_of(const Wanted& w) const {
    return blocks_[w.block].placement_of(*w.piece).stripe();
  }

  // What no store has.
  void make() {
    std::vector<std::size_t> lacking;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      if (wanted_[i].source < 0 && stripe_of(wanted_[i]) != nullptr) lacking.push_back(i);
    }
    const auto place = [&](std::size_t i) {
      const plan::StripeUnit& stripe = *stripe_of(wanted_[i]);
      return std::tie(stripe.stripe, stripe.unit, wanted_[i].piece->fingerprint);
    };
    std::sort(lacking.begin(), lacking.end(),
              [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
    std::vector<LostChunk> lost;
    std::vector<Chunk> chunks;
    for (const std::size_t i : lacking) {
      if (lost.empty() || lost.back().chunk != wanted_[i].chunk()) {
        lost.push_back({wanted_[i].chunk(), stripe_of(wanted_[i])});
        chunks.emplace_back();
      }
      chunks.back().pieces.push_back(i);
    }
    const std::vector<int> makers =
        make_chunks(generation_, lost, [&](std::size_t number, Bytes bytes) {
          for (const std::size_t i : chunks[number].pieces) wanted_[i].take(bytes);
        });
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (const std::size_t i : chunks[c].pieces) wanted_[i].source = makers[c];
    }
  }

  static int writer_of(const std::vector<int>& writers, std::size_t block) {
    return writers[block % writers.size()];
  }

  Generation& generation_;
  std::span<const NumberedBlock> blocks_;
  std::vector<Wanted> wanted_;
  Bytes buffer_;  // of chunks that were just read
};

// Collective. The error that names what is lost, after something was found to be. Copies that were
// found to be bad do not count.
Status loss_of(Generation& generation) {
  DEDUP_ASSIGN(const Holding holding, measure(generation, generation.wanted()));
  const std::vector<ByteRange> lost = holding.tally.lost();
  std::string ranges;
  for (std::size_t i = 0; i < std::min(lost.size(), kRangesShown); ++i) {
    ranges +=
        fmt::format("{}bytes {} to {}", i == 0 ? "" : ", ", lost[i].offset, lost[i].end() - 1);
  }
  if (lost.size() > kRangesShown) {
    ranges += fmt::format(" and {} more ranges", lost.size() - kRangesShown);
  }
  return {
      Code::kCorrupt,
      fmt::format("{}: the stores here do not have {}; --incomplete puts zeros there; missing: {}",
                  generation.record().path, ranges, generation.missing_text())};
}

}  // namespace

Result<Moved> move_content(
    Generation& generation, const std::vector<int>& writers, bool incomplete,
    const std::function<Status(std::uint64_t offset, std::span<const std::byte>)>& write,
    const std::function<void(std::uint64_t bytes)>& done) {
  Moved moved;
  const auto& lost_shards = generation.lost_shards();
  if (!lost_shards.empty()) {
    if (!incomplete) return loss_of(generation);
    plan::Tally unknown(generation.record().size, plan::Redundancy::copies(1));
    for (const std::uint32_t s : lost_shards) {
      unknown.add_unknown_blocks(s, generation.record().shards.size());
    }
    moved.lost_bytes = unknown.lost_bytes();
  }
  const Status walked = generation.walk([&](std::span<const NumberedBlock> blocks) -> Status {
    Batch batch(generation, blocks);
    batch.read();
    if (batch.lost_bytes() > 0 && !incomplete) return loss_of(generation);
    moved.lost_bytes += batch.lost_bytes();
    const std::vector<Bytes> content = batch.collect(writers);
    Status status;
    for (std::size_t b = 0; b < blocks.size() && status.is_ok(); ++b) {
      if (!content[b].empty()) status = write(blocks[b].number * kBlockSpan, content[b]);
    }
    DEDUP_TRY(generation.ranks().agree(status));
    done(blocks.size() * kBlockSpan);
    return Status::ok();
  });
  DEDUP_TRY(walked);
  return moved;
}

ReadBlock read_block(Generation& generation, const NumberedBlock& block) {
  Batch batch(generation, {&block, 1});
  batch.read();
  const std::uint64_t lost_bytes = batch.lost_bytes();
  return {std::move(batch.collect({0}).front()), lost_bytes};
}

std::vector<Bytes> read_chunks(Generation& generation, const NumberedBlock& block,
                               std::span<const Piece> pieces) {
  NumberedBlock whole{block.number, {{}, block.block.placements}};
  for (Piece piece : pieces) {
    piece.chunk_offset = 0;
    piece.length = piece.chunk_length;
    whole.block.pieces.push_back(piece);
  }
  Batch batch(generation, {&whole, 1});
  batch.read();
  return batch.take_own();
}

}  // namespace dedup::ctl
