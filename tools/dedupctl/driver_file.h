// Files that dedupctl opens through the driver, by MPI-IO, on all ranks.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "engine/admin.h"

namespace dedup::ctl {

// What is not marked as local is collective. Errors name the path.
class DriverFile {
 public:
  // `mode`: MPI_MODE_…; `hints`: names and values.
  static Result<std::unique_ptr<DriverFile>> open(
      const std::string& path, int mode,
      const std::vector<std::pair<std::string, std::string>>& hints);
  // Closes it, if close() was not called; what is wrong then nobody hears.
  ~DriverFile();
  DriverFile(const DriverFile&) = delete;
  DriverFile& operator=(const DriverFile&) = delete;

  Status write_all(std::uint64_t offset, std::span<const std::byte> bytes);
  // Local. One rank writes what is there already: so all of a plain file becomes the driver's.
  Status touch();
  // All that was there goes, once what is written from now on is committed.
  Status clear();
  Status sync();
  // Once, and nothing afterwards.
  Status close();

 private:
  explicit DriverFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  MPI_File file_ = MPI_FILE_NULL;
};

// What a function of engine/admin.h has returned.
Status status_of_admin(int error_class, const dedup_error& error);

}  // namespace dedup::ctl
