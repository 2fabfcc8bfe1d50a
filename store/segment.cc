#include "store/segment.h"

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <vector>

#include "base/codec.h"
#include "base/piece.h"
#include "store/format.h"
#include "store/fs.h"

namespace dedup::store {
namespace {

// A chunk's header: length and fingerprint, then the checksum.
constexpr std::size_t kCheckedSize = 4 + 32;
static_assert(kChunkHeaderSize == kCheckedSize + 8);

constexpr std::size_t kBufferSize = std::size_t{1} << 20;
// From here on copying costs more than a system call of its own.
constexpr std::size_t kLargeWrite = std::size_t{128} << 10;
// What is on its way to the disk at once.
constexpr std::uint64_t kWriteBackBytes = std::uint64_t{4} << 20;

using ChunkHeader = std::array<std::byte, kChunkHeaderSize>;

void store_little_endian(std::byte* to, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) to[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
}

// Over length, fingerprint and data: the hash of the first two is the seed of the third's.
std::uint64_t chunk_checksum(const ChunkHeader& header, std::span<const std::byte> data) {
  return format::checksum(data, format::checksum(std::span(header).first(kCheckedSize)));
}

ChunkHeader make_chunk_header(const Fingerprint& fingerprint, std::span<const std::byte> data) {
  ChunkHeader header;
  store_little_endian(header.data(), data.size(), 4);
  std::memcpy(header.data() + 4, fingerprint.bytes.data(), fingerprint.bytes.size());
  store_little_endian(header.data() + kCheckedSize, chunk_checksum(header, data), 8);
  return header;
}

bool checksum_holds(const ChunkHeader& header, std::span<const std::byte> data) {
  Decoder in{std::span(header).subspan(kCheckedSize)};
  return in.get<std::uint64_t>() == chunk_checksum(header, data);
}

Status bad_chunk(const std::string& path, std::uint64_t offset, const std::string& why) {
  return format::corrupt(path, "chunk at byte " + std::to_string(offset) + ": " + why);
}

}  // namespace

struct SegmentWriter::Private {
  std::shared_ptr<const fs::File> file;  // a worker may have it for longer
  std::uint64_t number = 0;
  Bytes buffer;
  std::uint64_t written = 0;  // bytes the kernel has; `buffer` follows
  std::uint64_t started = 0;  // of these, that are on their way to the disk
  std::future<Status> flushing;
  Status failure;

  // Writes the buffer and, after it, chunks that take `bytes` with their headers.
  Status write(std::span<const SegmentChunk> chunks, std::uint64_t bytes) {
    std::vector<ChunkHeader> headers;
    headers.reserve(chunks.size());
    std::vector<iovec> parts;
    parts.reserve(1 + 2 * chunks.size());
    parts.push_back({buffer.data(), buffer.size()});
    for (const SegmentChunk& chunk : chunks) {
      headers.push_back(make_chunk_header(chunk.fingerprint, chunk.data));
      parts.push_back({headers.back().data(), kChunkHeaderSize});
      parts.push_back({const_cast<std::byte*>(chunk.data.data()), chunk.data.size()});
    }
    failure = fs::writev_at(*file, written, parts);
    if (failure.is_ok()) {
      written += buffer.size() + bytes;
      buffer.clear();
    }
    return failure;
  }

  // Of at most kRunChunks.
  Status append(std::span<const SegmentChunk> chunks) {
    std::uint64_t bytes = 0;
    for (const SegmentChunk& chunk : chunks) bytes += kChunkHeaderSize + chunk.data.size();
    if (bytes >= kLargeWrite) return write(chunks, bytes);
    if (buffer.size() + bytes > kBufferSize) DEDUP_TRY(write({}, 0));
    if (buffer.capacity() < kBufferSize) buffer.reserve(kBufferSize);
    for (const SegmentChunk& chunk : chunks) {
      const ChunkHeader header = make_chunk_header(chunk.fingerprint, chunk.data);
      buffer.insert(buffer.end(), header.begin(), header.end());
      buffer.insert(buffer.end(), chunk.data.begin(), chunk.data.end());
    }
    return Status::ok();
  }
};

SegmentWriter::SegmentWriter(std::unique_ptr<Private> p) : p_(std::move(p)) {}
SegmentWriter::~SegmentWriter() = default;

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create(const std::string& path,
                                                             const Id128& identity,
                                                             std::uint64_t number) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(fs::File file, fs::create_new(path));
  p->file = std::make_shared<const fs::File>(std::move(file));
  p->number = number;
  p->buffer = format::encode_file_header(format::kSegment, identity, number);
  return std::unique_ptr<SegmentWriter>(new SegmentWriter(std::move(p)));
}

