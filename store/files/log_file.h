// A log as a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "store/log.h"

namespace dedup::store {

class LogFileWriter final : public LogWriter {
 public:
  // Creates the file `path` exclusively (directories must be there).
  static Result<std::unique_ptr<LogFileWriter>> create(const std::string& path,
                                                       const Id128& identity, std::uint64_t number);
  ~LogFileWriter() override;

  Result<std::uint64_t> append(std::span<const std::byte> data) override;
  Result<LogView> view(std::uint64_t offset, std::uint64_t bytes) override;
  Result<std::unique_ptr<LeaseTable>> make_leases() override;
  Status clear(Space space) override;
  bool has_ended() const override;
  // See Store::adopt_log. `path`: the segment's.
  Result<std::unique_ptr<AdoptedLog>> adopt(const std::string& path);
  Status flush() override;
  std::uint64_t number() const override;
  std::uint64_t size() const override;

 private:
  struct Private;
  class Adopted;
  explicit LogFileWriter(std::shared_ptr<Private> p);
  std::shared_ptr<Private> p_;
};

class LogFileReader final : public LogReader {
 public:
  static Result<std::unique_ptr<LogFileReader>> open(const std::string& path);
  ~LogFileReader() override;

  // Three system calls.
  Status read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  struct Private;
  explicit LogFileReader(std::unique_ptr<Private> p);
  std::unique_ptr<Private> p_;
};

// See Store::leases.
Result<std::unique_ptr<LeaseTable>> open_leases(const std::string& log_path);

}  // namespace dedup::store
