#include "store/files/index_file.h"

#include <algorithm>
#include <map>

#include "base/codec.h"
#include "base/numbered.h"
#include "store/format.h"
#include "store/fs.h"
#include "store/index_runs.h"

namespace dedup::store {
namespace {

// A page: entries, zeros up to the checksum, the checksum.
constexpr std::size_t kPageSize = 4096;
constexpr std::size_t kPageBody = kPageSize - sizeof(std::uint64_t);
// Version 1 had no placements.
constexpr std::size_t kOldEntrySize = 32 + 8 + 8 + 4;
constexpr std::size_t kEntrySize = kOldEntrySize + 4;
constexpr std::size_t kPageEntries = kPageBody / kEntrySize;
constexpr std::size_t kFenceSize = 32;
constexpr std::size_t kUseSize = 8 + 8 + 8;
constexpr std::size_t kOldUseSize = 8 + 8;  // before version 3
constexpr std::size_t kOlderSize = 16 + 8;
// Pages kept in memory by a reader: 4 MiB.
constexpr std::size_t kCachedPages = 1024;
constexpr std::size_t kWrittenAtOnce = std::size_t{1} << 20;

// Makes a page of another place or another attempt's index fail its checksum.
std::uint64_t page_seed(const Id128& attempt, std::uint64_t page) {
  return Decoder(std::as_bytes(std::span(attempt.bytes))).get<std::uint64_t>() + page;
}

void seal_page(Encoder& page, std::uint64_t seed) {
  page.bytes().resize(kPageBody);
  page.put(format::checksum(page.bytes(), seed));
}

bool page_holds(std::span<const std::byte> page, std::uint64_t seed) {
  Decoder in(page.subspan(kPageBody));
  return in.get<std::uint64_t>() == format::checksum(page.first(kPageBody), seed);
}

void put_entry(Encoder& out, const IndexEntry& entry) {
  out.put(entry.fingerprint);
  out.put(entry.location.segment);
  out.put(entry.location.offset);
  out.put(entry.location.length);
  out.put(entry.placement);
}

IndexEntry get_entry(Decoder& in, bool is_placed) {
  IndexEntry entry;
  entry.fingerprint = in.get_fingerprint();
  entry.location.segment = in.get<std::uint64_t>();
  entry.location.offset = in.get<std::uint64_t>();
  entry.location.length = in.get<std::uint32_t>();
  if (is_placed) entry.placement = in.get<std::uint32_t>();
  return entry;
}

// Of `count` sorted fingerprints the number of those that are before a place: `before(i)` says
// whether the i-th is. Begins at `guess`, and finds a good one in a few steps.
template <typename Before>
std::size_t count_before(std::size_t count, std::size_t guess, const Before& before) {
  std::size_t low = 0;
  std::size_t high = count;
  if (guess < count && before(guess)) {
    low = guess + 1;
    std::size_t step = 1;
    for (; low + step <= count && before(low + step - 1); step *= 2) low += step;
    high = std::min(count, low + step - 1);
  } else {
    high = std::min(count, guess);
    std::size_t step = 1;
    for (; step <= high && !before(high - step); step *= 2) high -= step;
    low = step <= high ? high - step + 1 : 0;
  }
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (before(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Where `value` stands among `count` numbers spread evenly from `begin` to `end`.
std::size_t even_guess(std::uint64_t value, std::uint64_t begin, std::uint64_t end,
                       std::size_t count) {
  if (value <= begin || end <= begin) return 0;
  const double part =
      static_cast<double>(std::min(value, end) - begin) / static_cast<double>(end - begin);
  return std::min(count, static_cast<std::size_t>(part * static_cast<double>(count)));
}

}  // namespace

// Pages go out through a buffer; the header, which has the tables' checksum, comes last.
struct IndexFileWriter::Private {
  fs::File file;
  Id128 identity;
  Id128 attempt;
  std::uint64_t entries = 0;
  Fingerprint last;
  Encoder page;
  std::uint64_t pages = 0;
  // Each page's first fingerprint, then the segments, the placements, the other runs.
  Encoder tables;
  std::map<std::uint64_t, IndexReader::SegmentUse> uses;
  Numbered<plan::Placement> placements;
  std::uint64_t placements_size = 0;  // bytes
  std::vector<OlderRun> older;
  std::uint64_t dead = 0;
  Bytes buffer;
  std::uint64_t written = kPageSize;

  Status write(const Bytes& bytes) {
    buffer.insert(buffer.end(), bytes.begin(), bytes.end());
    return buffer.size() < kWrittenAtOnce ? Status::ok() : write_out();
  }

  Status write_out() {
    DEDUP_TRY(fs::write_at(file, written, buffer));
    written += buffer.size();
    buffer.clear();
    return Status::ok();
  }

  Status end_page() {
    seal_page(page, page_seed(attempt, pages++));
    DEDUP_TRY(write(page.bytes()));
    page = {};
    return Status::ok();
  }

  Bytes header() const {
    Encoder out;
    format::put_start(out, format::kIndex);
    out.put(static_cast<std::uint32_t>(kPageSize));
    out.put(identity);
    out.put(attempt);
    out.put(entries);
    out.put(static_cast<std::uint64_t>(uses.size()));
    out.put(format::checksum(tables.bytes()));
    out.put(std::uint64_t{0});
    out.put(static_cast<std::uint64_t>(placements.size()));
    out.put(placements_size);
    out.put(static_cast<std::uint64_t>(older.size()));
    out.put(dead);
    seal_page(out, 0);
    return out.take();
  }
};

IndexFileWriter::IndexFileWriter(std::unique_ptr<Private> p) : p_(std::move(p)) {}
IndexFileWriter::~IndexFileWriter() = default;

Result<std::unique_ptr<IndexFileWriter>> IndexFileWriter::create(const std::string& path,
                                                                 const Id128& identity,
                                                                 const Id128& attempt,
                                                                 std::vector<OlderRun> older,
                                                                 std::uint64_t dead) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(p->file, fs::create_new(path));
  p->identity = identity;
  p->attempt = attempt;
  p->older = std::move(older);
  p->dead = dead;
  return std::unique_ptr<IndexFileWriter>(new IndexFileWriter(std::move(p)));
}

std::uint32_t IndexFileWriter::number(const plan::Placement& placement) {
  return p_->placements.number(placement) + 1;
}

Status IndexFileWriter::add(const IndexEntry& entry) {
  if (p_->entries > 0 && !(p_->last < entry.fingerprint)) {
    return {Code::kInternal, p_->file.path() + ": chunk " + entry.fingerprint.hex() +
                                 " is there twice, or not in its place"};
  }
  if (entry.placement > p_->placements.size()) {
    return {Code::kInternal, p_->file.path() + ": chunk " + entry.fingerprint.hex() +
                                 " is placed in a way that the index was not told"};
  }
  if (p_->entries % kPageEntries == 0) {
    if (p_->entries > 0) DEDUP_TRY(p_->end_page());
    p_->tables.put(entry.fingerprint);
  }
  put_entry(p_->page, entry);
  const std::uint64_t segment = entry.location.segment;
  auto& use = p_->uses.try_emplace(segment, IndexReader::SegmentUse{segment, 0}).first->second;
  use.live_bytes += stored_size(entry.fingerprint, entry.location.length);
  use.end = std::max(use.end, chunk_end(entry.fingerprint, entry.location));
  p_->last = entry.fingerprint;
  ++p_->entries;
  return Status::ok();
}

Status IndexFileWriter::finish(bool flush) {
  if (p_->entries > 0) DEDUP_TRY(p_->end_page());
  for (const auto& [segment, use] : p_->uses) {
    p_->tables.put(segment);
    p_->tables.put(use.live_bytes);
    p_->tables.put(use.end);
  }
  const std::size_t before = p_->tables.size();
  for (std::uint32_t i = 0; i < p_->placements.size(); ++i) {
    p_->placements[i].encode(p_->tables);
  }
  p_->placements_size = p_->tables.size() - before;
  for (const OlderRun& run : p_->older) {
    p_->tables.put(run.attempt);
    p_->tables.put(run.checksum);
  }
  DEDUP_TRY(p_->write(p_->tables.bytes()));
  DEDUP_TRY(p_->write_out());
  DEDUP_TRY(fs::write_at(p_->file, 0, p_->header()));
  return flush ? fs::sync_data(p_->file) : Status::ok();
}

struct IndexFileReader::Private {
  fs::File file;
  Id128 attempt;
  std::uint64_t entries = 0;
  std::uint64_t pages = 0;
  bool is_placed = false;  // version 2 or newer
  std::size_t entry_size = kEntrySize;
  std::size_t page_entries = kPageEntries;
  std::vector<Fingerprint> fences;  // each page's first fingerprint
  std::vector<SegmentUse> segments;
  std::vector<plan::Placement> placements;
  std::vector<OlderRun> older;
  std::uint64_t checksum = 0;
  std::uint64_t dead = 0;

  struct CachedPage {
    std::uint64_t number = ~std::uint64_t{0};
    Bytes bytes;
  };
  std::vector<CachedPage> cache;  // direct-mapped

  std::size_t entries_of(std::uint64_t page) const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(page_entries, entries - page * page_entries));
  }

