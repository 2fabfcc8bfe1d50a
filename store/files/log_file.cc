#include "store/files/log_file.h"

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "store/format.h"
#include "store/fs.h"

namespace dedup::store {
namespace {

// After the header: the first offset whose data is still there. It stands at kDataAt.
constexpr std::uint64_t kFirstAt = format::kFileHeaderSize;
constexpr std::uint64_t kLeasesAt = 4096;
constexpr std::uint64_t kDataAt = kLeasesAt + LeaseTable::kBytes;

// Addresses, not memory: what is behind the file's end is not looked at.
constexpr std::uint64_t kMappedAtOnce = std::uint64_t{64} << 20;
// What is on its way to the disk at once, at least.
constexpr std::uint64_t kWriteBackBytes = std::uint64_t{4} << 20;

// Also of one that is a segment by now; which it may become while this looks at it.
Status check_header(const fs::File& file) {
  std::array<std::byte, format::kFileHeaderSize> header;
  DEDUP_TRY(fs::read_at(file, 0, header));
  Status status = format::check_file_header(header, format::kLog, file.path()).status();
  if (status.is_ok()) return status;
  DEDUP_TRY(fs::read_at(file, 0, header));
  const auto segment = format::check_file_header(header, format::kLogSegment, file.path());
  const bool was_log = segment.is_ok() && format::version_of(header) == format::kLogSegment.version;
  return was_log ? Status::ok() : status;
}

Result<std::unique_ptr<LeaseTable>> map_leases(const fs::File& file) {
  DEDUP_ASSIGN(fs::Mapping mapping, fs::Mapping::create(file, kLeasesAt, LeaseTable::kBytes));
  auto memory = std::make_shared<fs::Mapping>(std::move(mapping));
  const std::span<std::byte> bytes = memory->bytes();
  return std::make_unique<LeaseTable>(std::move(memory), bytes);
}

}  // namespace

struct LogFileWriter::Private {
  std::shared_ptr<const fs::File> file;  // a worker may have it for longer
  Id128 identity;
  std::uint64_t number = 0;
  std::uint64_t first = kDataAt;
  std::uint64_t end = kDataAt;
  bool has_space = false;  // for data
  // Of the file from its start, kept as long as the space: also what is looked at often is mapped
  // once.
  std::shared_ptr<const fs::Mapping> mapping;

  std::string segment;  // the path of the segment that it is, too; empty: none
  // What of the file chunks stand in, ascending: from, and up to.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> chunks;
  bool has_ended = false;

  void keep(std::uint64_t from, std::uint64_t bytes) {
    if (!chunks.empty() && chunks.back().second == from) {
      chunks.back().second += bytes;
    } else {
      chunks.emplace_back(from, from + bytes);
    }
  }

  // Frees all space but that of the chunks, that of the leases too. What the file system cannot
  // free stays taken until the segment goes.
  Status free_the_rest() {
    std::ranges::sort(chunks);
    std::uint64_t at = kLeasesAt;
    for (const auto& [from, to] : chunks) {
      if (from > at) (void)fs::punch(*file, at, from - at);
      at = std::max(at, to);
    }
    return fs::truncate(*file, at);
  }
};

// The same file: it goes when both have let go of it.
class LogFileWriter::Adopted final : public AdoptedLog {
 public:
  explicit Adopted(std::shared_ptr<Private> p) : p_(std::move(p)) {}

  std::uint64_t place_of(std::span<const std::byte> data) const override {
    if (!p_->mapping) return kNowhere;
    const std::span<const std::byte> memory = p_->mapping->bytes();
    const bool is_in = !data.empty() && !std::less()(data.data(), memory.data()) &&
                       !std::less()(memory.data() + memory.size(), data.data() + data.size());
    return is_in ? static_cast<std::uint64_t>(data.data() - memory.data()) : kNowhere;
  }

