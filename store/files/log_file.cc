#include "store/files/log_file.h"

#include <array>

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

Status check_header(const fs::File& file) {
  std::array<std::byte, format::kFileHeaderSize> header;
  DEDUP_TRY(fs::read_at(file, 0, header));
  return format::check_file_header(header, format::kLog, file.path()).status();
}

Result<std::unique_ptr<LeaseTable>> map_leases(const fs::File& file) {
  DEDUP_ASSIGN(fs::Mapping mapping, fs::Mapping::create(file, kLeasesAt, LeaseTable::kBytes));
  auto memory = std::make_shared<fs::Mapping>(std::move(mapping));
  const std::span<std::byte> bytes = memory->bytes();
  return std::make_unique<LeaseTable>(std::move(memory), bytes);
}

}  // namespace

struct LogFileWriter::Private {
  fs::File file;
  std::uint64_t number = 0;
  std::uint64_t first = kDataAt;
  std::uint64_t end = kDataAt;
  bool has_space = false;  // for data
  // Of the file from its start, kept as long as the space: also what is looked at often is mapped
  // once.
  std::shared_ptr<const fs::Mapping> mapping;
};

LogFileWriter::LogFileWriter(std::unique_ptr<Private> p) : p_(std::move(p)) {}
LogFileWriter::~LogFileWriter() = default;

Result<std::unique_ptr<LogFileWriter>> LogFileWriter::create(const std::string& path,
                                                             const Id128& identity,
                                                             std::uint64_t number) {
  auto p = std::make_unique<Private>();
  DEDUP_ASSIGN(p->file, fs::create_new(path));
  p->number = number;
  Encoder header;
  const Bytes start = format::encode_file_header(format::kLog, {identity, number, 0});
  header.put_raw(start.data(), start.size());
  header.put(p->first);
  DEDUP_TRY(fs::write_at(p->file, 0, header.bytes()));
  return std::unique_ptr<LogFileWriter>(new LogFileWriter(std::move(p)));
}

Result<std::uint64_t> LogFileWriter::append(std::span<const std::byte> data) {
  const std::uint64_t offset = p_->end;
  p_->has_space = true;
  DEDUP_TRY(fs::write_at(p_->file, kDataAt + (offset - p_->first), data));
  p_->end += data.size();
  return offset;
}

Result<LogView> LogFileWriter::view(std::uint64_t offset, std::uint64_t bytes) {
  if (offset < p_->first || bytes == 0 || bytes > p_->end - p_->first ||
      offset - p_->first > p_->end - p_->first - bytes) {
    return Status(Code::kIo, p_->file.path() + ": not in the log");
  }
  const std::uint64_t at = kDataAt + (offset - p_->first);
  if (!p_->mapping || p_->mapping->bytes().size() < at + bytes) {
    const std::uint64_t size = (at + bytes + kMappedAtOnce - 1) / kMappedAtOnce * kMappedAtOnce;
    DEDUP_ASSIGN(fs::Mapping mapping, fs::Mapping::create(p_->file, 0, size));
    p_->mapping = std::make_shared<const fs::Mapping>(std::move(mapping));
  }
  if (!p_->mapping->load(at, bytes)) {
    return Status(Code::kIo, p_->file.path() + ": not brought into memory");
  }
  return LogView(p_->mapping, p_->mapping->bytes().subspan(at, bytes));
}

Result<std::unique_ptr<LeaseTable>> LogFileWriter::make_leases() {
  DEDUP_TRY(fs::allocate(p_->file, kLeasesAt, LeaseTable::kBytes));
  return map_leases(p_->file);
}

Status LogFileWriter::clear(Space space) {
  if (!p_->has_space) return Status::ok();
  Encoder first;
  first.put(p_->end);
  // Before the data goes: a reader looks at it before and after reading.
  DEDUP_TRY(fs::write_at(p_->file, kFirstAt, first.bytes()));
  p_->first = p_->end;
  if (space == Space::kKeep) return Status::ok();
  p_->mapping.reset();
  DEDUP_TRY(fs::truncate(p_->file, kDataAt));
  p_->has_space = false;
  return Status::ok();
}

Status LogFileWriter::flush() {
  return fs::sync_data(p_->file);
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
