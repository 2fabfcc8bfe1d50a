#include "bench/programs/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace dedup::bench {
namespace {

class Generated : public Source {
 public:
  Generated(Data data, unsigned step) : data_(std::move(data)), step_(step) {}

  std::uint64_t bytes_a_rank() const override { return data_.bytes_a_rank(); }
  Status fill(unsigned writer, std::uint64_t offset, std::span<std::byte> out) const override {
    data_.fill(writer, step_, offset, out);
    return Status::ok();
  }

 private:
  Data data_;
  unsigned step_;
};

class Files : public Source {
 public:
  struct File {
    std::string path;
    int fd = -1;
    std::uint64_t size = 0;
  };

  Files(std::vector<File> files, std::uint64_t bytes_a_rank)
      : files_(std::move(files)), bytes_a_rank_(bytes_a_rank) {}
  ~Files() override {
    for (const File& file : files_) ::close(file.fd);
  }

  std::uint64_t bytes_a_rank() const override { return bytes_a_rank_; }
  Status fill(unsigned writer, std::uint64_t offset, std::span<std::byte> out) const override {
    std::uint64_t at = writer * bytes_a_rank_ + offset;
    for (const File& file : files_) {
      if (at >= file.size) {
        at -= file.size;
        continue;
      }
      while (!out.empty() && at < file.size) {
        const ssize_t got = pread(file.fd, out.data(), std::min(out.size(), file.size - at),
                                  static_cast<off_t>(at));
        if (got < 0) return Status::from_errno(errno, file.path);
        if (got == 0) return {Code::kIo, file.path + ": became shorter"};
        at += static_cast<std::uint64_t>(got);
        out = out.subspan(static_cast<std::size_t>(got));
      }
      at = 0;
    }
    if (!out.empty()) std::memset(out.data(), 0, out.size());
    return Status::ok();
  }

 private:
  std::vector<File> files_;
  std::uint64_t bytes_a_rank_;
};

}  // namespace

std::unique_ptr<Source> generated(Data data, unsigned step) {
  return std::make_unique<Generated>(std::move(data), step);
}

Result<std::unique_ptr<Source>> from_files(std::vector<std::string> paths, unsigned writers) {
  std::vector<Files::File> files;
  std::uint64_t all = 0;
  Status status;
  for (std::string& path : paths) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info {};
    if (fd < 0 || fstat(fd, &info) != 0) {
      status = Status::from_errno(errno, path);
      if (fd >= 0) ::close(fd);
      break;
    }
    all += static_cast<std::uint64_t>(info.st_size);
    files.push_back({std::move(path), fd, static_cast<std::uint64_t>(info.st_size)});
  }
  const std::uint64_t units = (all + kUnit - 1) / kUnit;
  // Made in any case: it closes the files.
  auto source = std::make_unique<Files>(std::move(files), (units + writers - 1) / writers * kUnit);
  if (!status.is_ok()) return status;
  if (all == 0) return Status(Code::kArgument, "the files of the data are empty");
  return std::unique_ptr<Source>(std::move(source));
}

Status fill_file(const Source& source, const Layout& layout, std::uint64_t offset,
                 std::span<std::byte> out) {
  while (!out.empty()) {
    const std::uint64_t piece = layout.piece == 0 ? layout.bytes_a_rank : layout.piece;
    const std::uint64_t turn = offset / piece;
    const std::uint64_t skip = offset % piece;
    const std::size_t length = std::min<std::uint64_t>(out.size(), piece - skip);
    const Status status = source.fill(static_cast<unsigned>(turn % layout.writers),
                                      turn / layout.writers * piece + skip, out.first(length));
    if (!status.is_ok()) return status;
    out = out.subspan(length);
    offset += length;
  }
  return Status::ok();
}

Result<std::uint64_t> wrong_bytes(const Source& source, const Layout& layout, std::uint64_t offset,
                                  std::span<const std::byte> read) {
  std::vector<std::byte> expected(std::size_t{1} << 20);
  std::uint64_t wrong = 0;
  while (!read.empty()) {
    const auto part = std::span(expected).first(std::min(expected.size(), read.size()));
    const Status status = fill_file(source, layout, offset, part);
    if (!status.is_ok()) return status;
    if (std::memcmp(part.data(), read.data(), part.size()) != 0) {
      for (std::size_t i = 0; i < part.size(); ++i) wrong += part[i] != read[i];
    }
    read = read.subspan(part.size());
    offset += part.size();
  }
  return wrong;
}

}  // namespace dedup::bench
