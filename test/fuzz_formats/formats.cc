// The formats of single files: commit record, placeholder, a recipe's block, segment, log, index,
// recipe shard; and the texts of hints.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "base/hasher.h"
#include "hints/hints.h"
#include "store/commit_record.h"
#include "store/files/difference.h"
#include "store/files/index_file.h"
#include "store/files/layout.h"
#include "store/files/log_file.h"
#include "store/files/segment_file.h"
#include "store/files/shard_file.h"
#include "store/format.h"
#include "store/fs.h"
#include "store/index.h"
#include "store/log.h"
#include "store/placeholder.h"
#include "store/segment.h"
#include "store/shard.h"
#include "store/shard_content.h"
#include "test/fuzz_formats/targets.h"
#include "test/hooks/names.h"
#include "test/unit/shard_helpers.h"

namespace dedup::fuzz {
namespace {

using store::format::checksum;

std::uint64_t number_at(const Bytes& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  return value;
}

void put_number_at(Bytes& bytes, std::size_t at, std::uint64_t value) {
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  }
}

Bytes copy(Input input) {
  return {input.begin(), input.end()};
}

Bytes file_bytes(const std::string& path) {
  auto bytes = store::fs::read_file(path);
  require(bytes.is_ok(), "a file that was written can be read");
  return std::move(*bytes);
}

// ---- Commit record ----------------------------------------------------------------------------

void check_record(Input bytes) {
  const auto record = store::CommitRecord::decode(bytes);
  if (!record.is_ok()) return;
  require(record->encode() == copy(bytes), "a record is encoded as it was");
  require(store::descends_from(*record, *record), "a record descends from itself");
}

void run_record(Input input) {
  check_record(input);
  Bytes sealed = copy(input);
  const store::Digest digest = store::format::sha256(sealed);
  const auto tail = std::as_bytes(std::span(digest));
  sealed.insert(sealed.end(), tail.begin(), tail.end());
  check_record(sealed);
}

std::vector<Bytes> record_seeds() {
  store::CommitRecord record;
  record.identity = some_id(0);
  record.number = 2;
  record.attempt = some_id(1);
  record.parent = some_id(2);
  record.path = "/f";
  record.fingerprint = "keyed";
  record.key = some_id(7);
  record.stores = {{some_id(3), "a"}, {some_id(4), "b"}};
  record.shards = {{{}, {0, 1}}, {{}, {1}}};
  record.lineage = {{some_id(5), 1}, {some_id(6), 2}};
  Bytes bytes = record.encode();
  Bytes open(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(sizeof(store::Digest)));
  return {bytes, open};
}

// ---- Placeholder ------------------------------------------------------------------------------

constexpr std::size_t kPlaceholderMark = 1024;

void check_placeholder(Input bytes) {
  const auto placeholder = store::decode_placeholder(bytes, "placeholder");
  if (!placeholder.is_ok()) return;
  require(store::looks_like_placeholder(bytes), "a placeholder looks like one");
  (void)store::describe(*placeholder);
  const Bytes again = store::encode_placeholder(*placeholder);
  const auto twice = store::decode_placeholder(again, "placeholder");
  require(twice.is_ok() && twice->identity == placeholder->identity &&
              twice->attempt == placeholder->attempt && twice->size == placeholder->size,
          "a placeholder is encoded as it was");
}

// The input: the file's first eight bytes, then the mark.
void run_placeholder(Input input) {
  check_placeholder(input);
  static const Bytes frame = store::encode_placeholder({});
  Bytes bytes = frame;
  const std::size_t first = std::min<std::size_t>(8, input.size());
  std::copy_n(input.begin(), first, bytes.begin());
  const Input mark = input.subspan(first);
  const std::size_t room = bytes.size() - kPlaceholderMark - 8;
  std::copy_n(mark.begin(), std::min(mark.size(), room), bytes.begin() + kPlaceholderMark);
  const Input body = Input(bytes).subspan(kPlaceholderMark, room);
  put_number_at(bytes, bytes.size() - 8, checksum(body, number_at(bytes, 0, 8)));
  check_placeholder(bytes);
}

std::vector<Bytes> placeholder_seeds() {
  store::Placeholder p;
  p.identity = some_id(0);
  p.attempt = some_id(1);
  p.session = some_id(2);
  p.number = 3;
  p.path = "/f";
  p.store = "/tmp/s-%n";
  p.nodes = {"a", "b"};
  const Bytes bytes = store::encode_placeholder(p);
  Bytes mark(bytes.begin(), bytes.begin() + 8);
  mark.insert(mark.end(), bytes.begin() + kPlaceholderMark, bytes.begin() + kPlaceholderMark + 256);
  return {bytes, mark};
}

// ---- A recipe's block -------------------------------------------------------------------------

void run_block(Input input) {
  const auto block = store::decode_block(input);
  if (!block.is_ok()) return;
  std::uint64_t end = 0;
  for (const Piece& piece : block->pieces) {
    require(piece.begin >= end && piece.length > 0 && piece.end() <= kBlockSpan,
            "pieces are in order and within the block");
    require(piece.is_zero() || piece.placement < block->placements.size(), "placements are there");
    require(piece.is_zero() || piece.chunk_offset + piece.length <= piece.chunk_length,
            "a piece is within its chunk");
    end = piece.end();
  }
  const Bytes compact = store::encode_block(*block);
  const auto again = store::decode_block(compact);
  require(again.is_ok() && store::encode_block(*again) == compact, "a block is encoded as it was");
}

Block some_block() {
  Block block;
  block.placements = {plan::Placement::copies_on({0, 1}), plan::Placement::copies_on({1})};
  block.pieces = {{0, 100, 0, 100, 0, some_fingerprint(1)},
                  {100, 50, 0, 0, 0, {}},
                  {200, 30, 10, 60, 1, some_fingerprint(2)}};
  return block;
}

std::vector<Bytes> block_seeds() {
  // Also with a kind of placement that is not known.
  Bytes other = store::encode_block(some_block());
  other.insert(other.begin() + 1, {std::byte{0x81}, std::byte{0x80}, std::byte{4}});
  return {store::encode_block(some_block()), store::encode_block({}), other};
}

// ---- Segment ----------------------------------------------------------------------------------

void check_segment(const std::string& path) {
  const auto reader = store::SegmentFileReader::open(path);
  if (!reader.is_ok()) return;
  std::vector<store::ChunkLocation> locations;
  std::vector<Fingerprint> fingerprints;
  (void)(*reader)->scan([&](const Fingerprint& fingerprint, const store::ChunkLocation& location) {
    locations.push_back(location);
    fingerprints.push_back(fingerprint);
  });
  std::vector<Bytes> chunks;
  std::vector<std::span<std::byte>> outs;
  for (const auto& location : locations) chunks.emplace_back(location.length);
  for (Bytes& chunk : chunks) outs.emplace_back(chunk);
  for (std::size_t i = 0; i < locations.size(); ++i) {
    require((*reader)->read(locations[i], fingerprints[i], outs[i]).is_ok(),
            "a chunk that was found can be read");
    const store::ChunkLocation beside{locations[i].segment, locations[i].offset + 1,
                                      locations[i].length};
    (void)(*reader)->read(beside, fingerprints[i], outs[i]);
  }
  if (!outs.empty()) (void)(*reader)->read_run(locations, fingerprints, outs);
}

constexpr std::uint64_t kSalt = 0x0123456789abcdef;

// The chunk whose header is at `at`. Where it ends; 0 if it is not whole.
std::size_t mend_chunk(Bytes& bytes, std::size_t at) {
  if (bytes.size() - at < store::kChunkHeaderSize) return 0;
  const std::size_t length = number_at(bytes, at + 8, 4);
  if (length > bytes.size() - at - store::kChunkHeaderSize) return 0;
  const Input all(bytes);
  const auto data = all.subspan(at + store::kChunkHeaderSize, length);
  put_number_at(bytes, at, kSalt);
  put_number_at(bytes, at + 44, checksum(data, checksum(all.subspan(at, 44))));
  return at + store::kChunkHeaderSize + length;
}

// The group whose list is at `at`, with right names for the chunks without headers. Where it ends;
// 0 if it is not whole.
std::size_t mend_group(Bytes& bytes, std::size_t at) {
  constexpr std::size_t kStart = 16;
  constexpr std::size_t kChecksum = 8;
  if (bytes.size() - at < kStart + kChecksum) return 0;
  const std::size_t size = number_at(bytes, at + 12, 4);
  if (size > bytes.size() - at - kStart - kChecksum) return 0;
  put_number_at(bytes, at, kSalt);
  std::size_t entry = at + kStart;
  const std::size_t end = entry + size;
  std::size_t chunk = end + kChecksum;
  while (chunk != 0 && end - entry >= 4) {
    const std::size_t length = number_at(bytes, entry, 4);
    if (length == 0) {
      chunk = mend_chunk(bytes, chunk);
      entry += 4;
      continue;
    }
    if (end - entry < store::kGroupEntrySize || length > bytes.size() - chunk) break;
    const Fingerprint name = test::single_name(Input(bytes).subspan(chunk, length), entry);
    std::memcpy(bytes.data() + entry + 4, name.bytes.data(), name.bytes.size());
    entry += store::kGroupEntrySize;
    chunk += length;
  }
  put_number_at(bytes, end, checksum(Input(bytes).subspan(at, end - at)));
  return chunk;
}

// With a sound header, and sound checksums for all chunks that are whole.
Bytes mended_segment(Input input) {
  Bytes bytes = store::format::encode_file_header(store::format::kSegment, {some_id(0), 1, kSalt});
  const std::size_t header = bytes.size();
  bytes.insert(bytes.end(), input.begin(), input.end());
  for (std::size_t at = header; at != 0 && bytes.size() - at >= 12;) {
    at = number_at(bytes, at + 8, 4) == 0 ? mend_group(bytes, at) : mend_chunk(bytes, at);
  }
  return bytes;
}

void run_segment(Input input) {
  const std::string path = kDirectory + "/segment";
  put_file(path, input);
  check_segment(path);
  put_file(path, mended_segment(input));
  check_segment(path);
}

std::vector<Bytes> segment_seeds() {
  const std::string path = kDirectory + "/segment";
  require(store::fs::remove_file(path).is_ok(), "a file can be removed");
  auto writer = store::SegmentFileWriter::create(path, some_id(0), 1);
  require(writer.is_ok(), "a segment can be made");
  const Bytes data(20, std::byte{7});
  for (std::uint8_t i = 0; i < 3; ++i) {
    require((*writer)->append(some_fingerprint(i), Input(data).first(10u + i)).is_ok(), "appends");
  }
  std::vector<store::SegmentChunk> group;
  for (std::uint8_t i = 0; i < 3; ++i) {
    const Input part = Input(data).first(13u + i);
    group.push_back({i == 1 ? some_fingerprint(i) : test::single_name(part, i), part});
  }
  std::vector<store::ChunkLocation> locations(group.size());
  require((*writer)->append(group, locations).is_ok(), "appends a group");
  require((*writer)->write_out().is_ok(), "writes out");
  const Bytes bytes = file_bytes(path);
  return {bytes, {bytes.begin() + store::format::kFileHeaderSize, bytes.end()}};
}

// ---- Log --------------------------------------------------------------------------------------

void check_log(const std::string& path, std::uint64_t offset, std::uint16_t length) {
  const auto reader = store::LogFileReader::open(path);
  if (!reader.is_ok()) return;
  Bytes out(length);
  (void)(*reader)->read(offset, out);
}

// The input: where to read, then the file, or what follows its header.
void run_log(Input input) {
  Choices choices(input);
  const auto offset = choices.number<std::uint64_t>();
  const auto length = choices.number<std::uint16_t>();
  const Bytes rest = copy(choices.rest());
  const std::string path = kDirectory + "/log";
  put_file(path, rest);
  check_log(path, offset, length);
  Bytes bytes = store::format::encode_file_header(store::format::kLog, {some_id(0), 1, 0});
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  put_file(path, bytes);
  check_log(path, offset, length);
}

std::vector<Bytes> log_seeds() {
  Encoder where;
  where.put(std::uint64_t{128});
  where.put(std::uint16_t{4});
  Bytes seed = where.take();
  seed.resize(seed.size() + 200, std::byte{0});
  return {seed};
}

// ---- Index ------------------------------------------------------------------------------------

constexpr std::size_t kPage = 4096;

void check_index(const std::string& path) {
  const auto index = store::IndexFileReader::open(path);
  if (!index.is_ok()) return;
  (void)(*index)->segments();
  (void)(*index)->older().size();
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>((*index)->size(), 300); ++i) {
    const auto entry = (*index)->at(i);
    if (!entry.is_ok()) continue;
    (void)(*index)->find(entry->fingerprint);
    (void)(*index)->placement(entry->placement).redundancy();
  }
  (void)(*index)->at((*index)->size());
  (void)(*index)->find(some_fingerprint(3));
}

