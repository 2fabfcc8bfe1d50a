// How much opening, committing, losing a node and healing takes of the busiest node of a job of
// thousands: the product's protocol, services and stores, with a rank on each node, on disks in
// memory. One thread plays all ranks and services.
//
//   simulate_scale NODES [BLOCKS]    BLOCKS: of 4 MiB that each rank writes, of which a part is a
//                                    chunk and the rest a hole; 16 if it is not said
//
// Prints a line of JSON for each step, with the most of any node: messages of MPI (rank_fibers.h)
// and requests between nodes with their replies, sent and received; their bytes; memory that was
// taken beyond what the step began with, by the node's rank and service, without its disk; other
// nodes that it had to do with through requests; and round trips of requests of one rank, one after
// the other. And the seconds of the processor that all nodes together took.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/fields.h"
#include "engine/protocol/find_and_attach.h"
#include "engine/protocol/generation_commit.h"
#include "engine/protocol/leave.h"
#include "service/client.h"
#include "service/executor.h"
#include "service/messages/homes.h"
#include "service/server.h"
#include "test/faults/memory_system.h"
#include "test/hooks/forwarding_system.h"
#include "test/simulation/chunks.h"
#include "test/simulation/rank_fibers.h"

// ---- Memory, by node ----------------------------------------------------------------------------

namespace {

// Whose memory what is allocated next is; a node, or nobody's.
constexpr std::size_t kNobody = 0;
std::size_t owner = kNobody;

struct Use {
  std::int64_t now = 0;
  std::int64_t most = 0;
};
constexpr std::size_t kMostNodes = 65536;
Use uses[kMostNodes];

// Before each allocation.
struct alignas(16) Tag {
  std::size_t owner;
  std::size_t size;
};

class Owned {
 public:
  explicit Owned(std::size_t by) : before_(owner) { owner = by; }
  ~Owned() { owner = before_; }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

 private:
  std::size_t before_;
};

}  // namespace

void* operator new(std::size_t size) {
  auto* const tag = static_cast<Tag*>(std::malloc(sizeof(Tag) + size));
  if (tag == nullptr) std::abort();
  tag->owner = owner;
  tag->size = size;
  Use& use = uses[owner];
  use.now += static_cast<std::int64_t>(size);
  use.most = std::max(use.most, use.now);
  return tag + 1;
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  Tag* const tag = static_cast<Tag*>(memory) - 1;
  uses[tag->owner].now -= static_cast<std::int64_t>(tag->size);
  std::free(tag);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}

namespace dedup::simulation {
namespace {

using service::Opcode;

// Of a frame, around a request's or a reply's body (doc/service.md, "Transport").
constexpr std::uint64_t kFrame = 32;

const std::string kPath = "/shared/ckpt";
constexpr std::uint32_t kChunk = 64;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "simulate_scale: %s\n", what.c_str());
  std::exit(1);
}

void check(const Status& status, const char* what) {
  if (!status.is_ok()) fail(std::string(what) + ": " + status.message());
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What is stored is on a node's disk, not in its memory.
class Disks final : public store::ForwardingSystem {
 public:
  using ForwardingSystem::ForwardingSystem;
  int open(const char* path, int flags, mode_t mode) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::open(path, flags, mode);
  }
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::pwritev(fd, parts, count, offset);
  }
  int ftruncate(int fd, off_t size) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::ftruncate(fd, size);
  }
  int fsync(int fd) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::fsync(fd);
  }
  int fdatasync(int fd) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::fdatasync(fd);
  }
  int allocate(int fd, off_t offset, off_t bytes) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::allocate(fd, offset, bytes);
  }
  int flock(int fd, int operation) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::flock(fd, operation);
  }
  int mkdir(const char* path, mode_t mode) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::mkdir(path, mode);
  }
  int rename(const char* from, const char* to) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::rename(from, to);
  }
  int link(const char* from, const char* to) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::link(from, to);
  }
  int unlink(const char* path) override {
    const Owned nobody(kNobody);
    return ForwardingSystem::unlink(path);
  }
};

// A job: a rank and a service on each of some nodes.
class World {
 public:
  explicit World(std::vector<std::uint32_t> names)
      : fibers_(static_cast<int>(names.size())), names_(std::move(names)) {
    const auto count = static_cast<NodeIndex>(names_.size());
    for (NodeIndex n = 0; n < count; ++n) {
      const Owned by_node(n + std::size_t{1});
      Node& node = nodes_.emplace_back();
      node.name = "n" + std::to_string(names_[n]);
      node.executor = std::make_unique<service::Executor>(
          service::Executor::Options{.run = service::Executor::Run::kByHand});
      node.handler = service::make_node_handler(node.name, n, count, *node.executor);
    }
    for (NodeIndex n = 0; n < count; ++n) {
      const Owned by_node(n + std::size_t{1});
      nodes_[n].client = std::make_unique<service::Client>(std::make_unique<Wires>(*this, n));
      nodes_[n].executor->connect(
          std::make_unique<service::Client>(std::make_unique<Wires>(*this, n)));
    }
    fibers_.on_switch = [](int rank) { owner = static_cast<std::size_t>(rank + 1); };
  }
  ~World() {
    for (Node& node : nodes_) node.file.reset();
  }

