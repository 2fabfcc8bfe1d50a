// The job: some nodes, their services, and this process's way to them.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "base/types.h"
#include "engine/mpi/alone.h"
#include "engine/mpi/topology.h"
#include "engine/protocol/flusher.h"
#include "service/client.h"

namespace dedup::engine {

// A node is what DEDUP_NODE or DEDUP_NODES names (hints/node.h) or, by default, the ranks that
// share memory. Its lowest rank of the job's runs the service.
//
// A process that has begun one of MPI_COMM_WORLD (dedup_job_begin) has one job at a time: that one,
// until a node is lost; then, from the next open on, one that the ranks of a communicator began
// anew among themselves, on the nodes that they are on. To the stores it is the next job after one
// that died: nothing is handed on but what was committed. Handles keep the job that they were
// opened in, which has ended then: all that is asked of its services is an error that says so.
//
// Where nothing can be begun together with MPI, since the engine comes in later, the ranks of a
// communicator become one job when they open their first file (be_in_one). Then a process may have
// several, of which each is to the stores what any other job is; files stay in theirs.
//
// Thread-safe, but for begin and end. Two threads that begin anew on the same ranks at once may end
// each other's jobs: then both opens fail, and may be tried again.
class Job {
 public:
  // Collective over MPI_COMM_WORLD. Costs an allgather over nodes of about 400 bytes each and a few
  // communicator splits.
  static void begin();
  // Collective over comm, whose ranks are of one MPI_COMM_WORLD: from now on their files are opened
  // in one job, the largest that all of them are in already or else a new one. Costs a broadcast
  // and a reduction.
  static Status be_in_one(MPI_Comm comm);
  // Collective over the ranks of each of this process's jobs: waits for what is being written back,
  // and for the others; then the service and all connections end.
  static void end();
  // The job that files are opened in, or why there is none. Not between begin and end:
  // kUnsupported.
  static Result<std::shared_ptr<Job>> get();
  // Collective over `comm`, whose ranks have a job each: ends them, as far as they are here, and
  // begins one of the nodes of `comm`. Costs what begin() costs on these. On failure, the same on
  // all ranks, there is none that works, and it may be tried again.
  static Status begin_anew(MPI_Comm comm);

  // Random, the same on all ranks of the job, different for every job.
  const Id128& id() const { return id_; }
  Place place() const { return {world_, id_, nodes(), my_node()}; }
  service::Client& client() { return *client_; }
  // Of this process.
  Flusher& flusher() { return *flusher_; }
  Alone& alone() { return alone_; }
  NodeIndex nodes() const { return client_->nodes(); }
  NodeIndex my_node() const { return client_->self(); }
  const std::string& node_name(NodeIndex node) const { return client_->node_name(node); }

  // Whether there is reason to ask if nodes are lost when a file is opened on so many ranks: this
  // process could not reach some node, or has a file open on more ranks, of which those that are
  // left out may be lost. Local.
  bool may_have_lost(int ranks) const;
  // A file is open on so many ranks, until closed().
  void opened(int ranks);
  void closed(int ranks);

  ~Job();

 private:
  explicit Job(const Id128& world);
  // kFirst: some rank has not had one yet.
  enum class Turn { kFirst, kLater };
  static Status begin_on(MPI_Comm comm, Turn turn);
  Status start(MPI_Comm ranks, Turn turn);
  bool works() const;
  void stop(const std::string& why);
  void free_comms();
  void finish_write_back();

  struct Private;
  std::unique_ptr<Private> p_;
  Id128 world_;
  Id128 id_;
  std::unique_ptr<service::Client> client_;
  std::unique_ptr<Flusher> flusher_;
  Alone alone_;
};

}  // namespace dedup::engine