// The input is what the file's header page has of the ids and the numbers of entries and segments,
// then those of placements, their bytes, and other runs, then page after page; what is cut off is
// zeros, as many as the header says. With the highest bit of the number of entries: version 1, with
// the next one: version 2.
Bytes mended_index(Input input) {
  constexpr std::size_t kCountsAt = 48;      // entries, segments
  constexpr std::size_t kChecksumAt = 64;    // of the tables
  constexpr std::size_t kPlacementsAt = 80;  // placements, their bytes, other runs
  constexpr std::size_t kFieldsAt = 16;
  constexpr std::size_t kFields = kChecksumAt - kFieldsAt + 24;
  Bytes fields(input.begin(),
               input.begin() + static_cast<std::ptrdiff_t>(std::min(kFields, input.size())));
  fields.resize(kFields);
  const std::uint64_t version_bits = number_at(fields, kCountsAt - kFieldsAt, 8) >> 62;
  const bool is_placed = version_bits < 2;
  const bool has_runs = version_bits == 0;
  store::format::Kind kind = store::format::kIndex;
  kind.version = has_runs ? 3 : is_placed ? 2 : 1;
  Encoder start;
  store::format::put_start(start, kind);
  start.put(static_cast<std::uint32_t>(kPage));
  Bytes bytes = start.take();
  bytes.resize(kPage);
  std::copy_n(fields.begin(), kChecksumAt - kFieldsAt, bytes.begin() + kFieldsAt);
  const std::size_t of_version = has_runs ? 24 : is_placed ? 16 : 0;
  std::copy_n(fields.end() - 24, of_version, bytes.begin() + kPlacementsAt);
  const std::uint64_t entries = number_at(bytes, kCountsAt, 8) % 200;
  const std::uint64_t segments = number_at(bytes, kCountsAt + 8, 8) % 8;
  const std::uint64_t placements = number_at(bytes, kPlacementsAt, 8) % 8;
  const std::uint64_t placements_size = number_at(bytes, kPlacementsAt + 8, 8) % 64;
  const std::uint64_t runs = number_at(bytes, kPlacementsAt + 16, 8) % 16;
  put_number_at(bytes, kCountsAt, entries);
  put_number_at(bytes, kCountsAt + 8, segments);
  put_number_at(bytes, kPlacementsAt, placements);
  put_number_at(bytes, kPlacementsAt + 8, placements_size);
  if (has_runs) put_number_at(bytes, kPlacementsAt + 16, runs);
  const std::uint64_t entries_a_page = is_placed ? 73 : 78;
  const std::size_t pages = (entries + entries_a_page - 1) / entries_a_page;
  const Input rest = input.subspan(std::min(kFields, input.size()));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  bytes.resize(kPage * (1 + pages) + 32 * pages + (has_runs ? 24 : 16) * segments +
               placements_size + (has_runs ? 24 * runs : 0));
  const std::uint64_t seed = number_at(bytes, 32, 8);  // of the attempt
  for (std::size_t page = 0; page < pages; ++page) {
    const std::size_t at = kPage * (1 + page);
    put_number_at(bytes, at + kPage - 8,
                  checksum(Input(bytes).subspan(at, kPage - 8), seed + page));
  }
  put_number_at(bytes, kChecksumAt, checksum(Input(bytes).subspan(kPage * (1 + pages))));
  put_number_at(bytes, kPage - 8, checksum(Input(bytes).first(kPage - 8)));
  return bytes;
}