  NodeIndex nodes() const { return static_cast<NodeIndex>(nodes_.size()); }
  engine::JobFile& file(int rank) { return *nodes_[static_cast<std::size_t>(rank)].file; }

  // A handle of the file on each rank, for writing.
  void make_handles(bool heals) {
    const Id128 handle = Id128::random();
    for (NodeIndex n = 0; n < nodes(); ++n) {
      const Owned by_node(n + std::size_t{1});
      auto file = std::make_unique<engine::JobFile>(*nodes_[n].client, fibers_.rank(n));
      file->path = kPath;
      file->hints.store = "/%n/s";
      file->hints.replication = 2;
      file->hints.replication_is_given = true;
      file->home = service::file_home(file->path, nodes());
      file->writable = true;
      file->handle = handle;
      file->heals = heals;
      if (heals) file->on_loss = engine::OnLoss::kRefuse;
      nodes_[n].file = std::move(file);
    }
  }

  // All ranks do `what`; prints what it took, if it has a name.
  void step(const char* name, const std::function<Status(engine::JobFile&)>& what) {
    fibers_.reset_traffic();
    std::vector<std::int64_t> before;
    for (NodeIndex n = 0; n < nodes(); ++n) {
      Use& use = uses[n + std::size_t{1}];
      use.most = use.now;
      before.push_back(use.now);
      nodes_[n].spoke_with.clear();
      nodes_[n].requests = 0;
    }
    const double begin = processor_seconds();
    fibers_.run([&](int rank) { check(what(file(rank)), name); });
    if (*name == '\0') return;
    const double seconds = processor_seconds() - begin;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t received = 0;
    std::int64_t memory = 0;
    std::size_t partners = 0;
    std::uint64_t requests = 0;
    for (NodeIndex n = 0; n < nodes(); ++n) {
      const Traffic& traffic = fibers_.traffic(n);
      messages = std::max(messages, traffic.messages());
      bytes = std::max(bytes, traffic.bytes());
      received = std::max(received, traffic.received_bytes);
      memory = std::max(memory, uses[n + std::size_t{1}].most - before[n]);
      partners = std::max(partners, nodes_[n].spoke_with.size());
      requests = std::max(requests, nodes_[n].requests);
    }
    std::printf(
        "{\"step\": \"%s\", \"nodes\": %u, \"messages\": %llu, \"bytes\": %llu, "
        "\"bytes_received\": %llu, \"bytes_received_rank_0\": %llu, \"bytes_memory\": %lld, "
        "\"partners\": %zu, \"requests\": %llu, \"seconds_all\": %.3f}\n",
        name, unsigned{nodes()}, static_cast<unsigned long long>(messages),
        static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(received),
        static_cast<unsigned long long>(fibers_.traffic(0).received_bytes),
        static_cast<long long>(memory), partners, static_cast<unsigned long long>(requests),
        seconds);
    std::fflush(stdout);
  }

 private:
  using Reply = std::optional<Result<Bytes>>;
  struct Node {
    std::string name;
    std::unique_ptr<service::Executor> executor;
    std::unique_ptr<service::Handler> handler;
    std::unique_ptr<service::Client> client;
    std::unique_ptr<engine::JobFile> file;
    std::set<NodeIndex> spoke_with;  // through requests
    std::uint64_t requests = 0;      // of its rank, to other nodes
  };
  class Answer final : public service::Responder {
   public:
    Answer(World& world, NodeIndex from, NodeIndex to, std::shared_ptr<Reply> reply)
        : world_(world), from_(from), to_(to), reply_(std::move(reply)) {}
    service::ConnectionId connection() const override { return to_ + std::uint64_t{1}; }
    void reply(const Status& status, Bytes body) override {
      world_.count(from_, to_, body.size());
      *reply_ = status.is_ok() ? Result<Bytes>(std::move(body)) : Result<Bytes>(status);
    }

   private:
    World& world_;
    NodeIndex from_;
    NodeIndex to_;
    std::shared_ptr<Reply> reply_;
  };
  // Requests are carried out as they are sent; what has to wait is answered when another rank's
  // request lets it.
  class Wires final : public service::Transport {
   public:
    Wires(World& world, NodeIndex self) : world_(world), self_(self) {}
    NodeIndex nodes() const override { return world_.nodes(); }
    NodeIndex self() const override { return self_; }
    const std::string& node_name(NodeIndex node) const override { return world_.nodes_[node].name; }
    std::unique_ptr<Call> send(NodeIndex node, Opcode opcode, Bytes body) override {
      auto reply = std::make_shared<Reply>();
      world_.count(self_, node, body.size());
      if (self_ != node) {
        ++world_.nodes_[self_].requests;
        world_.nodes_[self_].spoke_with.insert(node);
        world_.nodes_[node].spoke_with.insert(self_);
      }
      const Owned by_node(node + std::size_t{1});
      world_.nodes_[node].handler->handle(opcode, body,
                                          std::make_unique<Answer>(world_, node, self_, reply));
      return std::make_unique<Wire>(world_, node, std::move(reply));
    }

