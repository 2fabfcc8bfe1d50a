// Where tests get in, of the rooms without MPI. Each function is defined weakly (base/hooks.cc), as
// users have it; a test build links other definitions beside it (test/hooks; doc/testing.md, "Test
// build"). The engine has two more: engine/protocol/failpoint.h and engine/mpi/hooks.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace dedup {

// What counts of the 64 bits of a name by which twins are looked for: every bit.
std::uint64_t twin_mask();

// Whether each node sees the real paths as a file system of its own, wherever they are: no.
bool has_private_paths();

// A request of this kind (service::Opcode) goes to the service of this process, and over no socket.
void note_local_request(std::uint8_t kind);

// An index with fewer entries is written anew by each commit, which is as good as nothing: 1024.
std::uint64_t entries_worth_keeping();

// What is dumped of a log is looked at where it is, and may stay there, if it is as much: 1 MiB.
std::uint64_t log_bytes_worth_viewing();

// Whether a variable of the environment, DEDUP_..., is one that tests set: no.
bool is_test_variable(std::string_view name);

}  // namespace dedup