void run_index(Input input) {
  const std::string path = kDirectory + "/index";
  put_file(path, input);
  check_index(path);
  put_file(path, mended_index(input));
  check_index(path);
}

std::vector<Bytes> index_seeds() {
  const std::string path = kDirectory + "/index";
  std::vector<Bytes> seeds;
  for (const int entries : {0, 3, 100}) {
    require(store::fs::remove_file(path).is_ok(), "a file can be removed");
    std::vector<store::OlderRun> older;
    if (entries == 3) older = {{some_id(2), 5}, {some_id(3), 6}};
    auto writer = store::IndexFileWriter::create(path, some_id(0), some_id(1), older, 7);
    require(writer.is_ok(), "an index can be made");
    for (int i = 0; i < entries; ++i) {
      const auto number = static_cast<std::uint8_t>(i);
      const std::uint32_t placement =
          (*writer)->number(plan::Placement::copies_on({0, static_cast<NodeIndex>(number % 3)}));
      const store::ChunkLocation location{number % 3u, 100u * number, 50};
      require((*writer)->add({some_fingerprint(number), location, placement}).is_ok(),
              "an entry can be added");
    }
    require((*writer)->finish(false).is_ok(), "an index can be finished");
    const Bytes bytes = file_bytes(path);
    Bytes short_form(bytes.begin() + 16, bytes.begin() + 64);
    short_form.insert(short_form.end(), bytes.begin() + 80, bytes.begin() + 104);
    short_form.insert(short_form.end(), bytes.begin() + kPage, bytes.end());
    seeds.push_back(bytes);
    seeds.push_back(short_form);
  }
  return seeds;
}

