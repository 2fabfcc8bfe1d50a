// An open file on one rank: what all parts of the engine that serve one MPI_File share.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "engine/dump/dump.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/job.h"
#include "engine/mpi/topology.h"
#include "engine/protocol/job_file.h"
#include "engine/report.h"
#include "plan/sample.h"

namespace dedup::engine {

// The job that it was opened in and its communicator, which last longer than what refers to them.
struct OpenRanks {
  OpenRanks(std::shared_ptr<Job> the_job, Topology the_topology)
      : job(std::move(the_job)), topology(std::move(the_topology)) {
    job->opened(topology.size());
  }
  OpenRanks(const OpenRanks&) = delete;
  OpenRanks& operator=(const OpenRanks&) = delete;
  ~OpenRanks() { job->closed(topology.size()); }

  std::shared_ptr<Job> job;
  Topology topology;
  MpiRanks mpi_ranks{topology};
};

// Of what this rank has written since the last commit, to tell why little was found.
struct WrittenSample {
  explicit WrittenSample(std::uint32_t chunk_size) : data(chunk_size) {}

  plan::Sample data;
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;  // contiguous ones
};

struct FileHandle : private OpenRanks, public JobFile {
  FileHandle(const std::shared_ptr<Job>& the_job, Topology the_topology)
      : OpenRanks(the_job, std::move(the_topology)), JobFile(the_job->client(), mpi_ranks) {}

  using OpenRanks::job;
  using OpenRanks::topology;
  std::unique_ptr<Dumper> dumper;  // if writable
  Id128 dumper_base;               // the base when the dumper last began a generation
  DumpStats since_commit;
  std::atomic<double> seconds_writing = 0;  // in calls since the commit, of all threads
  LastCommit last;
  std::optional<WrittenSample> sample;  // if it is taken (tell.h)

  MPI_Comm comm() const { return topology.comm(); }
};

}  // namespace dedup::engine
