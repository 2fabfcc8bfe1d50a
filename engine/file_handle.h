// An open file on one rank: what all parts of the engine that serve one MPI_File share.
#pragma once

#include <memory>

#include "engine/dump/dump.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/job.h"
#include "engine/mpi/topology.h"
#include "engine/protocol/job_file.h"
#include "engine/report.h"

namespace dedup::engine {

// Holds its communicator, before what refers to it.
struct OpenRanks {
  Topology topology;
  MpiRanks mpi_ranks{topology};
};

struct FileHandle : private OpenRanks, public JobFile {
  FileHandle(Job& the_job, Topology the_topology)
      : OpenRanks{std::move(the_topology)}, JobFile(the_job.client(), mpi_ranks), job(&the_job) {}

  using OpenRanks::topology;
  Job* job;
  std::unique_ptr<Dumper> dumper;  // if writable
  Id128 dumper_base;               // the base when the dumper last began a generation
  DumpStats since_commit;
  LastCommit last;

  MPI_Comm comm() const { return topology.comm(); }
};

}  // namespace dedup::engine
