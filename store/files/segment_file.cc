#include "store/files/segment_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <tuple>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/hasher.h"
#include "base/piece.h"
#include "store/chunk_header.h"
#include "store/format.h"
#include "store/fs.h"

namespace dedup::store {
namespace {

// A list: salt, a zero where a header has its length, the entries' size; the entries, each a
// chunk's length and fingerprint, or a zero if it has a header; the checksum.
constexpr std::size_t kListStart = kSaltSize + 4 + 4;
constexpr std::size_t kListSize = kListStart + 8;  // without entries
constexpr std::size_t kLongestList = kRunChunks * kGroupEntrySize;
static_assert(kGroupEntrySize == 4 + 32);
static_assert(kMostBesideChunk == kListSize + kGroupEntrySize &&
              kMostBesideChunk >= kChunkHeaderSize + 4);

constexpr std::size_t kBufferSize = std::size_t{1} << 20;
// From here on copying costs more than a system call of its own.
constexpr std::size_t kLargeWrite = std::size_t{128} << 10;
// What is on its way to the disk at once.
constexpr std::uint64_t kWriteBackBytes = std::uint64_t{4} << 20;
// How often, at least, a writer that fills a place alone looks whether it is full.
constexpr std::uint64_t kLooks = 64;

// Whether somebody knows that chunks are there, or only thinks so.
enum class Known { kLocated, kGuessed };

void put_header(Bytes& out, std::uint64_t salt, const SegmentChunk& chunk) {
  put_number(out, salt, kSaltSize);
  put_name(out, chunk);
  put_number(out, chunk_checksum(std::span(out).last(kCheckedSize), chunk.data), 8);
}

void put_list(Bytes& out, std::uint64_t salt, std::span<const SegmentChunk> chunks) {
  const std::size_t begin = out.size();
  put_number(out, salt, kSaltSize);
  std::size_t size = 0;
  for (const SegmentChunk& chunk : chunks) {
    size += has_header(chunk.fingerprint) ? 4 : kGroupEntrySize;
  }
  put_number(out, 0, 4);
  put_number(out, size, 4);
  for (const SegmentChunk& chunk : chunks) {
    if (has_header(chunk.fingerprint)) {
      put_number(out, 0, 4);
    } else {
      put_name(out, chunk);
    }
  }
  put_number(out, format::checksum(std::span(out).subspan(begin)), 8);
}

// What is next to each other in memory goes as one.
void add_part(std::vector<iovec>& parts, std::span<const std::byte> bytes) {
  if (!parts.empty()) {
    iovec& last = parts.back();
    if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == bytes.data()) {
      last.iov_len += bytes.size();
      return;
    }
  }
  parts.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
}

ChunkSeal seal_in(const ChunkHeader& header) {
  Decoder in(header);
  ChunkSeal seal;
  seal.salt = in.get<std::uint64_t>();
  in = Decoder(std::span(header).subspan(kCheckedSize));
  seal.checksum = in.get<std::uint64_t>();
  return seal;
}

bool checksum_holds(const ChunkHeader& header, std::span<const std::byte> data) {
  Decoder in{std::span(header).subspan(kCheckedSize)};
  return in.get<std::uint64_t>() == chunk_checksum(std::span(header).first(kCheckedSize), data);
}

Status bad_chunk(const std::string& path, std::uint64_t offset, const std::string& why) {
  return format::corrupt(path, "chunk at byte " + std::to_string(offset) + ": " + why);
}

// How many of `chunks` make the first group: the numbers of those without a header go on in it.
// Whether there are such.
std::pair<std::size_t, bool> first_group(std::span<const SegmentChunk> chunks) {
  bool listed = false;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (has_header(chunks[i].fingerprint)) continue;
    const std::uint64_t number = number_of_single(chunks[i].fingerprint);
    if (listed && number != next) return {i, true};
    listed = true;
    next = number + 1;
  }
  return {chunks.size(), listed};
}