  Status append(std::span<const SegmentChunk> chunks, std::span<ChunkLocation> locations) override {
    DEDUP_TRY(failure_);
    if (chunks.size() != locations.size()) {
      return {Code::kArgument, "chunks without room for their locations"};
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const std::uint64_t place = place_of(chunks[i].data);
      if (place == kNowhere || has_header(chunks[i].fingerprint)) {
        return {Code::kArgument, p_->file->path() + ": a chunk that does not stand in the log"};
      }
      const std::size_t bytes = chunks[i].data.size();
      p_->keep(place, bytes);
      locations[i] = {p_->number, place, static_cast<std::uint32_t>(bytes)};
      end_ = std::max(end_, place + bytes);
      kept_ += bytes;
    }
    return Status::ok();
  }
  Status write_out() override { return failure_; }
  Status flush() override {
    DEDUP_TRY(failure_);
    failure_ = fs::sync_data(*p_->file);
    return failure_;
  }
  Status begin_flush(Worker& worker) override {
    DEDUP_TRY(end_flush());
    DEDUP_TRY(failure_);
    flushing_ = worker.post([file = p_->file] { return fs::sync_data(*file); });
    return Status::ok();
  }
  Status end_flush() override {
    if (!flushing_.valid()) return Status::ok();
    failure_ = flushing_.get();
    return failure_;
  }
  // Where so far nearly all stays, so will what comes: the disk begins with that, too.
  void start_write_back(Worker& worker) override {
    const bool nearly_all_stays = kept_ > (end_ - kDataAt) / 8 * 7;
    const std::uint64_t to = nearly_all_stays ? kDataAt + (p_->end - p_->first) : end_;
    if (end_ < kDataAt + kWriteBackBytes || to < started_ + kWriteBackBytes) return;
    worker.post([file = p_->file, from = started_, bytes = to - started_] {
      fs::start_write_back(*file, from, bytes);
      return Status::ok();
    });
    started_ = to;
  }
  std::uint64_t number() const override { return p_->number; }
  std::uint64_t size() const override { return end_; }

