// The C interface: turns MPI's types into the engine's and Statuses into MPI error classes.

#include "engine/dedup.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/text.h"
#include "engine/c_interface.h"
#include "engine/chunks/timer.h"
#include "engine/close_handle.h"
#include "engine/commit.h"
#include "engine/fetch.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/datatype.h"
#include "engine/mpi/job.h"
#include "engine/open_handle.h"
#include "engine/protocol/delete_file.h"
#include "engine/protocol/leases.h"
#include "engine/protocol/reader.h"
#include "engine/report.h"
#include "engine/set_size.h"
#include "engine/writer.h"
#include "hints/hints.h"
#include "service/messages/file_home.h"
#include "store/real_path.h"

using dedup::Code;
using dedup::Result;
using dedup::Status;
namespace engine = dedup::engine;
namespace hints = dedup::hints;
namespace plan = dedup::plan;
namespace service = dedup::service;

struct dedup_file {
  std::unique_ptr<engine::FileHandle> open;
};

namespace {

static_assert(sizeof(MPI_Offset) == sizeof(std::int64_t));

plan::FlatType flat(const dedup_flat& type) {
  const auto count = static_cast<std::size_t>(type.count);
  return {{reinterpret_cast<const std::int64_t*>(type.offsets), count},
          {reinterpret_cast<const std::int64_t*>(type.lengths), count},
          type.extent,
          type.size};
}

plan::Access access_of(const dedup_access& access) {
  plan::Access out;
  out.displacement = access.disp;
  out.filetype = flat(access.filetype);
  out.start = access.start;
  out.memory = static_cast<std::byte*>(access.buf);
  out.memtype = flat(access.memtype);
  out.bytes = static_cast<std::uint64_t>(access.bytes);
  return out;
}

// ROMIO checks it, but for preallocation and for writes by shared pointers and split collectives.
Status check_writable(const engine::FileHandle& file) {
  if (file.writable) return Status::ok();
  return {Code::kReadOnly, file.path + ": was opened read-only"};
}

}  // namespace

void dedup_abbreviate(const char* text, char* out, size_t size) {
  std::snprintf(out, size, "%s", dedup::abbreviate(text, size - 1).c_str());
}

void dedup_job_begin(void) {
  engine::Job::begin();
}
int dedup_job_of(MPI_Comm comm, dedup_error* error) {
  return engine::guarded(error, [&] { return engine::Job::be_in_one(comm); });
}
void dedup_job_end(void) {
  engine::Job::end();
}

int dedup_open(MPI_Comm comm, const char* path, int amode, MPI_Info info, MPI_Info hints_file,
               dedup_file** file, dedup_error* error) {
  *file = nullptr;
  return engine::guarded(error, [&]() -> Status {
    const auto resolved = engine::hints_of(info, hints_file);
    const Status named = engine::check_path(path);
    DEDUP_ASSIGN(auto open,
                 engine::open_handle(comm, path, amode, named.is_ok() ? resolved.status() : named,
                                     resolved.is_ok() ? resolved.value() : hints::Hints{}));
    DEDUP_ASSIGN(open, engine::open_fetched(comm, std::move(open), amode));
    *file = new dedup_file{std::move(open)};
    return Status::ok();
  });
}

int dedup_close(dedup_file* file, dedup_error* error) {
  const std::unique_ptr<dedup_file> owner(file);
  return engine::guarded(error, [&] { return engine::close_handle(std::move(owner->open)); });
}

int dedup_delete(const char* path, MPI_Info hints_file, dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    DEDUP_TRY(engine::check_path(path));
    DEDUP_ASSIGN(const hints::Hints resolved, engine::hints_of(MPI_INFO_NULL, hints_file));
    DEDUP_ASSIGN(const std::shared_ptr<engine::Job> job, engine::Job::get());
    return engine::delete_file(job->client(), path, resolved);
  });
}

int dedup_same_arguments(MPI_Comm comm, const char* file, const char* call, const char* arguments,
                         int* any, dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    std::uint64_t flag = *any != 0 ? 1 : 0;
    DEDUP_TRY(engine::agree_same(comm, std::string(file) + ": " + call, arguments, &flag));
    *any = flag != 0 ? 1 : 0;
    return Status::ok();
  });
}

int dedup_is_placeholder(const char* path) {
  bool is_one = false;
  dedup_error ignored;
  engine::guarded(&ignored, [&] {
    is_one = dedup::store::is_placeholder_at(path);
    return Status::ok();
  });
  return is_one ? 1 : 0;
}

void dedup_get_info(dedup_file* file, MPI_Info info) {
  const auto set = [&](const std::string& key, const std::string& value) {
    PMPI_Info_set(info, key.c_str(), value.c_str());
  };
  for (const auto& [key, value] : hints::describe(file->open->hints)) set(key, value);
  for (const auto& [key, value] : engine::describe(file->open->last)) set(key, value);
}