  // The place of the first entry that is not before `fingerprint`.
  Result<std::uint64_t> lower_bound(const Fingerprint& fingerprint) {
    // Fingerprints are spread evenly.
    const std::uint64_t leading = fingerprint.leading();
    const std::size_t after =
        count_before(fences.size(), even_guess(leading, 0, ~std::uint64_t{0}, fences.size()),
                     [&](std::size_t i) { return !(fingerprint < fences[i]); });
    if (after == 0) return std::uint64_t{0};
    const std::size_t page = after - 1;
    DEDUP_ASSIGN(const auto bytes, load(page));
    const std::size_t count = entries_of(page);
    const std::uint64_t end = after < fences.size() ? fences[after].leading() : ~std::uint64_t{0};
    const std::size_t low = count_before(
        count, even_guess(leading, fences[page].leading(), end, count), [&](std::size_t i) {
          Fingerprint there;
          std::memcpy(there.bytes.data(), bytes.data() + i * entry_size, there.bytes.size());
          return there < fingerprint;
        });
    return page * page_entries + low;
  }

  // The fingerprint there. Of a place that is valid.
  Result<Fingerprint> fingerprint_at(std::uint64_t i) {
    DEDUP_ASSIGN(const auto bytes, load(i / page_entries));
    Decoder in(bytes.subspan(i % page_entries * entry_size));
    return in.get_fingerprint();
  }