Result<ChunkLocation> SegmentWriter::append(std::span<const SegmentChunk> chunks) {
  DEDUP_TRY(p_->failure);
  for (const SegmentChunk& chunk : chunks) {
    if (chunk.data.empty() || chunk.data.size() > kMaxChunkSize) {
      return Status(Code::kArgument, "a chunk of " + std::to_string(chunk.data.size()) + " bytes");
    }
  }
  ChunkLocation first{p_->number, size(), 0};
  if (!chunks.empty()) first.length = static_cast<std::uint32_t>(chunks.front().data.size());
  for (; !chunks.empty(); chunks = chunks.subspan(std::min(chunks.size(), kRunChunks))) {
    DEDUP_TRY(p_->append(chunks.first(std::min(chunks.size(), kRunChunks))));
  }
  return first;
}

Result<ChunkLocation> SegmentWriter::append(const Fingerprint& fingerprint,
                                            std::span<const std::byte> data) {
  const SegmentChunk chunk{fingerprint, data};
  return append({&chunk, 1});
}

Status SegmentWriter::write_out() {
  DEDUP_TRY(p_->failure);
  return p_->buffer.empty() ? Status::ok() : p_->write({}, 0);
}

Status SegmentWriter::flush() {
  DEDUP_TRY(write_out());
  p_->failure = fs::sync_data(*p_->file);
  return p_->failure;
}

Status SegmentWriter::begin_flush(Worker& worker) {
  DEDUP_TRY(end_flush());
  DEDUP_TRY(write_out());
  p_->flushing = worker.post([file = p_->file] { return fs::sync_data(*file); });
  return Status::ok();
}

Status SegmentWriter::end_flush() {
  if (!p_->flushing.valid()) return Status::ok();
  p_->failure = p_->flushing.get();
  return p_->failure;
}

// Up to where no later write goes into memory pages that are being written to the disk: it would
// have to wait.
void SegmentWriter::start_write_back(Worker& worker) {
  const std::uint64_t end = p_->written / kWriteBackBytes * kWriteBackBytes;
  if (end == p_->started) return;
  worker.post([file = p_->file, from = p_->started, bytes = end - p_->started] {
    fs::start_write_back(*file, from, bytes);
    return Status::ok();
  });
  p_->started = end;
}

std::uint64_t SegmentWriter::number() const {
  return p_->number;
}
std::uint64_t SegmentWriter::size() const {
  return p_->written + p_->buffer.size();
}

struct SegmentReader::Private {
  fs::File file;
  std::uint64_t number = 0;

  Status check(const ChunkHeader& header, std::uint64_t offset, const Fingerprint& fingerprint,
               std::span<const std::byte> data) const {
    Decoder in(header);
    const auto length = in.get<std::uint32_t>();
    if (length != data.size() || in.get_fingerprint() != fingerprint) {
      return bad_chunk(
          file.path(), offset,
          "not the chunk " + fingerprint.hex() + " of " + std::to_string(data.size()) + " bytes");
    }
    if (!checksum_holds(header, data)) {
      return bad_chunk(file.path(), offset, "damaged: its checksum does not hold");
    }
    return Status::ok();
  }

  // What chunks are read with, again and again.
  struct Parts {
    std::vector<ChunkHeader> headers;
    std::vector<iovec> parts;
  };

  // At most kRunChunks that stand one after the other from `offset` on. `sound`: how many of them
  // are there and what they should be, up to the first that is not.
  Status read(std::uint64_t offset, std::span<const Fingerprint> fingerprints,
              std::span<const std::span<std::byte>> outs, Parts& with, std::size_t& sound) const {
    sound = 0;
    with.headers.resize(outs.size());
    with.parts.clear();
    for (std::size_t i = 0; i < outs.size(); ++i) {
      with.parts.push_back({with.headers[i].data(), kChunkHeaderSize});
      with.parts.push_back({outs[i].data(), outs[i].size()});
    }
    DEDUP_ASSIGN(std::uint64_t got, fs::readv_to_end(file, offset, with.parts));
    for (; sound < outs.size(); ++sound) {
      const std::uint64_t size = kChunkHeaderSize + outs[sound].size();
      if (got < size) return bad_chunk(file.path(), offset, "cut off");
      DEDUP_TRY(check(with.headers[sound], offset, fingerprints[sound], outs[sound]));
      offset += size;
      got -= size;
    }
    return Status::ok();
  }
};

SegmentReader::SegmentReader(std::unique_ptr<Private> p) : p_(std::move(p)) {}
SegmentReader::~SegmentReader() = default;