// ---- Recipe shard -----------------------------------------------------------------------------

constexpr std::size_t kShardEntry = 32;
constexpr std::size_t kShardDonor = 24;
constexpr std::size_t kShardFooter = 48;  // of version 2 and later
constexpr std::size_t kShardDifference = 32;

// Also a base: whatever it says, what is carried over from it or differs from it can be read.
void check_shard(const std::string& path, const store::Digest& digest) {
  auto opened = store::ShardFileReader::open(path, some_id(1), 2, digest);
  if (!opened.is_ok()) return;
  const std::shared_ptr<const store::ShardFileReader> shard = std::move(*opened);
  for (const std::uint64_t number : shard->block_numbers()) {
    const auto bytes = shard->read(number);
    if (bytes.is_ok()) (void)store::decode_block(*bytes);
  }
  (void)shard->read(5);

  const std::string next = kDirectory + "/next";
  for (const store::ShardDonor& donor : shard->table().donors) {
    (void)store::fs::remove_file(store::donor_path(next, donor.attempt));
  }
  (void)store::fs::remove_file(store::donor_path(next, some_id(1)));
  const auto writer = store::ShardFileWriter::create(next, some_id(0), some_id(4), 2, shard);
  require(writer.is_ok(), "a shard can be begun");
  store::ShardDigest carried(some_id(0), some_id(4), 2);
  std::map<std::uint64_t, Bytes> blocks;
  for (const std::uint64_t number : shard->block_numbers()) {
    if (auto changed = shard->read(number); number % 2 != 0 && changed.is_ok()) {
      changed->push_back(std::byte{1});
      const auto block = store::with_checksum(number, *changed);
      require((*writer)->add(block).is_ok(), "nothing fails");
      carried.add(store::summary_of(block));
      blocks[number] = std::move(*changed);
      continue;
    }
    const store::BlockSummary block = shard->table().find(number)->block;
    const auto is_carried = (*writer)->carry(block);
    require(is_carried.is_ok(), "nothing fails");
    if (!*is_carried) continue;
    carried.add(block);
    const auto read = shard->read_encoded(number);
    require(read.is_ok(), "what was carried over can be read");
    blocks[number] = read->bytes;
  }
  require((*writer)->finish().is_ok(), "a shard can be finished");
  const auto reader = store::ShardFileReader::open(next, some_id(4), 2, carried.digest());
  require(reader.is_ok(), "a shard that was written can be read");
  for (const auto& [number, bytes] : blocks) {
    const auto read = (*reader)->read(number);
    require(read.is_ok() && *read == bytes, "what was written is as it was");
  }
}