  Status not_found(const Fingerprint& fingerprint) const {
    return {Code::kNotFound, file.path() + ": no chunk " + fingerprint.hex()};
  }

  // The page's checked bytes, valid until the next call.
  Result<std::span<const std::byte>> load(std::uint64_t page) {
    if (cache.empty()) cache.resize(std::min<std::uint64_t>(pages, kCachedPages));
    CachedPage& slot = cache[page % cache.size()];
    if (slot.number != page) {
      slot.number = ~std::uint64_t{0};
      slot.bytes.resize(kPageSize);
      DEDUP_TRY(fs::read_at(file, (page + 1) * kPageSize, slot.bytes));
      if (!page_holds(slot.bytes, page_seed(attempt, page))) {
        return format::corrupt(file.path(), "page " + std::to_string(page) + " is damaged");
      }
      slot.number = page;
    }
    return std::span<const std::byte>(slot.bytes);
  }

  Status read_header() {
    Bytes header(kPageSize);
    DEDUP_TRY(fs::read_at(file, 0, header));
    Decoder in(header);
    DEDUP_TRY(format::check_start(in, format::kIndex, file.path()));
    const std::uint32_t version = format::version_of(header);
    is_placed = version > 1;
    entry_size = is_placed ? kEntrySize : kOldEntrySize;
    page_entries = kPageBody / entry_size;
    const auto page_size = in.get<std::uint32_t>();
    in.get_id();
    attempt = in.get_id();
    entries = in.get<std::uint64_t>();
    const auto uses = in.get<std::uint64_t>();
    checksum = in.get<std::uint64_t>();
    in.get<std::uint64_t>();
    const auto placed = is_placed ? in.get<std::uint64_t>() : 0;
    const auto placed_size = is_placed ? in.get<std::uint64_t>() : 0;
    const auto runs = version > 2 ? in.get<std::uint64_t>() : 0;
    dead = version > 2 ? in.get<std::uint64_t>() : 0;
    const std::size_t use_size = version > 2 ? kUseSize : kOldUseSize;
    DEDUP_ASSIGN(const fs::Info about, fs::info(file));
    // An entry takes more bytes than its share of the tables: with these bounds nothing overflows.
    const bool plausible = page_holds(header, 0) && page_size == kPageSize &&
                           entries <= about.size / entry_size && uses <= entries &&
                           placed <= placed_size && placed_size <= about.size &&
                           runs < IndexRuns::kMost;
    if (!plausible) return format::corrupt(file.path(), "index with a damaged header");
    pages = (entries + page_entries - 1) / page_entries;
    const std::uint64_t tables_at = (pages + 1) * kPageSize;
    const std::uint64_t tables_size =
        pages * kFenceSize + uses * use_size + placed_size + runs * kOlderSize;
    if (about.size != tables_at + tables_size) {
      return format::corrupt(file.path(), "cut off or too long");
    }
    Bytes tables(tables_size);
    DEDUP_TRY(fs::read_at(file, tables_at, tables));
    if (format::checksum(tables) != checksum) {
      return format::corrupt(file.path(), "damaged tables");
    }
    Decoder table(tables);
    fences.reserve(pages);
    for (std::uint64_t i = 0; i < pages; ++i) fences.push_back(table.get_fingerprint());
    segments.reserve(uses);
    for (std::uint64_t i = 0; i < uses; ++i) {
      SegmentUse& use = segments.emplace_back();
      use.segment = table.get<std::uint64_t>();
      use.live_bytes = table.get<std::uint64_t>();
      if (version > 2) use.end = table.get<std::uint64_t>();
    }
    // The first is of those that are not placed.
    placements.emplace_back();
    for (std::uint64_t i = 0; i < placed && table.ok(); ++i) {
      placements.push_back(plan::Placement::decode(table));
    }
    for (std::uint64_t i = 0; i < runs && table.ok(); ++i) {
      const Id128 run = table.get_id();
      older.push_back({run, table.get<std::uint64_t>()});
    }
    if (!table.at_end()) return format::corrupt(file.path(), "tables that cannot be");
    return Status::ok();
  }
};

IndexFileReader::IndexFileReader(std::unique_ptr<Private> p) : p_(std::move(p)) {}
IndexFileReader::~IndexFileReader() = default;

Result<std::unique_ptr<IndexFileReader>> IndexFileReader::open(const std::string& path) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(p->file, fs::open_read(path));
  DEDUP_TRY(p->read_header());
  return std::unique_ptr<IndexFileReader>(new IndexFileReader(std::move(p)));
}

