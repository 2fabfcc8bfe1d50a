#include "engine/mpi/job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/warn.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/checked_message.h"
#include "engine/mpi/hooks.h"
#include "engine/mpi/yield.h"
#include "hints/hints.h"
#include "hints/node.h"
#include "service/executor.h"
#include "service/server.h"

namespace dedup::engine {
namespace {

// The job, or why there is none. Written by begin and end only, which MPI allows in one thread at a
// time, before and after everything else. Never destroyed: a program that ends without MPI_Finalize
// has its service until the process is gone, since files are closed on the way there, on this node
// and on others.
struct State {
  std::unique_ptr<Job> job;
  Status why_not{Code::kUnsupported,
                 "MPI_Init did not go through libromio-dedup.so: start the program with "
                 "dedup-mpiexec, or link or preload the library before MPICH's"};
};

State& state() {
  static State& the_state = *new State;
  return the_state;
}

// Equal for ranks on one host, as its kernel sees it: they reach each other by the loopback device.
std::string my_host() {
  char name[256] = {};
  char network[64] = {};
  std::string boot;
  if (gethostname(name, sizeof name - 1) != 0) name[0] = '\0';
  if (readlink("/proc/self/ns/net", network, sizeof network - 1) < 0) network[0] = '\0';
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return std::string(name) + '/' + boot + '/' + network;
}

// Ranks with equal names within `comm`, lowest first.
MPI_Comm split_by_name(MPI_Comm comm, const std::string& name) {
  int rank;
  PMPI_Comm_rank(comm, &rank);
  // Gathered and answered by rank 0, so that nobody but one rank a host sees all names.
  const std::vector<Bytes> names = gather(comm, encoded(name));
  std::vector<int> colors(names.size());
  for (std::size_t r = 0; r < names.size(); ++r) {
    colors[r] = static_cast<int>(std::find(names.begin(), names.end(), names[r]) - names.begin());
  }
  int color = 0;
  PMPI_Scatter(colors.data(), 1, MPI_INT, &color, 1, MPI_INT, 0, comm);
  MPI_Comm out;
  PMPI_Comm_split(comm, color, rank, &out);
  return out;
}

// Simulated nodes whose ranks are on several hosts are several nodes of one name.
Status check_simulated(const std::vector<service::Peer>& peers) {
  if (!hints::simulates_nodes()) return Status::ok();
  std::set<std::string_view> names;
  for (const service::Peer& peer : peers) {
    if (names.insert(peer.node).second) continue;
    return {Code::kArgument, "DEDUP_NODES=" + std::string(std::getenv("DEDUP_NODES")) + ": " +
                                 peer.node +
                                 " would be on several hosts: start the ranks of each node on one"};
  }
  return Status::ok();
}

struct CommHolder {
  MPI_Comm comm = MPI_COMM_NULL;
  ~CommHolder() {
    if (comm != MPI_COMM_NULL) PMPI_Comm_free(&comm);
  }
};

}  // namespace

struct Job::Private {
  CommHolder world;
  service::Executor executor;               // of the server
  std::unique_ptr<service::Server> server;  // on the lowest rank of each node
};

Job::Job() : p_(std::make_unique<Private>()) {}
Job::~Job() = default;

Status Job::start() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &p_->world.comm);
  const MPI_Comm world = p_->world.comm;
  int world_rank;
  int world_size;
  PMPI_Comm_rank(world, &world_rank);
  PMPI_Comm_size(world, &world_size);

  CommHolder host;
  CommHolder node;
  CommHolder leaders;
  PMPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &host.comm);
  int host_size;
  int largest;
  PMPI_Comm_size(host.comm, &host_size);
  PMPI_Allreduce(&host_size, &largest, 1, MPI_INT, MPI_MAX, world);
  if (largest == 1) {
    // One rank a host; or a device without shared memory (ch3:sock), to which every rank is alone.
    PMPI_Comm_free(&host.comm);
    host.comm = split_by_name(world, my_host());
    PMPI_Comm_size(host.comm, &host_size);
  }
  decide_yielding(host.comm);
  const Result<std::string> named = hints::node_of_rank(world_rank, world_size);
  const std::string name = named.is_ok() ? *named : "";
  set_speaker("rank " + std::to_string(world_rank) + (name.empty() ? "" : " on " + name));
  node.comm = split_by_name(host.comm, name);
  int node_rank;
  PMPI_Comm_rank(node.comm, &node_rank);
  const bool leader = node_rank == 0;
  PMPI_Comm_split(world, leader ? 0 : MPI_UNDEFINED, world_rank, &leaders.comm);

  struct {
    Id128 id;
    service::Secret secret;
  } common{};
  if (world_rank == 0) {
    for (const hints::Warning& warning : hints::unknown_variables(environ)) warn(warning.text);
    common.id = Id128::random();
    fill_randomly(common.secret);
  }
  broadcast_value(world, 0, common);
  id_ = common.id;

  // The leaders start their services and tell each other where they are; every leader tells its
  // node's ranks.
  const Status hooks = begin_hooks(world, node.comm, id_);
  DEDUP_TRY(agree(world, named.is_ok() ? hooks : named.status()));
  Status mine;
  Bytes table;
  int self = 0;
  if (leader) {
    int nodes;
    PMPI_Comm_rank(leaders.comm, &self);
    PMPI_Comm_size(leaders.comm, &nodes);
    if (nodes >= kNoNode) {
      mine = Status(Code::kUnsupported, "more than 65534 nodes in one job");
    } else {
      const bool one_host = host_size == world_size;
      auto server = service::Server::start(
          common.secret, one_host,
          service::make_node_handler(name, static_cast<NodeIndex>(self),
                                     static_cast<NodeIndex>(nodes), p_->executor));
      if (server.is_ok()) {
        p_->server = std::move(*server);
      } else {
        mine =
            server.status().with_context("the service of a node could not be started at MPI_Init");
      }
    }
    service::Peer peer;
    peer.node = name;
    peer.domain = hints::failure_domain();
    if (p_->server) {
      peer.addresses = p_->server->addresses();
      peer.port = p_->server->port();
    }
    Encoder all;
    for (const Bytes& entry : gather(leaders.comm, encoded(peer))) {
      all.put_raw(entry.data(), entry.size());
    }
    table = all.take();
    broadcast(leaders.comm, 0, table);
  }
  broadcast(node.comm, 0, table);
  broadcast_value(node.comm, 0, self);

  std::vector<service::Peer> peers;
  Decoder decoder(table);
  while (decoder.ok() && !decoder.at_end()) {
    peers.push_back(get_fields<service::Peer>(decoder));
  }
  if (mine.is_ok()) mine = check_simulated(peers);
  if (p_->server) {
    p_->executor.connect(
        std::make_unique<service::Client>(peers, static_cast<NodeIndex>(self), common.secret));
  }
  client_ =
      std::make_unique<service::Client>(std::move(peers), static_cast<NodeIndex>(self),
                                        common.secret, p_->server ? &p_->server->local() : nullptr);
  return agree(world, mine);
}

void Job::begin() {
  if (state().job) return;
  std::unique_ptr<Job> job(new Job);
  Status status = job->start();
  if (status.is_ok()) {
    state().job = std::move(job);
  } else {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    // What the user set is told at once, and not only when a file is opened.
    if (rank == 0 && status.code() == Code::kArgument) say_error(status.message());
    state().why_not = std::move(status);
  }
}

void Job::end() {
  if (!state().job) return;
  // Nobody's service ends while somebody may still ask it.
  PMPI_Barrier(state().job->p_->world.comm);
  state().job.reset();
  state().why_not = Status(Code::kUnsupported, "MPI_Finalize was called");
}

Result<Job*> Job::get() {
  if (state().job) return state().job.get();
  return state().why_not;
}

}  // namespace dedup::engine