// Chunks as they go into a segment: what stands beside them, and them, where they are.
class Layout {
 public:
  // From `at` on, in the segment; fills `locations`.
  Layout(std::span<const SegmentChunk> chunks, std::uint64_t salt, ChunkLocation at,
         std::span<ChunkLocation> locations) {
    // Parts point into it: it does not move.
    beside_.reserve(chunks.size() * kMostBesideChunk);
    parts_.reserve(2 * chunks.size());
    while (!chunks.empty()) {
      const auto [count, listed] = first_group(chunks);
      if (listed) {
        const std::size_t before = beside_.size();
        put_list(beside_, salt, chunks.first(count));
        add_part(parts_, std::span(beside_).subspan(before));
        at.offset += beside_.size() - before;
      }
      for (std::size_t i = 0; i < count; ++i) {
        const SegmentChunk& chunk = chunks[i];
        at.length = static_cast<std::uint32_t>(chunk.data.size());
        locations[i] = at;
        at.offset = chunk_end(chunk.fingerprint, at);
        if (has_header(chunk.fingerprint)) {
          put_header(beside_, salt, chunk);
          add_part(parts_, std::span(beside_).last(kChunkHeaderSize));
        }
        add_part(parts_, chunk.data);
      }
      chunks = chunks.subspan(count);
      locations = locations.subspan(count);
    }
    end_ = at.offset;
  }
  Layout(const Layout&) = delete;

  std::span<const iovec> parts() const { return parts_; }
  std::uint64_t end() const { return end_; }

 private:
  Bytes beside_;
  std::vector<iovec> parts_;
  std::uint64_t end_ = 0;
};

}  // namespace

struct SegmentFileWriter::Private {
  std::shared_ptr<const fs::File> file;  // a worker may have it for longer
  std::uint64_t number = 0;
  std::uint64_t salt = 0;
  SegmentRoom room;
  bool is_full = false;
  bool may_reserve = true;      // as long as the file system knows how
  std::uint64_t reserved = 0;   // up to here there is space
  std::uint64_t next_look = 0;  // at the room
  Bytes buffer;
  std::uint64_t written = 0;  // bytes the kernel has; `buffer` follows
  std::uint64_t started = 0;  // of these, that are on their way to the disk
  std::future<Status> flushing;
  Status failure;

  std::uint64_t size() const { return written + buffer.size(); }

  // Writes the buffer and, after it, `rest`, up to `end` of the file.
  Status write(std::span<const iovec> rest, std::uint64_t end) {
    std::vector<iovec> parts;
    parts.reserve(1 + rest.size());
    parts.push_back({buffer.data(), buffer.size()});
    parts.insert(parts.end(), rest.begin(), rest.end());
    failure = fs::writev_at(*file, written, parts);
    if (fs::is_out_of_room(failure) && room.left && !rest.empty()) return leave_out_rest();
    if (failure.is_ok()) {
      written = end;
      buffer.clear();
      look_at_room();
    }
    return failure;
  }

  // What was buffered has space that was taken for it; the rest may go elsewhere.
  Status leave_out_rest() {
    const Status full = std::exchange(failure, Status::ok());
    DEDUP_TRY(write({}, size()));
    failure = fs::truncate(*file, written);
    DEDUP_TRY(failure);
    run_out();
    return full;
  }

  void run_out() {
    is_full = true;
    room.ran_out();
  }

  // Others write there, too: the less is left, the sooner again.
  void look_at_room() {
    if (!room.left || written < next_look) return;
    const std::uint64_t left = room.left();
    is_full = is_full || left == 0 || written >= room.most;
    next_look = written + std::max(std::min(left, room.most) / kLooks, std::uint64_t{kBufferSize});
  }

  // Before the first bytes are buffered: that they are written later must not fail for want of
  // space. Where that is not to be had, it is a failure then.
  Status reserve_buffer() {
    if (!room.left || !may_reserve || reserved >= written + kBufferSize) return Status::ok();
    const Status taken = fs::reserve(*file, written, kBufferSize);
    if (fs::is_out_of_room(taken)) {
      run_out();
      return taken;
    }
    may_reserve = taken.is_ok();
    reserved = taken.is_ok() ? written + kBufferSize : 0;
    return Status::ok();
  }

