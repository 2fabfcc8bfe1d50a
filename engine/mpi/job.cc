#include "engine/mpi/job.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
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
#include "service/job_services.h"
#include "service/server.h"

namespace dedup::engine {
namespace {

// This process's jobs, or why there is none. Never destroyed: a program that ends without
// MPI_Finalize has its service until the process is gone, since files are closed on the way there,
// on this node and on others.
struct State {
  std::mutex mutex;
  std::shared_ptr<Job> job;                // the one in which files are opened
  std::vector<std::shared_ptr<Job>> jobs;  // all, in the order in which they began
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

// Who looks after this job's mount on this host, if there is one: then it shows also what only
// other nodes have. Without, it goes on with what is here.
Descriptor tell_mount(const service::JobServices& services) {
  const std::string directory = hints::mount_directory();
  if (directory.empty()) return Descriptor();
  auto told = service::tell_mount(directory, services);
  if (told.is_ok()) return *std::move(told);
  if (told.status().code() != Code::kNotFound) {
    warn("the mount shows what this host has, and nothing of other nodes: " +
         told.status().message());
  }
  return Descriptor();
}

struct CommHolder {
  MPI_Comm comm = MPI_COMM_NULL;
  ~CommHolder() {
    if (comm != MPI_COMM_NULL) PMPI_Comm_free(&comm);
  }
};

// Why the program does not end yet: lines on standard error, at ever longer intervals. A launcher
// hides from ranks whether that is a terminal.
class WriteBackProgress {
 public:
  void show(const Flusher::Progress& left) {
    const auto now = Clock::now();
    if (now < next_) return;
    next_ = now + (now - begun_);
    inform("MPI_Finalize waits for what is written back: " + std::to_string(left.parts) +
           " files, " + std::to_string(left.bytes_left >> 20) + " MiB left on this node");
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point next_ = begun_ + std::chrono::seconds(5);
};

constexpr const char* kEnded =
    "the file was opened before a node was lost, and belongs to a job that has ended: close it and "
    "open it again; what was committed is there";

}  // namespace

struct Job::Private {
  // Freed by end(), not with the job: open files may have it for longer than MPI is there.
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Comm self = MPI_COMM_NULL;            // this process; likewise
  int size = 0;                             // of it
  service::Executor executor;               // of the server
  std::unique_ptr<service::Server> server;  // on the lowest rank of each node
  Descriptor mount;  // the connection to who was told of the services, if anybody was
  std::mutex mutex;
  std::multiset<int> open;  // on how many ranks each open file is
};

Job::Job(const Id128& world) : p_(std::make_unique<Private>()), world_(world) {}
Job::~Job() = default;

Status Job::start(MPI_Comm comm, Turn turn) {
  PMPI_Comm_dup(comm, &p_->ranks);
  PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &p_->self);  // without what programs attach to it
  const MPI_Comm ranks = p_->ranks;
  int rank;
  int size;
  PMPI_Comm_rank(ranks, &rank);
  PMPI_Comm_size(ranks, &size);
  p_->size = size;
  int world_rank;
  int world_size;
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &world_size);

  CommHolder host;
  CommHolder node;
  CommHolder leaders;
  PMPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host.comm);
  int host_size;
  int largest;
  PMPI_Comm_size(host.comm, &host_size);
  PMPI_Allreduce(&host_size, &largest, 1, MPI_INT, MPI_MAX, ranks);
  if (largest == 1) {
    // One rank a host; or a device without shared memory (ch3:sock), to which every rank is alone.
    PMPI_Comm_free(&host.comm);
    host.comm = split_by_name(ranks, my_host());
    PMPI_Comm_size(host.comm, &host_size);
  }
  const Result<std::string> named = hints::node_of_rank(world_rank, world_size);
  const std::string name = named.is_ok() ? *named : "";
  node.comm = split_by_name(host.comm, name);
  int node_rank;
  PMPI_Comm_rank(node.comm, &node_rank);
  const bool leader = node_rank == 0;
  PMPI_Comm_split(ranks, leader ? 0 : MPI_UNDEFINED, rank, &leaders.comm);