// The input: the version, how many blocks, donors and differences the tables have, then what stands
// in blocks, donors and tables.
Bytes mended_shard(Input input, store::Digest& digest) {
  Choices choices(input);
  const std::uint32_t version = 1 + choices.number<std::uint8_t>() % 3;
  const std::size_t wanted = choices.number<std::uint8_t>();
  const std::size_t wanted_donors = version == 1 ? 0 : choices.number<std::uint8_t>();
  const std::size_t wanted_differences = version < 3 ? 0 : choices.number<std::uint8_t>();
  Bytes bytes = store::encode_shard_header(some_id(0), some_id(1), 2, version);
  const Bytes header = bytes;
  const Bytes rest = copy(choices.rest());
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  const std::size_t entries = std::min(wanted, rest.size() / kShardEntry);
  const std::size_t differences =
      std::min(wanted_differences, (rest.size() - entries * kShardEntry) / kShardDifference);
  const std::size_t bases = bytes.size() - differences * kShardDifference;
  const std::size_t table = bases - entries * kShardEntry;
  const std::size_t donors = std::min(wanted_donors, (table - header.size()) / kShardDonor);
  const std::size_t end = table - donors * kShardDonor;
  Encoder named;
  named.put_raw(header.data(), header.size());
  const auto mend_checksum = [&](std::size_t at, std::uint64_t offset, std::uint64_t length,
                                 std::uint64_t number) {
    if (offset > end || length > end - offset) return;
    put_number_at(bytes, at, checksum(Input(bytes).subspan(offset, length), number));
  };
  std::size_t base = bases;
  for (std::size_t at = table; at < bases; at += kShardEntry) {
    const std::uint64_t block = number_at(bytes, at, 8);
    const std::uint64_t donor = number_at(bytes, at + 20, 4);
    if (donor == 0)
      mend_checksum(at + 24, number_at(bytes, at + 8, 8), number_at(bytes, at + 16, 4), block);
    if (version == 3 && donor >> 31 != 0 && base < bytes.size()) {
      mend_checksum(base + 24, number_at(bytes, base + 8, 8), number_at(bytes, base + 4, 4), block);
      base += kShardDifference;
    }
    if (version == 1) {
      named.put_raw(bytes.data() + at, kShardEntry);
    } else {
      named.put_raw(bytes.data() + at, 8);
      named.put_raw(bytes.data() + at + 16, 4);
      named.put_raw(bytes.data() + at + 24, 8);
    }
  }
  digest = store::format::sha256(named.bytes());
  Encoder footer;
  footer.put_raw("DEDUPEND", 8);
  footer.put(static_cast<std::uint64_t>(end));
  footer.put(static_cast<std::uint64_t>(entries));
  if (version == 1) {
    footer.put_raw(digest.data(), digest.size());
  } else {
    footer.put(static_cast<std::uint32_t>(donors));
    footer.put(static_cast<std::uint32_t>(differences));
    footer.put(checksum(Input(bytes).subspan(end)));
  }
  store::format::put_checksum(footer);
  bytes.insert(bytes.end(), footer.bytes().begin(), footer.bytes().end());
  return bytes;
}

