#include "engine/mpi/job.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/codec.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/hooks.h"
#include "hints/hints.h"
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

std::string my_node_name() {
  if (const char* name = std::getenv("DEDUP_NODE"); name != nullptr && *name != '\0') return name;
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') return "localhost";
  return host;
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
  Encoder encoder;
  encoder.put(std::string_view(name));
  // Gathered and answered by rank 0, so that nobody but one rank a host sees all names.
  const std::vector<Bytes> names = gather(comm, encoder.bytes());
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

struct CommHolder {
  MPI_Comm comm = MPI_COMM_NULL;
  ~CommHolder() {
    if (comm != MPI_COMM_NULL) PMPI_Comm_free(&comm);
  }
};

}  // namespace

struct Job::Private {
  CommHolder world;
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
  const std::string name = my_node_name();
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
    for (const hints::Warning& warning : hints::unknown_variables(environ)) {
      std::fprintf(stderr, "dedup: warning: %s\n", warning.text.c_str());
    }
    common.id = Id128::random();
    fill_randomly(common.secret);
  }
  broadcast_value(world, 0, common);
  id_ = common.id;

  // The leaders start their services and tell each other where they are; every leader tells its
  // node's ranks.
  Status mine = begin_hooks(world, node.comm, id_);
  Bytes table;
  int self = 0;
  if (leader && mine.is_ok()) {
    int nodes;
    PMPI_Comm_rank(leaders.comm, &self);
    PMPI_Comm_size(leaders.comm, &nodes);
    if (nodes >= kNoNode) {
      mine = Status(Code::kUnsupported, "more than 65534 nodes in one job");
    } else {
      const bool one_host = host_size == world_size;
      auto server =
          service::Server::start(common.secret, one_host,
                                 service::make_node_handler(name, static_cast<NodeIndex>(self),
                                                            static_cast<NodeIndex>(nodes)));
      if (server.is_ok()) {
        p_->server = std::move(*server);
      } else {
        mine = server.status();
      }
    }
    Encoder encoder;
    encoder.put(std::string_view(name));
    encoder.put(p_->server ? p_->server->port() : std::uint16_t{0});
    encoder.put(static_cast<std::uint32_t>(p_->server ? p_->server->addresses().size() : 0));
    if (p_->server) {
      for (const std::string& address : p_->server->addresses()) {
        encoder.put(std::string_view(address));
      }
    }
    Encoder all;
    for (const Bytes& entry : gather(leaders.comm, encoder.bytes())) {
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
    service::Peer peer;
    peer.node = decoder.get_string();
    peer.port = decoder.get<std::uint16_t>();
    const auto addresses = decoder.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < addresses && decoder.ok(); ++i) {
      peer.addresses.push_back(decoder.get_string());
    }
    peers.push_back(std::move(peer));
  }
  client_ = std::make_unique<service::Client>(std::move(peers), static_cast<NodeIndex>(self),
                                              common.secret);
  return agree(world, mine);
}

void Job::begin() {
  if (state().job) return;
  std::unique_ptr<Job> job(new Job);
  Status status = job->start();
  if (status.is_ok()) {
    state().job = std::move(job);
  } else {
    state().why_not = status.with_context("the service of a node could not be started at MPI_Init");
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