  // Of rank 0, the same for all.
  struct {
    Id128 id;
    service::Secret secret;
    std::chrono::seconds patience{};
  } common{};
  Status mine = named.status();
  if (rank == 0) {
    common.id = Id128::random();
    fill_randomly(common.secret);
    const auto patience = hints::node_timeout();
    common.patience = patience.is_ok() ? *patience : hints::kNodeTimeout;
    if (mine.is_ok()) mine = patience.status();
  }
  broadcast_value(ranks, 0, common);
  id_ = common.id;
  if (world_.is_zero()) world_ = id_;
  if (turn == Turn::kFirst) {
    decide_yielding(host.comm);
    set_speaker("rank " + std::to_string(world_rank) + (name.empty() ? "" : " on " + name));
    if (rank == 0) {
      for (const hints::Warning& warning : hints::unknown_variables(environ)) warn(warning.text);
    }
    const Status hooks = begin_hooks(ranks, node.comm, id_);
    if (mine.is_ok()) mine = hooks;
  }
  DEDUP_TRY(agree(ranks, mine));

  // The leaders start their services and tell each other where they are; every leader tells its
  // node's ranks.
  Bytes table;
  int self = 0;
  if (leader) {
    int nodes;
    PMPI_Comm_rank(leaders.comm, &self);
    PMPI_Comm_size(leaders.comm, &nodes);
    if (nodes >= kNoNode) {
      mine = Status(Code::kUnsupported, "more than 65534 nodes in one job");
    } else {
      const bool one_host = host_size == size;
      auto server = service::Server::start(
          common.secret, one_host,
          service::make_node_handler(name, static_cast<NodeIndex>(self),
                                     static_cast<NodeIndex>(nodes), p_->executor),
          common.patience);
      if (server.is_ok()) {
        p_->server = std::move(*server);
      } else {
        mine = server.status().with_context("the service of a node could not be started");
      }
    }
    service::Peer peer;
    peer.node = name;
    peer.domain = hints::failure_domain();
    if (p_->server) {
      peer.addresses = p_->server->addresses();
      peer.port = p_->server->port();
      peer.pulse = p_->server->pulse();
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
  const auto node_number = static_cast<NodeIndex>(self);
  if (p_->server) {
    p_->mount = tell_mount(
        {id_, common.secret, static_cast<std::uint32_t>(common.patience.count()), peers});
    p_->executor.connect(std::make_unique<service::Client>(peers, node_number, common.secret,
                                                           nullptr, common.patience));
  }
  client_ = std::make_unique<service::Client>(std::move(peers), node_number, common.secret,
                                              p_->server ? &p_->server->local() : nullptr,
                                              common.patience);
  flusher_ = std::make_unique<Flusher>();
  auto alone = Topology::build(p_->self, place());
  if (alone.is_ok()) {
    alone_.topology.emplace(*std::move(alone));
  } else if (mine.is_ok()) {
    mine = alone.status();
  }
  return agree(ranks, mine);
}

// Nobody's requests are carried out any more, also those that wait for somebody else's.
void Job::stop(const std::string& why) {
  p_->mount = Descriptor();
  client_->end(why);
  flusher_->stop();
  if (p_->server) p_->server->stop();
}

void Job::free_comms() {
  alone_.topology.reset();
  PMPI_Comm_free(&p_->self);
  PMPI_Comm_free(&p_->ranks);
}

void Job::begin() {
  if (state().job) return;
  Status status = begin_on(MPI_COMM_WORLD, Turn::kFirst);
  if (status.is_ok()) return;
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // What the user set is told at once, and not only when a file is opened.
  if (rank == 0 && status.code() == Code::kArgument) say_error(status.message());
  state().why_not = std::move(status);
}

Status Job::begin_on(MPI_Comm comm, Turn turn) {
  std::shared_ptr<Job> job(new Job(Id128{}));
  const Status status = job->start(comm, turn);
  if (!status.is_ok()) {
    job->free_comms();
    return status;
  }
  const std::lock_guard lock(state().mutex);
  state().jobs.push_back(job);
  state().job = std::move(job);
  return Status::ok();
}

bool Job::works() const {
  return client_->standing().is_ok();
}

Status Job::be_in_one(MPI_Comm comm) {
  const CommRanks ranks(comm);
  std::vector<std::shared_ptr<Job>> mine;
  {
    const std::lock_guard lock(state().mutex);
    std::ranges::copy_if(state().jobs, std::back_inserter(mine), &Job::works);
  }
  // Of those of rank 0, largest first, the first one that all are in. Behind them: who is in any.
  std::ranges::stable_sort(mine, std::greater(), [](const auto& job) { return job->p_->size; });
  std::vector<Id128> ids;
  for (const auto& job : mine) ids.push_back(job->id());
  Bytes message = encoded(ids);
  broadcast(comm, 0, message);
  const auto first = decoded<std::vector<Id128>>(message).value_or(std::vector<Id128>{});
  std::vector<std::uint64_t> in;
  for (const Id128& id : first) in.push_back(std::ranges::count(mine, id, &Job::id));
  in.push_back(mine.empty() ? 0 : 1);
  ranks.sum(in);
  const auto everybody = static_cast<std::uint64_t>(ranks.size());
  const auto found = std::find(in.begin(), in.end() - 1, everybody);
  if (found == in.end() - 1) {
    return begin_on(comm, in.back() == everybody ? Turn::kLater : Turn::kFirst);
  }
  const Id128& id = first[static_cast<std::size_t>(found - in.begin())];
  const std::lock_guard lock(state().mutex);
  state().job = *std::ranges::find(mine, id, &Job::id);
  return Status::ok();
}

Status Job::begin_anew(MPI_Comm comm) {
  DEDUP_ASSIGN(const std::shared_ptr<Job> before, get());
  // First: kernel locks of the stores' files are free when the new job's ranks go on.
  before->stop(kEnded);
  // Its communicator stays as it is: to free it takes all its ranks, of which some are lost.
  std::shared_ptr<Job> job(new Job(before->world_));
  const Status status = job->start(comm, Turn::kLater);
  if (!status.is_ok()) {
    job->free_comms();
    return status;
  }
  const std::lock_guard lock(state().mutex);
  std::ranges::replace(state().jobs, before, job);
  state().job = std::move(job);
  return Status::ok();
}

// One after the other as they began, which was the same order on all ranks of each two of them.
void Job::end() {
  State& now = state();
  if (!now.job) return;
  for (const std::shared_ptr<Job>& job : now.jobs) {
    if (!job->works()) continue;
    job->finish_write_back();
    // Nobody's service ends while somebody may still ask it.
    PMPI_Barrier(job->p_->ranks);
    job->stop("MPI_Finalize was called");
    job->free_comms();
  }
  now.jobs.clear();
  now.job.reset();
  now.why_not = Status(Code::kUnsupported, "MPI_Finalize was called");
}

// What takes long is waited for without taking the cores of those who write.
void Job::finish_write_back() {
  int rank;
  PMPI_Comm_rank(p_->ranks, &rank);
  WriteBackProgress progress;
  flusher_->finish([&](const Flusher::Progress& left) {
    if (rank == 0) progress.show(left);
  });
  (void)agree(p_->ranks, Status::ok(), Waiting::kPatient);
}

Result<std::shared_ptr<Job>> Job::get() {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  if (now.job) return now.job;
  return now.why_not;
}

bool Job::may_have_lost(int ranks) const {
  if (client_->has_missed()) return true;
  const std::lock_guard lock(p_->mutex);
  return !p_->open.empty() && *p_->open.rbegin() > ranks;
}

void Job::opened(int ranks) {
  const std::lock_guard lock(p_->mutex);
  p_->open.insert(ranks);
}

void Job::closed(int ranks) {
  const std::lock_guard lock(p_->mutex);
  p_->open.erase(p_->open.find(ranks));
}

}  // namespace dedup::engine