  // What was taken and is not needed.
  Status free_reserved() {
    if (reserved <= written) return Status::ok();
    reserved = 0;
    return fs::truncate(*file, written);
  }

  // Of at most kRunChunks.
  Status append(std::span<const SegmentChunk> chunks, std::span<ChunkLocation> locations) {
    const Layout layout(chunks, salt, {number, size(), 0}, locations);
    if (layout.end() - size() >= kLargeWrite) return write(layout.parts(), layout.end());
    if (layout.end() - written > kBufferSize) DEDUP_TRY(write({}, size()));
    if (buffer.empty()) DEDUP_TRY(reserve_buffer());
    if (buffer.capacity() < kBufferSize) buffer.reserve(kBufferSize);
    for (const iovec& part : layout.parts()) {
      const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
      buffer.insert(buffer.end(), bytes, bytes + part.iov_len);
    }
    return Status::ok();
  }
};

SegmentFileWriter::SegmentFileWriter(std::unique_ptr<Private> p) : p_(std::move(p)) {}
SegmentFileWriter::~SegmentFileWriter() {
  // What stays taken is freed with the segment.
  if (p_->buffer.empty()) (void)p_->free_reserved();
}

Result<std::unique_ptr<SegmentFileWriter>> SegmentFileWriter::create(const std::string& path,
                                                                     const Id128& identity,
                                                                     std::uint64_t number,
                                                                     const SegmentRoom& room) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(fs::File file, fs::create_new(path));
  p->file = std::make_shared<const fs::File>(std::move(file));
  p->number = number;
  p->room = room;
  // As long as it is open to be written to, it stays where it is (store/files/segment_mover.h).
  Status ready = room.left ? fs::try_lock(*p->file, false).status() : Status::ok();
  if (ready.is_ok()) ready = p->reserve_buffer();
  if (!ready.is_ok()) {
    (void)fs::remove_file(path);
    return ready;
  }
  std::array<std::uint8_t, kSaltSize> random;
  fill_randomly(random);
  std::memcpy(&p->salt, random.data(), random.size());
  p->buffer = format::encode_file_header(format::kSegment, {identity, number, p->salt});
  return std::unique_ptr<SegmentFileWriter>(new SegmentFileWriter(std::move(p)));
}

Status SegmentFileWriter::append(std::span<const SegmentChunk> chunks,
                                 std::span<ChunkLocation> locations) {
  DEDUP_TRY(p_->failure);
  if (chunks.size() != locations.size()) {
    return {Code::kArgument, "chunks without room for their locations"};
  }
  for (const SegmentChunk& chunk : chunks) {
    if (chunk.data.empty() || chunk.data.size() > kMaxChunkSize) {
      return {Code::kArgument, "a chunk of " + std::to_string(chunk.data.size()) + " bytes"};
    }
  }
  while (!chunks.empty()) {
    const std::size_t now = std::min(chunks.size(), kRunChunks);
    DEDUP_TRY(p_->append(chunks.first(now), locations.first(now)));
    chunks = chunks.subspan(now);
    locations = locations.subspan(now);
  }
  return Status::ok();
}

Status SegmentFileWriter::write_out() {
  DEDUP_TRY(p_->failure);
  return p_->buffer.empty() ? Status::ok() : p_->write({}, p_->size());
}

bool SegmentFileWriter::is_full() const {
  return p_->is_full;
}

Status SegmentFileWriter::flush() {
  DEDUP_TRY(write_out());
  DEDUP_TRY(p_->free_reserved());
  p_->failure = fs::sync_data(*p_->file);
  return p_->failure;
}

Status SegmentFileWriter::begin_flush(Worker& worker) {
  DEDUP_TRY(end_flush());
  DEDUP_TRY(write_out());
  DEDUP_TRY(p_->free_reserved());
  p_->flushing = worker.post([file = p_->file] { return fs::sync_data(*file); });
  return Status::ok();
}

Status SegmentFileWriter::end_flush() {
  if (!p_->flushing.valid()) return Status::ok();
  p_->failure = p_->flushing.get();
  return p_->failure;
}