// Of attempt 3, with two blocks.
const std::map<std::uint64_t, Bytes>& donor_blocks() {
  static const std::map<std::uint64_t, Bytes> blocks = {{2, store::encode_block(some_block())},
                                                        {5, store::encode_block({})}};
  return blocks;
}

void put_donor(const std::string& path) {
  const auto writer = store::ShardFileWriter::create(path, some_id(0), some_id(3), 2, nullptr);
  require(writer.is_ok(), "a shard can be begun");
  for (const auto& [number, bytes] : donor_blocks()) {
    require((*writer)->add(store::with_checksum(number, bytes)).is_ok(), "a block can be added");
  }
  require((*writer)->finish().is_ok(), "a shard can be finished");
}

void run_shard(Input input) {
  const std::string path = kDirectory + "/shard";
  store::Digest digest{};
  put_donor(store::donor_path(path, some_id(3)));
  put_file(path, input);
  check_shard(path, digest);
  put_file(path, mended_shard(input, digest));
  check_shard(path, digest);
}

// As mended_shard() takes it.
Bytes inner_shard(const Bytes& whole, std::uint8_t version, std::uint8_t entries,
                  std::uint8_t donors, std::uint8_t differences = 0) {
  Bytes inner{std::byte(version - 1), std::byte(entries)};
  if (version > 1) inner.push_back(std::byte(donors));
  if (version > 2) inner.push_back(std::byte(differences));
  const auto footer = static_cast<std::ptrdiff_t>(version == 1 ? 64 : kShardFooter);
  inner.insert(inner.end(), whole.begin() + store::kShardHeaderSize, whole.end() - footer);
  return inner;
}

