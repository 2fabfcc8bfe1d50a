// Subcommands that write go through the driver, which works in MPI jobs only.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {

// Whether the driver is in this process, as dedup-mpiexec puts it there.
Status check_driver();

// Tells the driver which stores --store means; `node`: this rank's. Before it opens a file.
Status set_store_for_driver(const Options& options, const std::string& node);

// Starts this program anew under dedup-mpiexec, with one rank for each store of this host. Returns
// only if that fails.
Status run_in_job(const Options& options, const std::vector<std::string>& arguments);

}  // namespace dedup::ctl