int dedup_set_info(dedup_file* file, MPI_Info info, dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    hints::Warnings warnings;
    const auto updated = hints::update(file->open->hints, engine::source_of(info), warnings);
    engine::print(warnings);
    DEDUP_TRY(engine::agree(file->open->comm(), updated.status()));
    DEDUP_TRY(engine::agree_same(file->open->comm(),
                                 file->open->path + ": ranks give different hints",
                                 hints::agreement_text(*updated)));
    file->open->hints = *updated;
    return Status::ok();
  });
}

int dedup_get_pieces(MPI_Datatype datatype, dedup_pieces* pieces) {
  const auto copied = [](const std::vector<MPI_Offset>& numbers) {
    const std::size_t bytes = numbers.size() * sizeof(MPI_Offset);
    auto* const copy = static_cast<MPI_Offset*>(std::malloc(std::max<std::size_t>(bytes, 1)));
    if (copy == nullptr) throw std::bad_alloc();
    std::copy(numbers.begin(), numbers.end(), copy);
    return std::unique_ptr<MPI_Offset, decltype(&std::free)>(copy, &std::free);
  };
  *pieces = {0, nullptr, nullptr};
  try {
    const auto list = engine::PieceList::of(datatype);
    auto offsets = copied(list.offsets());
    auto lengths = copied(list.lengths());
    *pieces = {static_cast<MPI_Count>(list.offsets().size()), offsets.release(), lengths.release()};
    return 1;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

int dedup_write(dedup_file* file, const dedup_access* access, enum dedup_how how,
                dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    // Of a collective call on all ranks, also those that have nothing to write.
    DEDUP_TRY(check_writable(*file->open));
    const plan::Access a = access_of(*access);
    // Under a lease nobody is asked.
    if (how != DEDUP_COLLECTIVE) DEDUP_TRY(file->open->client().standing());
    const engine::Stopwatch began;
    const Status status = how == DEDUP_COLLECTIVE ? engine::write_collective(*file->open, a)
                                                  : engine::write_independent(*file->open, a);
    file->open->seconds_writing += began.seconds();
    return status;
  });
}

int dedup_read(dedup_file* file, const dedup_access* access, enum dedup_how how,
               MPI_Offset* bytes_read, dedup_error* error) {
  *bytes_read = 0;
  return engine::guarded(error, [&]() -> Status {
    const plan::Access a = access_of(*access);
    // A rank that cannot read its part says so; the others have theirs.
    const auto read = how == DEDUP_COLLECTIVE ? engine::read_together(*file->open, a)
                                              : engine::read_access(*file->open, a);
    if (read.is_ok()) *bytes_read = static_cast<MPI_Offset>(*read);
    return read.status();
  });
}

int dedup_sync(dedup_file* file, dedup_error* error) {
  return engine::guarded(
      error, [&] { return file->open->writable ? engine::commit(*file->open) : Status::ok(); });
}

int dedup_get_size(dedup_file* file, MPI_Offset* size, dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    const engine::FileHandle& open = *file->open;
    DEDUP_ASSIGN(const std::uint64_t bytes, engine::file_size(open));
    *size = static_cast<MPI_Offset>(bytes);
    return Status::ok();
  });
}

int dedup_set_size(dedup_file* file, MPI_Offset size, dedup_error* error) {
  return engine::guarded(
      error, [&] { return engine::set_size(*file->open, static_cast<std::uint64_t>(size)); });
}

int dedup_preallocate(dedup_file* file, MPI_Offset size, dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    DEDUP_TRY(check_writable(*file->open));
    file->open->changed = true;
    return engine::extend(*file->open, static_cast<std::uint64_t>(size));
  });
}

int dedup_shared_fetch_add(dedup_file* file, MPI_Offset increment, MPI_Offset* before,
                           dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    const engine::FileHandle& open = *file->open;
    const service::SharedAdd request{open.identity(), open.handle,
                                     static_cast<std::uint64_t>(increment)};
    DEDUP_ASSIGN(const service::SharedValue reply, open.client().call(open.home, request));
    *before = static_cast<MPI_Offset>(reply.value);
    return Status::ok();
  });
}

int dedup_shared_set(dedup_file* file, MPI_Offset value, dedup_error* error) {
  return engine::guarded(error, [&] {
    const engine::FileHandle& open = *file->open;
    const service::SharedSet request{open.identity(), open.handle,
                                     static_cast<std::uint64_t>(value)};
    return open.client().call(open.home, request).status();
  });
}

void dedup_set_atomicity(dedup_file* file, int atomic) {
  file->open->atomic = atomic != 0;
}
