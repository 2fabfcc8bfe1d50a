#include "tools/dedupctl/random_reader.h"

#include <algorithm>
#include <map>

#include "base/byte_ranges.h"
#include "plan/block.h"
#include "tools/dedupctl/content.h"

namespace dedup::ctl {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{16} << 20;

// The part of a block's pieces that is not zeros and touches [begin, end).
std::vector<Piece> pieces_within(const Block& block, std::uint32_t begin, std::uint32_t end) {
  std::vector<Piece> within;
  auto piece = std::partition_point(block.pieces.begin(), block.pieces.end(),
                                    [&](const Piece& p) { return p.end() <= begin; });
  for (; piece != block.pieces.end() && piece->begin < end; ++piece) {
    if (!piece->is_zero()) within.push_back(plan::cut(*piece, begin, end));
  }
  return within;
}

}  // namespace

RandomReader::~RandomReader() {
  const auto is_own = [this](const auto& key) { return key.first == number_; };
  cache_.blocks_.erase_from({number_, 0}, is_own);
  cache_.chunks_.erase_from({number_, Fingerprint{}}, is_own);
}

Result<std::vector<ByteRange>> RandomReader::read(std::uint64_t offset, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  std::vector<ByteRange> lost;
  Status status;
  plan::for_each_block(offset, out.size(),
                       [&](std::uint64_t number, std::uint32_t begin, std::uint32_t length) {
                         if (status.is_ok())
                           status = read_block(number, begin, out.first(length), lost);
                         out = out.subspan(length);
                       });
  DEDUP_TRY(status);
  return lost;
}

Status RandomReader::read_block(std::uint64_t number, std::uint32_t begin, std::span<std::byte> out,
                                std::vector<ByteRange>& lost) {
  DEDUP_ASSIGN(const NumberedBlock* const found, block(number));
  const std::vector<Piece> pieces =
      pieces_within(found->block, begin, begin + static_cast<std::uint32_t>(out.size()));
  auto from = pieces.begin();
  std::size_t bytes = 0;
  for (auto piece = pieces.begin(); piece != pieces.end(); ++piece) {
    if (bytes + piece->chunk_length > kReadAtOnce) {
      read_pieces(*found, {from, piece}, begin, out, lost);
      from = piece;
      bytes = 0;
    }
    bytes += piece->chunk_length;
  }
  read_pieces(*found, {from, pieces.end()}, begin, out, lost);
  return Status::ok();
}

void RandomReader::read_pieces(const NumberedBlock& block, std::span<const Piece> pieces,
                               std::uint32_t begin, std::span<std::byte> out,
                               std::vector<ByteRange>& lost) {
  std::map<Fingerprint, Bytes> read;
  std::vector<Piece> wanted;
  for (const Piece& piece : pieces) {
    const bool is_known = cache_.chunks_.find({number_, piece.fingerprint}) != nullptr;
    if (!is_known && read.try_emplace(piece.fingerprint).second) wanted.push_back(piece);
  }
  if (!wanted.empty()) {
    std::vector<Bytes> chunks = read_chunks(block, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      read[wanted[i].fingerprint] = std::move(chunks[i]);
    }
  }
  for (const Piece& piece : pieces) {
    const auto now = read.find(piece.fingerprint);
    const Bytes& chunk =
        now != read.end() ? now->second : *cache_.chunks_.find({number_, piece.fingerprint});
    if (chunk.empty()) {
      append(lost, {block.number * kBlockSpan + piece.begin, piece.length});
      continue;
    }
    const auto part = std::span(chunk).subspan(piece.chunk_offset, piece.length);
    std::copy(part.begin(), part.end(), out.begin() + (piece.begin - begin));
  }
  for (auto& [fingerprint, chunk] : read) {
    if (chunk.empty()) continue;
    const std::size_t size = chunk.size();
    cache_.chunks_.insert({number_, fingerprint}, std::move(chunk), size);
  }
}

std::vector<Bytes> RandomReader::read_chunks(const NumberedBlock& block,
                                             std::span<const Piece> wanted) {
  std::vector<Bytes> chunks = ctl::read_chunks(*generation_, block, wanted);
  if (!elsewhere_) return chunks;
  std::vector<Piece> missing;
  std::vector<std::size_t> where;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!chunks[i].empty() || wanted[i].is_unknown()) continue;
    missing.push_back(wanted[i]);
    where.push_back(i);
  }
  if (missing.empty()) return chunks;
  std::vector<Bytes> read = elsewhere_->read(block, missing);
  for (std::size_t k = 0; k < where.size(); ++k) chunks[where[k]] = std::move(read[k]);
  return chunks;
}

Result<const NumberedBlock*> RandomReader::block(std::uint64_t number) {
  const std::pair key(number_, number);
  if (const NumberedBlock* const known = cache_.blocks_.find(key)) return known;
  DEDUP_ASSIGN(NumberedBlock read, generation_->block(number));
  if (plan::unknown_bytes(read.block) != 0) {
    auto found = elsewhere_ ? elsewhere_->block(number)
                            : Result<NumberedBlock>(Status(Code::kNotFound, "it is in no store"));
    if (!found.is_ok()) {
      unknown_ = std::move(read);
      return &std::as_const(unknown_);
    }
    read = *std::move(found);
  }
  const std::size_t size = plan::memory_of(read.block);
  return &std::as_const(cache_.blocks_.insert(key, std::move(read), size));
}

}  // namespace dedup::ctl
