// Faults at the calls that this process makes to stores and real paths, for tests.
//
// DEDUP_TEST_FAULT=PATH maps the file PATH.R (R: the process's rank in MPI_COMM_WORLD), which must
// be there, as a store::FaultPlan: whoever else maps it says which call is to fail, and how, and
// sees whether it did. A fault that kills does so by SIGKILL. DEDUP_TEST_FAULT_BELOW=DIRECTORY:…:
// only calls on what is in these are meant. When the first variable is not set the kernel is called
// as ever.
#pragma once

#include "base/status.h"

namespace dedup::engine {

// Once, before the first file is opened.
Status install_faults(int world_rank);

}  // namespace dedup::engine