// Up to where no later write goes into memory pages that are being written to the disk: it would
// have to wait.
void SegmentFileWriter::start_write_back(Worker& worker) {
  const std::uint64_t end = p_->written / kWriteBackBytes * kWriteBackBytes;
  if (end == p_->started) return;
  worker.post([file = p_->file, from = p_->started, bytes = end - p_->started] {
    fs::start_write_back(*file, from, bytes);
    return Status::ok();
  });
  p_->started = end;
}

std::uint64_t SegmentFileWriter::number() const {
  return p_->number;
}
std::uint64_t SegmentFileWriter::size() const {
  return p_->size();
}

struct SegmentFileReader::Private {
  fs::File file;
  std::uint64_t number = 0;
  std::uint64_t salt = 0;
  bool was_log = false;  // then it has neither headers nor lists: nothing is to be taken for one

  // What chunks are read with, again and again.
  struct Parts {
    std::vector<ChunkHeader> headers;
    std::vector<iovec> parts;
  };

  // Of a header or list, as far as so few bytes tell. Data begin like that only by accident.
  bool begins_with_salt(std::span<const std::byte> bytes) const {
    for (std::size_t i = 0; i < std::min(bytes.size(), kSaltSize); ++i) {
      if (bytes[i] != static_cast<std::byte>(salt >> (8 * i))) return false;
    }
    return true;
  }

  // `header`: what was read before the data, if the chunk has one.
  Status check(const ChunkHeader& header, std::uint64_t offset, const Fingerprint& fingerprint,
               std::span<const std::byte> data, Known known) const {
    if (!has_header(fingerprint)) {
      const bool there = known == Known::kLocated || was_log || !begins_with_salt(data);
      if (there && fits_single(fingerprint, data)) return Status::ok();
      return bad_chunk(file.path(), offset,
                       "damaged, or not the chunk " + fingerprint.hex() + " of " +
                           std::to_string(data.size()) + " bytes");
    }
    Decoder in(header);
    const bool is_header = !was_log && in.get<std::uint64_t>() == salt;
    const auto length = in.get<std::uint32_t>();
    if (!is_header || length != data.size() || in.get_fingerprint() != fingerprint) {
      return bad_chunk(
          file.path(), offset,
          "not the chunk " + fingerprint.hex() + " of " + std::to_string(data.size()) + " bytes");
    }
    if (!checksum_holds(header, data)) {
      return bad_chunk(file.path(), offset, "damaged: its checksum does not hold");
    }
    return Status::ok();
  }

  // At most kRunChunks that stand one after the other from `offset` on. `sound`: how many of them
  // are there and what they should be, up to the first that is not.
  Status read(std::uint64_t offset, std::span<const Fingerprint> fingerprints,
              std::span<const std::span<std::byte>> outs, std::span<ChunkSeal> seals, Known known,
              Parts& with, std::size_t& sound) const {
    sound = 0;
    with.headers.resize(outs.size());
    with.parts.clear();
    for (std::size_t i = 0; i < outs.size(); ++i) {
      if (has_header(fingerprints[i])) add_part(with.parts, with.headers[i]);
      add_part(with.parts, outs[i]);
    }
    DEDUP_ASSIGN(std::uint64_t got, fs::readv_to_end(file, offset, with.parts));
    for (; sound < outs.size(); ++sound) {
      const std::uint64_t size = header_size(fingerprints[sound]) + outs[sound].size();
      if (got < size) return bad_chunk(file.path(), offset, "cut off");
      DEDUP_TRY(check(with.headers[sound], offset, fingerprints[sound], outs[sound], known));
      if (!seals.empty() && has_header(fingerprints[sound])) {
        seals[sound] = seal_in(with.headers[sound]);
      }
      offset += size;
      got -= size;
    }
    return Status::ok();
  }