 private:
  std::shared_ptr<Private> p_;
  std::uint64_t end_ = kDataAt;      // of the last chunk
  std::uint64_t kept_ = 0;           // bytes of chunks
  std::uint64_t started_ = kDataAt;  // up to here all is on its way to the disk
  std::future<Status> flushing_;
  Status failure_;
};

LogFileWriter::LogFileWriter(std::shared_ptr<Private> p) : p_(std::move(p)) {}
LogFileWriter::~LogFileWriter() = default;

Result<std::unique_ptr<LogFileWriter>> LogFileWriter::create(const std::string& path,
                                                             const Id128& identity,
                                                             std::uint64_t number) {
  auto p = std::make_shared<Private>();
  DEDUP_ASSIGN(fs::File file, fs::create_new(path));
  p->file = std::make_shared<const fs::File>(std::move(file));
  p->identity = identity;
  p->number = number;
  Encoder header;
  const Bytes start = format::encode_file_header(format::kLog, {identity, number, 0});
  header.put_raw(start.data(), start.size());
  header.put(p->first);
  DEDUP_TRY(fs::write_at(*p->file, 0, header.bytes()));
  return std::unique_ptr<LogFileWriter>(new LogFileWriter(std::move(p)));
}

Result<std::uint64_t> LogFileWriter::append(std::span<const std::byte> data) {
  const std::uint64_t offset = p_->end;
  p_->has_space = true;
  DEDUP_TRY(fs::write_at(*p_->file, kDataAt + (offset - p_->first), data));
  p_->end += data.size();
  return offset;
}

Result<LogView> LogFileWriter::view(std::uint64_t offset, std::uint64_t bytes) {
  if (offset < p_->first || bytes == 0 || bytes > p_->end - p_->first ||
      offset - p_->first > p_->end - p_->first - bytes) {
    return Status(Code::kIo, p_->file->path() + ": not in the log");
  }
  const std::uint64_t at = kDataAt + (offset - p_->first);
  if (!p_->mapping || p_->mapping->bytes().size() < at + bytes) {
    // All there is: what is looked at next is in the same memory then.
    const std::uint64_t all = kDataAt + (p_->end - p_->first);
    const std::uint64_t size = (all + kMappedAtOnce - 1) / kMappedAtOnce * kMappedAtOnce;
    DEDUP_ASSIGN(fs::Mapping mapping, fs::Mapping::create(*p_->file, 0, size));
    p_->mapping = std::make_shared<const fs::Mapping>(std::move(mapping));
  }
  if (!p_->mapping->load(at, bytes)) {
    return Status(Code::kIo, p_->file->path() + ": not brought into memory");
  }
  return LogView(p_->mapping, p_->mapping->bytes().subspan(at, bytes));
}

Result<std::unique_ptr<LeaseTable>> LogFileWriter::make_leases() {
  DEDUP_TRY(fs::allocate(*p_->file, kLeasesAt, LeaseTable::kBytes));
  return map_leases(*p_->file);
}

Status LogFileWriter::clear(Space space) {
  if (!p_->has_space) return Status::ok();
  Encoder first;
  first.put(p_->end);
  // Before the data goes: a reader looks at it before and after reading.
  DEDUP_TRY(fs::write_at(*p_->file, kFirstAt, first.bytes()));
  p_->first = p_->end;
  if (!p_->chunks.empty()) {
    p_->mapping.reset();
    p_->has_ended = true;
    DEDUP_TRY(p_->free_the_rest());
    return fs::remove_file(p_->file->path());
  }
  if (!p_->segment.empty()) DEDUP_TRY(fs::remove_file(std::exchange(p_->segment, {})));
  if (space == Space::kKeep) return Status::ok();
  p_->mapping.reset();
  DEDUP_TRY(fs::truncate(*p_->file, kDataAt));
  p_->has_space = false;
  return Status::ok();
}

bool LogFileWriter::has_ended() const {
  return p_->has_ended;
}

Result<std::unique_ptr<AdoptedLog>> LogFileWriter::adopt(const std::string& path) {
  if (!p_->segment.empty()) {
    return Status(Code::kUnsupported, p_->file->path() + ": is a segment already");
  }
  // Before it has that name. Who has the log open has read its header.
  DEDUP_TRY(
      fs::write_at(*p_->file, 0,
                   format::encode_file_header(format::kLogSegment, {p_->identity, p_->number, 0})));
  DEDUP_TRY(fs::link(p_->file->path(), path));
  p_->segment = path;
  return std::unique_ptr<AdoptedLog>(std::make_unique<Adopted>(p_));
}

Status LogFileWriter::flush() {
  return fs::sync_data(*p_->file);
}
std::uint64_t LogFileWriter::number() const {
  return p_->number;
}
std::uint64_t LogFileWriter::size() const {
  return p_->end - p_->first;
}

struct LogFileReader::Private {
  fs::File file;

  Result<std::uint64_t> first() const {
    std::array<std::byte, sizeof(std::uint64_t)> bytes;
    DEDUP_TRY(fs::read_at(file, kFirstAt, bytes));
    return Decoder(bytes).get<std::uint64_t>();
  }
};

LogFileReader::LogFileReader(std::unique_ptr<Private> p) : p_(std::move(p)) {}
LogFileReader::~LogFileReader() = default;

Result<std::unique_ptr<LogFileReader>> LogFileReader::open(const std::string& path) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(p->file, fs::open_read(path));
  DEDUP_TRY(check_header(p->file));
  return std::unique_ptr<LogFileReader>(new LogFileReader(std::move(p)));
}

Result<std::unique_ptr<LeaseTable>> open_leases(const std::string& log_path) {
  DEDUP_ASSIGN(const fs::File file, fs::open_to_write(log_path));
  DEDUP_TRY(check_header(file));
  DEDUP_ASSIGN(const fs::Info info, fs::info(file));
  if (info.size < kDataAt) return format::corrupt(log_path, "it has no table of leases");
  return map_leases(file);
}

Status LogFileReader::read(std::uint64_t offset, std::span<std::byte> out) const {
  DEDUP_ASSIGN(const std::uint64_t first, p_->first());
  Status status;
  if (offset >= first) {
    status = fs::read_at(p_->file, kDataAt + (offset - first), out);
    DEDUP_ASSIGN(const std::uint64_t still, p_->first());
    if (still == first) return status;
  }
  return {Code::kNotFound, p_->file.path() + ": what was at byte " + std::to_string(offset) +
                               " has been cleared from the log"};
}

}  // namespace dedup::store
