#include "engine/protocol/plain_file.h"

#include <algorithm>
#include <utility>

#include "base/byte_ranges.h"

namespace dedup::engine {

Result<std::unique_ptr<PlainFile>> PlainFile::open(const std::string& path,
                                                   const store::Stamp& stamp) {
  DEDUP_ASSIGN(store::fs::File file, store::fs::open_read(path));
  std::unique_ptr<PlainFile> plain(new PlainFile(std::move(file), stamp));
  DEDUP_ASSIGN(const store::Stamp now, store::stamp_of(plain->file_));
  if (now != stamp) {
    return Status(Code::kIo, path + ": another program changed the file while it was opened");
  }
  return plain;
}

Status PlainFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  const Status status = store::fs::read_at(file_, offset, out);
  if (status.code() != Code::kCorrupt) return status;
  return {Code::kIo, file_.path() + ": another program cut the file short while it was open"};
}

std::vector<ByteRange> untouched(const ByteRange& range, const service::ResolvedRange& resolved,
                                 std::uint64_t size) {
  const std::uint64_t block = range.offset / kBlockSpan * kBlockSpan;
  const std::uint64_t end = std::min({range.end(), block + resolved.plain_end, size});
  std::vector<ByteRange> covered{{0, range.offset}};
  for (const Piece& piece : resolved.content.pieces) {
    covered.push_back({block + piece.begin, piece.length});
  }
  for (const LogPiece& log : resolved.log) covered.push_back({block + log.begin, log.length});
  return missing(std::move(covered), end);
}

}  // namespace dedup::engine