  // The chunk with a header at `offset`; moves `offset` behind it.
  Status scan_chunk(std::uint64_t& offset, std::uint64_t size, const Visit& visit) const {
    ChunkHeader header;
    if (size - offset < header.size()) return bad_chunk(file.path(), offset, "cut off");
    DEDUP_TRY(fs::read_at(file, offset, header));
    Decoder in{std::span(header).subspan(kSaltSize)};
    const ChunkLocation location{number, offset, in.get<std::uint32_t>()};
    if (location.length == 0 || location.length > kMaxChunkSize) {
      return bad_chunk(file.path(), offset, "damaged: its length cannot be");
    }
    if (location.length > size - offset - header.size()) {
      return bad_chunk(file.path(), offset, "cut off");
    }
    Bytes data(location.length);
    DEDUP_TRY(fs::read_at(file, offset + header.size(), data));
    offset += header.size() + data.size();
    const Fingerprint fingerprint = in.get_fingerprint();
    if (has_header(fingerprint) && checksum_holds(header, data)) visit(fingerprint, location);
    return Status::ok();
  }

  // The group whose list is at `offset`; moves `offset` behind its last chunk.
  Status scan_group(std::uint64_t& offset, std::uint64_t size, const Visit& visit) const {
    const std::uint64_t begin = offset;
    std::array<std::byte, 4> count;
    if (size - begin < kListSize) return bad_chunk(file.path(), begin, "cut off");
    DEDUP_TRY(fs::read_at(file, begin + kListStart - count.size(), count));
    const std::uint64_t entries = Decoder(count).get<std::uint32_t>();
    if (entries > kLongestList || entries > size - begin - kListSize) {
      return bad_chunk(file.path(), begin, "a list that is cut off or too long");
    }
    Bytes bytes(kListSize + entries);
    DEDUP_TRY(fs::read_at(file, begin, bytes));
    std::span<const std::byte> list(bytes);
    if (!format::take_checksum(list)) return bad_chunk(file.path(), begin, "a damaged list");
    offset += bytes.size();
    for (Decoder in(list.subspan(kListStart)); !in.at_end();) {
      const ChunkLocation location{number, offset, in.get<std::uint32_t>()};
      if (location.length == 0 && in.ok()) {
        DEDUP_TRY(scan_chunk(offset, size, visit));
        continue;
      }
      const Fingerprint fingerprint = in.get_fingerprint();
      if (!in.ok() || location.length > kMaxChunkSize || has_header(fingerprint)) {
        return bad_chunk(file.path(), begin, "a list of what cannot be");
      }
      if (location.length > size - offset) return bad_chunk(file.path(), offset, "cut off");
      Bytes data(location.length);
      DEDUP_TRY(fs::read_at(file, offset, data));
      if (fits_single(fingerprint, data)) visit(fingerprint, location);
      offset += data.size();
    }
    return Status::ok();
  }
};

SegmentFileReader::SegmentFileReader(std::unique_ptr<Private> p) : p_(std::move(p)) {}
SegmentFileReader::~SegmentFileReader() = default;

Result<std::unique_ptr<SegmentFileReader>> SegmentFileReader::open(const std::string& path) {
  DEDUP_ASSIGN(fs::File file, fs::open_read(path));
  return of(std::move(file));
}

Result<std::shared_ptr<const SegmentReader>> LentSegment::open(std::string name) && {
  DEDUP_ASSIGN(std::shared_ptr<const SegmentReader> reader,
               SegmentFileReader::of(fs::File(kernel(), descriptor_.release(), std::move(name))));
  return reader;
}

Result<std::unique_ptr<SegmentFileReader>> SegmentFileReader::of(fs::File file) {
  auto p = std::make_unique<Private>();
  p->file = std::move(file);
  std::array<std::byte, format::kFileHeaderSize> header;
  DEDUP_TRY(fs::read_at(p->file, 0, header));
  DEDUP_ASSIGN(const auto about,
               format::check_file_header(header, format::kLogSegment, p->file.path()));
  p->was_log = format::version_of(header) == format::kLogSegment.version;
  p->number = about.number;
  p->salt = about.salt;
  return std::unique_ptr<SegmentFileReader>(new SegmentFileReader(std::move(p)));
}

