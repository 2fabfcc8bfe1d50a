#include "tools/dedupctl/driver_file.h"

namespace dedup::ctl {
namespace {

Status status_of(int error, const std::string& path) {
  if (error == MPI_SUCCESS) return Status::ok();
  int error_class = MPI_ERR_OTHER;
  MPI_Error_class(error, &error_class);
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  const Code code = error_class == MPI_ERR_FILE_IN_USE    ? Code::kFileInUse
                    : error_class == MPI_ERR_NO_SUCH_FILE ? Code::kNoSuchFile
                    : error_class == MPI_ERR_FILE_EXISTS  ? Code::kFileExists
                    : error_class == MPI_ERR_NO_SPACE     ? Code::kNoSpace
                                                          : Code::kIo;
  return {code, path + ": " + std::string(text, static_cast<std::size_t>(length))};
}

Code code_of_admin(int error_class) {
  switch (error_class) {
    case MPI_ERR_FILE_IN_USE:
      return Code::kFileInUse;
    case MPI_ERR_NO_SUCH_FILE:
      return Code::kNoSuchFile;
    case MPI_ERR_NO_SPACE:
      return Code::kNoSpace;
    case MPI_ERR_IO:
      // A chunk without a good copy, or a recipe without a readable one.
      return Code::kCorrupt;
    default:
      return Code::kInternal;
  }
}

}  // namespace

Result<std::unique_ptr<DriverFile>> DriverFile::open(
    const std::string& path, int mode,
    const std::vector<std::pair<std::string, std::string>>& hints) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  for (const auto& [name, value] : hints) MPI_Info_set(info, name.c_str(), value.c_str());
  std::unique_ptr<DriverFile> file(new DriverFile(path));
  const int error =
      MPI_File_open(MPI_COMM_WORLD, ("dedup:" + path).c_str(), mode, info, &file->file_);
  MPI_Info_free(&info);
  DEDUP_TRY(status_of(error, path));
  return file;
}

DriverFile::~DriverFile() {
  if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
}

Status DriverFile::write_all(std::uint64_t offset, std::span<const std::byte> bytes) {
  return status_of(
      MPI_File_write_at_all(file_, static_cast<MPI_Offset>(offset), bytes.data(),
                            static_cast<int>(bytes.size()), MPI_BYTE, MPI_STATUS_IGNORE),
      path_);
}

Status DriverFile::touch() {
  char byte = 0;
  DEDUP_TRY(status_of(MPI_File_read_at(file_, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), path_));
  return status_of(MPI_File_write_at(file_, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), path_);
}

Status DriverFile::clear() {
  return status_of(MPI_File_set_size(file_, 0), path_);
}

Status DriverFile::sync() {
  return status_of(MPI_File_sync(file_), path_);
}

Status DriverFile::close() {
  return status_of(MPI_File_close(&file_), path_);
}

Status status_of_admin(int error_class, const dedup_error& error) {
  if (error_class == MPI_SUCCESS) return Status::ok();
  return {code_of_admin(error_class), error.text};
}

}  // namespace dedup::ctl
