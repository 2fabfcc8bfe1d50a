#include "engine/admin.h"

#include "engine/c_interface.h"
#include "engine/fetch.h"
#include "engine/heal.h"

using dedup::Code;
using dedup::Status;
namespace engine = dedup::engine;

int dedup_admin_heal(MPI_Comm comm, const char* path, unsigned replication, int flags,
                     dedup_admin_healed* healed, dedup_error* error) {
  *healed = {};
  return engine::guarded(error, [&]() -> Status {
    const auto hints = engine::hints_of(MPI_INFO_NULL, MPI_INFO_NULL);
    Status mine = engine::check_path(path);
    if (mine.is_ok()) mine = hints.status();
    DEDUP_ASSIGN(const engine::Healed done,
                 engine::heal(comm, path,
                              {replication, (flags & DEDUP_ADMIN_VERIFY) != 0,
                               (flags & DEDUP_ADMIN_ACCEPT_LOSS) != 0},
                              mine, hints.is_ok() ? *hints : dedup::hints::Hints{}));
    healed->generation = done.generation;
    healed->checked = done.checked;
    healed->bad = done.bad;
    healed->copies_made = done.copies_made;
    healed->lost_chunks = done.lost_chunks;
    healed->unknown_bytes = done.unknown_bytes;
    healed->lowest_copies = done.lowest_copies;
    return Status::ok();
  });
}

int dedup_admin_fetch(MPI_Comm comm, const char* path, dedup_error* error) {
  return engine::guarded(error, [&]() -> Status {
    const auto hints = engine::hints_of(MPI_INFO_NULL, MPI_INFO_NULL);
    Status mine = engine::check_path(path);
    if (mine.is_ok()) mine = hints.status();
    return engine::fetch(comm, path, mine, hints.is_ok() ? *hints : dedup::hints::Hints{});
  });
}