Result<std::unique_ptr<SegmentReader>> SegmentReader::open(const std::string& path) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(p->file, fs::open_read(path));
  std::array<std::byte, format::kFileHeaderSize> header;
  DEDUP_TRY(fs::read_at(p->file, 0, header));
  DEDUP_ASSIGN(p->number, format::check_file_header(header, format::kSegment, path));
  return std::unique_ptr<SegmentReader>(new SegmentReader(std::move(p)));
}

Status SegmentReader::read(const ChunkLocation& location, const Fingerprint& fingerprint,
                           std::span<std::byte> out) const {
  return read_run({&location, 1}, {&fingerprint, 1}, {&out, 1});
}

Status SegmentReader::read_run(std::span<const ChunkLocation> locations,
                               std::span<const Fingerprint> fingerprints,
                               std::span<const std::span<std::byte>> outs) const {
  if (locations.size() != fingerprints.size() || locations.size() != outs.size()) {
    return {Code::kArgument, "a run of chunks with parts missing"};
  }
  for (std::size_t i = 0; i < locations.size(); ++i) {
    if (outs[i].size() != locations[i].length || outs[i].empty() ||
        outs[i].size() > kMaxChunkSize) {
      return {Code::kArgument, "a buffer of " + std::to_string(outs[i].size()) +
                                   " bytes for a chunk of " + std::to_string(locations[i].length)};
    }
  }
  Private::Parts parts;
  for (std::size_t begin = 0, end; begin < locations.size(); begin = end) {
    std::uint64_t next = locations[begin].offset;
    for (end = begin; end < locations.size() && end - begin < kRunChunks; ++end) {
      if (locations[end].offset != next) break;
      next += kChunkHeaderSize + locations[end].length;
    }
    std::size_t sound;
    DEDUP_TRY(p_->read(locations[begin].offset, fingerprints.subspan(begin, end - begin),
                       outs.subspan(begin, end - begin), parts, sound));
  }
  return Status::ok();
}

std::size_t SegmentReader::read_following(std::uint64_t offset,
                                          std::span<const Fingerprint> fingerprints,
                                          std::span<const std::span<std::byte>> outs) const {
  const std::size_t count = std::min(fingerprints.size(), outs.size());
  Private::Parts parts;
  std::size_t done = 0;
  while (done < count) {
    const std::size_t now = std::min(count - done, kRunChunks);
    std::size_t sound;
    // Why the run ends here is of no interest: whoever wants the next chunk looks it up.
    const Status status =
        p_->read(offset, fingerprints.subspan(done, now), outs.subspan(done, now), parts, sound);
    for (std::size_t i = done; i < done + sound; ++i) offset += kChunkHeaderSize + outs[i].size();
    done += sound;
    if (!status.is_ok()) break;
  }
  return done;
}

Status spoil_chunk(const std::string& path, const ChunkLocation& location) {
  DEDUP_ASSIGN(const fs::File file, fs::open_to_write(path));
  std::array<std::byte, kChunkHeaderSize - kCheckedSize> checksum;
  DEDUP_TRY(fs::read_at(file, location.offset + kCheckedSize, checksum));
  for (std::byte& byte : checksum) byte = ~byte;
  DEDUP_TRY(fs::write_at(file, location.offset + kCheckedSize, checksum));
  return fs::sync_data(file);
}

std::uint64_t SegmentReader::first_offset() const {
  return format::kFileHeaderSize;
}

Result<bool> SegmentReader::next(std::uint64_t& offset, Fingerprint& fingerprint,
                                 ChunkLocation& location) const {
  const auto& path = p_->file.path();
  DEDUP_ASSIGN(const fs::Info about, fs::info(p_->file));
  while (offset < about.size) {
    ChunkHeader header;
    if (about.size - offset < kChunkHeaderSize) {
      return bad_chunk(path, offset, "cut off");
    }
    DEDUP_TRY(fs::read_at(p_->file, offset, header));
    Decoder in(header);
    const auto length = in.get<std::uint32_t>();
    if (length == 0 || length > kMaxChunkSize) {
      return bad_chunk(path, offset, "damaged: its length cannot be");
    }
    if (length > about.size - offset - kChunkHeaderSize) return bad_chunk(path, offset, "cut off");
    fingerprint = in.get_fingerprint();
    Bytes data(length);
    DEDUP_TRY(fs::read_at(p_->file, offset + kChunkHeaderSize, data));
    location = {p_->number, offset, length};
    offset += kChunkHeaderSize + length;
    if (checksum_holds(header, data)) return true;
  }
  return false;
}

}  // namespace dedup::store
