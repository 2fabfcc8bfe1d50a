// Errors that carry their cause, from a failed system call up to the MPI error code.
//
// Nothing in this project throws across a module boundary; functions that can fail return a Status
// or a Result<T>. The code decides the MPI error class, the message is for people: it names what is
// wrong (file, path, node, hint) and, where there is something to do about it, what to do.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace dedup {

// What went wrong, in the terms of MPI's error classes; mpi_error_class() in engine/ maps them one
// to one. Values travel between processes: append only.
enum class Code : int {
  kOk = 0,
  kNoSuchFile = 1,    // MPI_ERR_NO_SUCH_FILE
  kFileExists = 2,    // MPI_ERR_FILE_EXISTS
  kAccess = 3,        // MPI_ERR_ACCESS: permission denied
  kReadOnly = 4,      // MPI_ERR_READ_ONLY
  kBadFile = 5,       // MPI_ERR_BAD_FILE: a file name that cannot be one
  kNoSpace = 6,       // MPI_ERR_NO_SPACE
  kQuota = 7,         // MPI_ERR_QUOTA
  kIo = 8,            // MPI_ERR_IO: everything the hardware or a lost node does to us
  kFileInUse = 9,     // MPI_ERR_FILE_IN_USE
  kNotSame = 10,      // MPI_ERR_NOT_SAME: arguments differ between ranks
  kInfoValue = 11,    // MPI_ERR_INFO_VALUE
  kArgument = 12,     // MPI_ERR_ARG
  kCount = 13,        // MPI_ERR_COUNT
  kUnsupported = 14,  // MPI_ERR_UNSUPPORTED_OPERATION
  kNoMemory = 15,     // MPI_ERR_NO_MEM
  kConflict = 16,     // MPI_ERR_IO: two generations, neither descends from the other
  kCorrupt = 17,      // MPI_ERR_IO: a checksum or a format does not hold
  kUnreachable = 18,  // MPI_ERR_IO: a node's service does not answer
  kVersion = 19,      // MPI_ERR_IO: written by a newer version of this software
  kNotFound = 20,     // internal: an item (not a file) is not there
  kInternal = 21,     // MPI_ERR_INTERN
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }
  // From an errno value: picks the code (ENOSPC, EDQUOT, EACCES, EROFS, ENOENT, …; everything else
  // is kIo) and appends the system's text: "what: No space left on device".
  static Status from_errno(int error, const std::string& what);

  bool is_ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with "context: " put before the message.
  Status with_context(const std::string& context) const {
    return is_ok() ? *this : Status(code_, context + ": " + message_);
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// A value, or the error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by design
    assert(!status_.is_ok());
  }

  bool is_ok() const { return status_.is_ok(); }
  const Status& status() const { return status_; }
  T& value() & {
    assert(value_.has_value());
    return *value_;
  }
  const T& value() const& {
    assert(value_.has_value());
    return *value_;
  }
  // By value, so that `for (x : *f())` loops over something that lives as long as the loop.
  T value() && {
    assert(value_.has_value());
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace dedup

// Returns from the calling function if `expression` (a Status) is an error.
#define DEDUP_TRY(expression)                               \
  do {                                                      \
    ::dedup::Status dedup_try_status = (expression);        \
    if (!dedup_try_status.is_ok()) return dedup_try_status; \
  } while (false)

#define DEDUP_CONCAT_INNER(a, b) a##b
#define DEDUP_CONCAT(a, b) DEDUP_CONCAT_INNER(a, b)
// DEDUP_ASSIGN(auto x, f()): x = *f(), or returns f()'s error from the calling function.
#define DEDUP_ASSIGN(declaration, expression) \
  DEDUP_ASSIGN_INNER(declaration, expression, DEDUP_CONCAT(dedup_result_, __LINE__))
#define DEDUP_ASSIGN_INNER(declaration, expression, result) \
  auto result = (expression);                               \
  if (!result.is_ok()) return result.status();              \
  declaration = std::move(result.value())