std::uint64_t IndexFileReader::size() const {
  return p_->entries;
}
const Id128& IndexFileReader::attempt() const {
  return p_->attempt;
}
const std::vector<IndexFileReader::SegmentUse>& IndexFileReader::segments() const {
  return p_->segments;
}
std::vector<IndexReader::Run> IndexFileReader::runs() const {
  return {{p_->attempt, p_->entries}};
}
std::uint64_t IndexFileReader::dead_bytes() const {
  return p_->dead;
}
const std::vector<OlderRun>& IndexFileReader::older() const {
  return p_->older;
}
std::uint64_t IndexFileReader::checksum() const {
  return p_->checksum;
}

Result<IndexEntry> IndexFileReader::find(const Fingerprint& fingerprint) const {
  DEDUP_ASSIGN(const std::uint64_t i, p_->lower_bound(fingerprint));
  if (i < p_->entries) {
    DEDUP_ASSIGN(const IndexEntry entry, at(i));
    if (entry.fingerprint == fingerprint) return entry;
  }
  return p_->not_found(fingerprint);
}

Result<std::uint64_t> IndexFileReader::position(const Fingerprint& fingerprint) const {
  DEDUP_ASSIGN(const std::uint64_t i, p_->lower_bound(fingerprint));
  if (i < p_->entries) {
    DEDUP_ASSIGN(const Fingerprint found, p_->fingerprint_at(i));
    if (found == fingerprint) return i;
  }
  return p_->not_found(fingerprint);
}

Result<IndexEntry> IndexFileReader::find_content(const Fingerprint& content) const {
  if (kind_of(content) != NameKind::kKeyed) return find(content);
  // Names of one content stand together: they differ at their ends.
  DEDUP_ASSIGN(const std::uint64_t i, p_->lower_bound(name_of_single(content, 0)));
  if (i < p_->entries) {
    DEDUP_ASSIGN(const IndexEntry entry, at(i));
    if (content_of(entry.fingerprint) == content) return entry;
  }
  return p_->not_found(content);
}

const plan::Placement& IndexFileReader::placement(std::uint32_t number) const {
  return p_->placements[number < p_->placements.size() ? number : IndexEntry::kNotPlaced];
}

Result<IndexEntry> IndexFileReader::at(std::uint64_t i) const {
  if (i >= p_->entries) return Status(Code::kArgument, "an index has no such entry");
  DEDUP_ASSIGN(const auto bytes, p_->load(i / p_->page_entries));
  Decoder in(bytes.subspan(i % p_->page_entries * p_->entry_size));
  return get_entry(in, p_->is_placed);
}

}  // namespace dedup::store