   private:
    World& world_;
    NodeIndex self_;
  };
  class Wire final : public service::Transport::Call {
   public:
    Wire(World& world, NodeIndex node, std::shared_ptr<Reply> reply)
        : world_(world), node_(node), reply_(std::move(reply)) {}
    Result<Bytes> receive() override {
      world_.fibers_.wait_until([this] {
        if (*reply_) return true;
        const Owned by_node(node_ + std::size_t{1});
        while (!*reply_ && world_.nodes_[node_].executor->run_one()) {
        }
        return reply_->has_value();
      });
      return *std::move(*reply_);
    }

   private:
    World& world_;
    NodeIndex node_;
    std::shared_ptr<Reply> reply_;
  };

  void count(NodeIndex from, NodeIndex to, std::size_t body) {
    if (from != to) fibers_.count(from, to, kFrame + body);
  }

  RankFibers fibers_;
  std::vector<std::uint32_t> names_;
  std::vector<Node> nodes_;
};

Status open(engine::JobFile& file) {
  bool created = false;
  const auto begin = [&]() -> Status {
    const std::string store = "/" + file.client().node_name(file.client().self()) + "/s";
    DEDUP_ASSIGN(file.local, engine::LocalFile::get(file.client(), file.identity(), store));
    return Status::ok();
  };
  return engine::find_and_attach(file, {true, false}, begin, created);
}

Status commit(engine::JobFile& file) {
  DEDUP_ASSIGN(const auto lock, engine::JobLock::take_with_view(file, service::LockKind::kCommit));
  const Status status = engine::GenerationCommit(file).run([] { return Status::ok(); });
  return file.ranks().agree(status);
}

Status close(engine::JobFile& file) {
  return engine::leave(file, engine::Leaving::kAsItIs);
}

// Blocks one after the other, as an application's rank has them, each with a chunk of its own at
// its begin, which the next node has as well. What MPI would carry goes with requests.
Status write(engine::JobFile& file, std::uint64_t blocks, std::uint64_t what) {
  const auto rank = static_cast<NodeIndex>(file.rank());
  NodeSet on{rank, static_cast<NodeIndex>((rank + 1) % file.nodes())};
  std::sort(on.begin(), on.end());
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = rank * blocks + i;
    Bytes bytes(kChunk);
    std::memcpy(bytes.data(), &block, sizeof block);
    std::memcpy(bytes.data() + sizeof block, &what, sizeof what);
    DEDUP_TRY(write_chunk(file, block * kBlockSpan, bytes, on).status());
  }
  return Status::ok();
}

void simulate(std::uint32_t nodes, std::uint64_t blocks) {
  test::MemorySystem memory;
  Disks disks(memory);
  store::use_system(disks);
  memory.mount("/shared");
  std::vector<std::uint32_t> all;
  for (std::uint32_t n = 0; n < nodes; ++n) {
    all.push_back(n);
    if (memory.mkdir(("/n" + std::to_string(n)).c_str(), 0700) != 0) fail("mkdir failed");
  }
  {
    World world(all);
    world.make_handles(false);
    world.step("create", open);
    world.step("", [&](engine::JobFile& file) { return write(file, blocks, 1); });
    world.step("commit", commit);
    world.step("", [&](engine::JobFile& file) { return write(file, 1, 2); });
    world.step("commit of one block a rank", commit);
    world.step("close", close);
  }
  {
    World world(all);
    world.make_handles(false);
    world.step("open", open);
    world.step("", close);
  }
  all.erase(all.begin() + nodes / 2);
  {
    World world(all);
    world.make_handles(true);
    world.step("open after a loss", open);
    world.step("heal", commit);
    world.step("", close);
  }
}

std::uint32_t number_of(const char* text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value > 32768) fail("not a number: " + std::string(text));
  return static_cast<std::uint32_t>(value);
}

}  // namespace
}  // namespace dedup::simulation

int main(int argc, char** argv) {
  using namespace dedup::simulation;
  if (argc != 2 && argc != 3) fail("usage: simulate_scale NODES [BLOCKS]");
  const std::uint32_t nodes = number_of(argv[1]);
  const std::uint32_t blocks = argc == 3 ? number_of(argv[2]) : 16;
  if (nodes < 3 || blocks < 1) fail("at least 3 nodes and a block");
  simulate(nodes, blocks);
  return 0;
}
