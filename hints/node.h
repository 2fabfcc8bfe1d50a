// Which node a process is on, as the environment says.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace dedup::hints {

// Whether nodes may be named so: letters, digits, dots, underscores and hyphens, no hyphen first.
bool is_node_name(std::string_view name);

// The name of the node that a rank of `ranks` is on if a job simulates `nodes`: a number N, of n0
// to n(N-1), or names with commas between them. Ranks are dealt in blocks as equal as possible,
// earlier nodes first; with fewer ranks than nodes the last nodes stay without. kArgument: `nodes`
// is neither; the message says what is wrong with it.
Result<std::string> simulated_node(std::string_view nodes, int rank, int ranks);

// Of a process that belongs to no job: DEDUP_NODE, or the host's name.
std::string node_of_process();

// Of a rank of MPI_COMM_WORLD: DEDUP_NODE; or the one of DEDUP_NODES; or the host's name.
// kArgument: as above.
Result<std::string> node_of_rank(int rank, int ranks);

// Whether DEDUP_NODES says which nodes a job simulates.
bool simulates_nodes();

// All of them, whether or not a rank is on them. kArgument: as above.
Result<std::vector<std::string>> simulated_nodes();

// Of a process's node: DEDUP_FAILURE_DOMAIN, any text; equal on nodes that are likely to be lost
// together. Empty if it is not said.
std::string failure_domain();

// Where the job's mount is on this host (dedup-mpiexec --mount): DEDUP_MOUNT. Empty: there is none.
std::string mount_directory();

// How long a node may give no sign of life before it counts as lost, if nobody says otherwise.
inline constexpr std::chrono::seconds kNodeTimeout{60};
// … DEDUP_NODE_TIMEOUT, in seconds. kArgument if that is not a number from 1 to 86400.
Result<std::chrono::seconds> node_timeout();

}  // namespace dedup::hints
