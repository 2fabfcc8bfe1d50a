// What the parts of the engine's C interface share: Statuses become MPI error classes, and nothing
// throws.
#pragma once

#include <mpi.h>

#include <exception>
#include <new>
#include <string_view>

#include "base/status.h"
#include "engine/dedup.h"
#include "hints/hints.h"

namespace dedup::engine {

// Fills in *error; returns its error class.
int give(const Status& status, dedup_error* error);

// Nothing throws through C. What can throw in the engine is an allocation; the ranks that go on
// cannot be told at this point, so that a collective call may not end on them: running out of
// memory inside a collective is as fatal as it is to MPI itself.
template <typename F>
int guarded(dedup_error* error, F&& f) {
  try {
    return give(f(), error);
  } catch (const std::bad_alloc&) {
    return give(Status(Code::kNoMemory, "out of memory"), error);
  } catch (const std::exception& e) {
    return give(Status(Code::kInternal, e.what()), error);
  }
}

// All pairs of an info; none of MPI_INFO_NULL.
hints::Source source_of(MPI_Info info);

// To stderr, each unknown hint once in a process.
void print(const hints::Warnings& warnings);

// The hints that an open with this info has. Prints warnings.
Result<hints::Hints> hints_of(MPI_Info info, MPI_Info hints_file);

// kBadFile for a name that no file can have, kReadOnly for one in the job's mount: to be refused
// before anything is done with it.
Status check_path(std::string_view path);

}  // namespace dedup::engine
