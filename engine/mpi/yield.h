// Whether ranks that wait give their core away.
#pragma once

#include <mpi.h>

namespace dedup::engine {

// Tells libdedup-yield.so (adio/yield.c), if it is in this process: yes if this host has more ranks
// than cores, or as DEDUP_YIELD says, 1 or 0. Collective over the host's ranks: one reduction of
// 1 KiB.
void decide_yielding(MPI_Comm host);

}  // namespace dedup::engine