std::vector<Bytes> shard_seeds() {
  const std::string path = kDirectory + "/seed";
  put_donor(path);
  const Bytes whole = file_bytes(path);
  const Bytes old = test::shard_of_version1(some_id(0), some_id(1), 2, donor_blocks()).first;
  // One block stays in attempt 3's shard, another is its own.
  store::ShardTable table;
  table.donors = {{some_id(3), donor_blocks().at(2).size() + donor_blocks().at(5).size()}};
  Bytes carrying = store::encode_shard_header(some_id(0), some_id(1), 2);
  const auto whole_block = [](std::uint64_t number, const Bytes& bytes, std::uint32_t donor) {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    return store::ShardTableEntry{store::summary_of(store::with_checksum(number, bytes)),
                                  {store::kShardHeaderSize, length, donor},
                                  std::nullopt};
  };
  table.entries = {whole_block(2, donor_blocks().at(2), 1),
                   whole_block(8, donor_blocks().at(5), 0)};
  const Bytes& own = donor_blocks().at(5);
  carrying.insert(carrying.end(), own.begin(), own.end());
  table.blocks_end = carrying.size();
  const Bytes end = store::encode_shard_end(table);
  carrying.insert(carrying.end(), end.begin(), end.end());
  // And a third one that is a difference to a block of which it has the last half.
  Bytes differing = store::encode_shard_header(some_id(0), some_id(1), 2);
  const Bytes& half = donor_blocks().at(2);
  const Bytes block(half.begin() + static_cast<std::ptrdiff_t>(half.size() / 2), half.end());
  const auto difference = store::DifferenceWriter().between(half, block, 1000);
  require(difference.has_value(), "a difference can be made");
  differing.insert(differing.end(), difference->begin(), difference->end());
  table.entries = {
      {store::summary_of(store::with_checksum(2, block)),
       {store::kShardHeaderSize, static_cast<std::uint32_t>(difference->size()), 0},
       store::ShardBasis{{store::kShardHeaderSize, static_cast<std::uint32_t>(half.size()), 1},
                         store::with_checksum(2, half).checksum}}};
  table.blocks_end = differing.size();
  const Bytes differing_end = store::encode_shard_end(table);
  differing.insert(differing.end(), differing_end.begin(), differing_end.end());
  return {whole,
          old,
          carrying,
          differing,
          inner_shard(whole, 2, 2, 0),
          inner_shard(old, 1, 2, 0),
          inner_shard(carrying, 2, 2, 1),
          inner_shard(differing, 3, 1, 1, 1)};
}

// ---- Hints ------------------------------------------------------------------------------------

// Lines "name=value"; those after an empty line are the environment's.
void run_hints(Input input) {
  hints::Source sources[2];
  std::size_t which = 0;
  std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) which = 1;
    const auto equals = std::min(line.find('='), line.size());
    sources[which].emplace_back(line.substr(0, equals),
                                line.substr(std::min(equals + 1, line.size())));
  }
  hints::Warnings warnings;
  const auto resolved = hints::resolve(sources[0], {}, sources[1], warnings);
  if (!resolved.is_ok()) return;
  const auto again = hints::resolve(hints::describe(*resolved), {}, {}, warnings);
  require(again.is_ok() && *again == *resolved, "described hints are the same hints");
  require(hints::first_difference(hints::agreement_text(*resolved), hints::agreement_text(*again))
              .empty(),
          "equal hints agree");
  const std::string store = hints::expand_store(resolved->store, resolved->report).directory();
  require(!store.empty() || resolved->store.empty(), "a store has a name");
  (void)hints::update(*resolved, sources[1], warnings);
}

std::vector<Bytes> hint_seeds() {
  std::string text;
  for (const hints::Entry& entry : hints::table()) {
    text += std::string(entry.name) + "=" + std::string(entry.default_text) + "\n";
  }
  std::string described;
  for (const auto& [name, value] : hints::describe({})) described += name + "=" + value + "\n";
  std::vector<Bytes> seeds;
  for (const std::string& t :
       {text, described, "dedup_buffer=1G\n\ndedup_store=/s/%n%%\n" + text}) {
    seeds.push_back(copy(std::as_bytes(std::span(t))));
  }
  return seeds;
}

}  // namespace

std::span<const Target> format_targets() {
  static const Target targets[] = {
      {"record", run_record, record_seeds}, {"placeholder", run_placeholder, placeholder_seeds},
      {"block", run_block, block_seeds},    {"segment", run_segment, segment_seeds},
      {"log", run_log, log_seeds},          {"index", run_index, index_seeds},
      {"shard", run_shard, shard_seeds},    {"hints", run_hints, hint_seeds},
  };
  return targets;
}

}  // namespace dedup::fuzz