Status SegmentFileReader::read_run(std::span<const ChunkLocation> locations,
                                   std::span<const Fingerprint> fingerprints,
                                   std::span<const std::span<std::byte>> outs,
                                   std::span<ChunkSeal> seals) const {
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
      next = chunk_end(fingerprints[end], locations[end]);
    }
    std::size_t sound;
    DEDUP_TRY(p_->read(locations[begin].offset, fingerprints.subspan(begin, end - begin),
                       outs.subspan(begin, end - begin),
                       seals.empty() ? seals : seals.subspan(begin, end - begin), Known::kLocated,
                       parts, sound));
  }
  return Status::ok();
}

std::size_t SegmentFileReader::read_following(std::uint64_t offset,
                                              std::span<const Fingerprint> fingerprints,
                                              std::span<const std::span<std::byte>> outs,
                                              std::span<ChunkSeal> seals) const {
  const std::size_t count = std::min(fingerprints.size(), outs.size());
  Private::Parts parts;
  std::size_t done = 0;
  while (done < count) {
    const std::size_t now = std::min(count - done, kRunChunks);
    std::size_t sound;
    // Why the run ends here is of no interest: whoever wants the next chunk looks it up.
    const Status status =
        p_->read(offset, fingerprints.subspan(done, now), outs.subspan(done, now),
                 seals.empty() ? seals : seals.subspan(done, now), Known::kGuessed, parts, sound);
    for (std::size_t i = done; i < done + sound; ++i) {
      offset += header_size(fingerprints[i]) + outs[i].size();
    }
    done += sound;
    if (!status.is_ok()) break;
  }
  return done;
}

std::optional<ChunkGroup> SegmentFileReader::group_at(std::uint64_t offset,
                                                      const Fingerprint& first,
                                                      std::uint32_t length) const {
  if (p_->was_log) return std::nullopt;
  std::array<std::byte, kListStart + kGroupEntrySize> begin;
  if (!fs::read_at(p_->file, offset, begin).is_ok()) return std::nullopt;
  Decoder in(begin);
  const bool is_list = in.get<std::uint64_t>() == p_->salt && in.get<std::uint32_t>() == 0;
  const std::size_t entries = in.get<std::uint32_t>();
  if (!is_list || entries < kGroupEntrySize || entries > kLongestList) return std::nullopt;
  if (in.get<std::uint32_t>() != length || in.get_fingerprint() != first) return std::nullopt;
  return ChunkGroup{offset + kListSize + entries, entries / kGroupEntrySize};
}

Result<HeaderChecksum> spoil_chunk(const std::string& path, const ChunkLocation& location,
                                   const std::optional<HeaderChecksum>& only) {
  static_assert(std::tuple_size_v<HeaderChecksum> == kChunkHeaderSize - kCheckedSize);
  DEDUP_ASSIGN(const fs::File file, fs::open_to_write(path));
  HeaderChecksum before;
  DEDUP_TRY(fs::read_at(file, location.offset + kCheckedSize, before));
  if (only && before != *only) return before;
  HeaderChecksum checksum = before;
  for (std::byte& byte : checksum) byte = ~byte;
  DEDUP_TRY(fs::write_at(file, location.offset + kCheckedSize, checksum));
  DEDUP_TRY(fs::sync_data(file));
  return before;
}

Status SegmentFileReader::scan(const Visit& visit) const {
  if (p_->was_log) return Status::ok();
  DEDUP_ASSIGN(const fs::Info about, fs::info(p_->file));
  for (std::uint64_t offset = format::kFileHeaderSize; offset < about.size;) {
    std::array<std::byte, kSaltSize + 4> start;
    if (about.size - offset < start.size()) return bad_chunk(p_->file.path(), offset, "cut off");
    DEDUP_TRY(fs::read_at(p_->file, offset, start));
    Decoder in(start);
    if (in.get<std::uint64_t>() != p_->salt) {
      return bad_chunk(p_->file.path(), offset, "neither a header nor a list");
    }
    const bool group = in.get<std::uint32_t>() == 0;
    DEDUP_TRY(group ? p_->scan_group(offset, about.size, visit)
                    : p_->scan_chunk(offset, about.size, visit));
  }
  return Status::ok();
}

}  // namespace dedup::store
