#include "test/simulation/cluster.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/fields.h"
#include "base/hooks.h"
#include "service/executor.h"
#include "service/messages/file_home.h"
#include "test/hooks/forwarding_system.h"

namespace {

std::mt19937_64& product_random() {
  static std::mt19937_64 random;
  return random;
}

}  // namespace

// In place of the C library's: ids are the same for the same seed.
extern "C" int getentropy(void* buffer, size_t size) {
  auto* const out = static_cast<unsigned char*>(buffer);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<unsigned char>(product_random()());
  return 0;
}

namespace dedup::simulation {

void seed_product(std::uint64_t seed) {
  product_random().seed(seed);
}

// ---- The system, broken if wanted --------------------------------------------------------------

// Passes everything on, but for what the breakage is about.
class BrokenSystem final : public store::ForwardingSystem {
 public:
  BrokenSystem(test::MemorySystem& below, Breakage breakage)
      : ForwardingSystem(below), memory_(below), breakage_(breakage) {}

  // Files of the shared file system that this job sees as they were.
  void freeze(int job, const std::map<std::string, std::string>& copies) { frozen_[job] = copies; }
  void set_process(int process) { process_ = process; }

  int open(const char* path, int flags, mode_t mode) override {
    count_call();
    const std::string name(path);
    if (sees_old_records() && (name.ends_with("/record") || name.ends_with("/record.tmp")) &&
        (flags & O_ACCMODE) == O_RDONLY) {
      return below_.open((old_records_ + name).c_str(), flags, mode);
    }
    const auto job = frozen_.find(process_ / 16);
    if (job != frozen_.end() && (flags & O_ACCMODE) == O_RDONLY) {
      const auto copy = job->second.find(path);
      if (copy != job->second.end()) return below_.open(copy->second.c_str(), flags, mode);
    }
    return below_.open(path, flags, mode);
  }
  int close(int fd) override {
    waited_for_.erase(fd);
    return below_.close(fd);
  }
  int list(const char* path, std::vector<std::string>& names) override {
    count_call();
    const std::string name(path);
    if (sees_old_records() && name.ends_with("/generations")) {
      return below_.list((old_records_ + name).c_str(), names);
    }
    return below_.list(path, names);
  }
  int stat(const char* path, struct stat* about) override {
    count_call();
    return below_.stat(said_to_be(path), about);
  }
  int lstat(const char* path, struct stat* about) override {
    count_call();
    return below_.lstat(said_to_be(path), about);
  }
  int rename(const char* from, const char* to) override {
    count_call();
    if (breakage_ == Breakage::kLostKept && is_of_kept(from, to)) return 0;
    return below_.rename(from, to);
  }
  int link(const char* from, const char* to) override {
    const std::string_view name(to);
    const bool is_segment = name.find("/segments/") != std::string_view::npos;
    if (breakage_ == Breakage::kLostLinks && name.find("/shard-") != std::string_view::npos) {
      return 0;
    }
    if (breakage_ == Breakage::kLostSegments && is_segment) {
      said_[to] = from;
      return 0;
    }
    const int result = below_.link(from, to);
    const bool is_moved = breakage_ == Breakage::kMovedSegments && is_segment && result == 0;
    return is_moved ? below_.unlink(from) : result;
  }
  int unlink(const char* path) override {
    count_call();
    if (said_.erase(path) != 0) return 0;
    return below_.unlink(path);
  }
  int fsync(int fd) override { return is_lost(fd) ? 0 : below_.fsync(fd); }
  int fdatasync(int fd) override { return is_lost(fd) ? 0 : below_.fdatasync(fd); }
  int flock(int fd, int operation) override {
    count_call();
    const int result = breakage_ == Breakage::kNoLocks ? 0 : below_.flock(fd, operation);
    const bool waits = (operation & LOCK_EX) != 0 && (operation & LOCK_NB) == 0;
    if (result == 0 && waits && is_upkeep()) waited_for_.insert(fd);
    return result;
  }

  // See Cluster.
  void interrupt(std::uint64_t n, std::function<void()> what) {
    calls_left_ = n;
    what_ = std::move(what);
  }
  bool end_interrupt() { return std::exchange(what_, nullptr) == nullptr; }
  // Where the records are as they were; empty: nowhere.
  void show_records(std::string where) { old_records_ = std::move(where); }

 private:
  bool is_lost(int fd) {
    struct stat about {};
    if (below_.fstat(fd, &about) != 0) return false;
    const Breakage kind =
        S_ISDIR(about.st_mode) ? Breakage::kNoDirectoryFlush : Breakage::kNoFileFlush;
    return breakage_ == kind;
  }

  // Whose second name `path` is said to be (kLostSegments).
  const char* said_to_be(const char* path) const {
    const auto found = said_.find(path);
    return found == said_.end() ? path : found->second.c_str();
  }

  // Whether it commits a file that is a kept generation: its record has such a name.
  bool is_of_kept(const char* from, std::string_view to) const {
    if (!to.ends_with("/record")) return false;
    const Bytes bytes = memory_.content(from);
    const std::string_view record(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t name = record.find("/shared/f");
    return name != record.npos && record.substr(name, 11).ends_with('@');
  }

  bool is_upkeep() const { return process_ / 16 == kUpkeep; }
  bool sees_old_records() const { return is_upkeep() && !old_records_.empty(); }
  void count_call() {
    if (!what_ || !is_upkeep()) return;
    if (calls_left_ > 0) --calls_left_;
    if (calls_left_ == 0 && waited_for_.empty()) std::exchange(what_, nullptr)();
  }

  const test::MemorySystem& memory_;
  Breakage breakage_;
  int process_ = 0;
  std::map<std::string, std::string, std::less<>> said_;
  std::map<int, std::map<std::string, std::string>> frozen_;  // by job
  std::string old_records_;
  std::uint64_t calls_left_ = 0;
  std::function<void()> what_;
  std::set<int> waited_for_;  // dedupctl's open files that others would wait for
};

// ---- The cluster -------------------------------------------------------------------------------

Cluster::Cluster(Breakage breakage)
    : breakage_(breakage),
      broken_(std::make_unique<BrokenSystem>(memory_, breakage)),
      faulty_(std::make_unique<store::FaultySystem>(*broken_, plan_)) {
  faulty_->on_failed_sync = [this](int fd) { memory_.fail_sync(fd); };
  before_ = &store::use_system(*faulty_);
  // Files here have a few chunks: also their indexes are to be taken over in part.
  ::setenv("DEDUP_TEST_WORTH_KEEPING", "1", 1);
  if (entries_worth_keeping() != 1) std::abort();
  memory_.mount("/shared");
  memory_.mkdir("/frozen", 0700);
  for (NodeIndex n = 0; n < kNodes; ++n) memory_.mount(disk(n));
}

Cluster::~Cluster() {
  store::use_system(*before_);
}

void Cluster::wipe(NodeIndex node) {
  memory_.mount(disk(node));
}

void Cluster::remember(NodeIndex node) {
  Remembered& remembered = remembered_[node];
  remembered.entries.clear();
  remembered.there = true;
  for (const auto& [name, size] : memory_.tree(disk(node))) {
    const std::string path = disk(node) + "/" + name;
    struct stat about {};
    (void)memory_.stat(path.c_str(), &about);
    const bool is_directory = name.back() == '/';
    remembered.entries.push_back(
        {name, about.st_ino, is_directory ? Bytes{} : memory_.content(path)});
  }
}

bool Cluster::bring_back(NodeIndex node) {
  const Remembered& remembered = remembered_[node];
  if (!remembered.there) return false;
  wipe(node);
  const auto path_of = [&](const std::string& name) { return disk(node) + "/" + name; };
  // Directories come in the order of their depth.
  std::vector<const Remembered::Entry*> sorted;
  for (const auto& entry : remembered.entries) sorted.push_back(&entry);
  const auto depth = [](const auto* e) { return std::count(e->name.begin(), e->name.end(), '/'); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) {
    const bool a_is_directory = a->name.back() == '/';
    const bool b_is_directory = b->name.back() == '/';
    if (a_is_directory != b_is_directory) return a_is_directory;
    return depth(a) < depth(b);
  });
  std::map<ino_t, std::string> first_names;  // of files
  for (const auto* entry : sorted) {
    std::string name = entry->name;
    if (name.back() == '/') {
      name.pop_back();
      memory_.mkdir(path_of(name).c_str(), 0700);
      continue;
    }
    const auto [first, is_new] = first_names.emplace(entry->inode, path_of(name));
    if (is_new) {
      memory_.put_content(path_of(name), entry->content);
    } else {
      memory_.link(first->second.c_str(), path_of(name).c_str());
    }
  }
  memory_.settle(disk(node));
  return true;
}

void Cluster::lose_power(NodeIndex node, std::uint64_t seed) {
  Random random(seed);
  const auto order =
      random() % 2 == 0 ? test::MemorySystem::Order::kAny : test::MemorySystem::Order::kInOrder;
  memory_.crash(disk(node), test::choose_randomly(random()), order);
}

void Cluster::plan_fault(store::Fault fault, std::uint64_t n, bool at_shared) {
  struck_process_ = 0;
  faulty_->is_meant = nullptr;
  if (at_shared) {
    faulty_->is_meant = [this](auto* path, int fd) { return memory_.is_on("/shared", path, fd); };
  }
  plan_.set(fault, n);
}

void Cluster::end_fault() {
  plan_.set(store::Fault::kNone, 0);
}

bool Cluster::job_died() const {
  const store::Fault fault = plan_.fault;
  return plan_.struck != 0 && (fault == store::Fault::kDead || fault == store::Fault::kDeadShort);
}

void Cluster::set_process(int process) {
  if (plan_.struck != 0 && struck_process_ == 0) struck_process_ = process_;
  process_ = process;
  memory_.set_process(process);
  broken_->set_process(process);
}

void Cluster::freeze_view(int job) {
  if (breakage_ != Breakage::kNoParentCheck) return;
  std::map<std::string, std::string> copies;
  for (const auto& [name, size] : memory_.tree("/shared")) {
    if (name.back() == '/') continue;
    const std::string copy = "/frozen/" + std::to_string(job) + name;
    memory_.put_content(copy, memory_.content("/shared/" + name));
    copies["/shared/" + name] = copy;
  }
  broken_->freeze(job, copies);
}

void Cluster::freeze_records() {
  if (breakage_ != Breakage::kNoSecondLook) return;
  const std::string where = "/frozen/records" + std::to_string(++views_);
  memory_.mkdir(where.c_str(), 0700);
  for (NodeIndex n = 0; n < kNodes; ++n) {
    memory_.mkdir((where + disk(n)).c_str(), 0700);
    // A directory comes before what is in it.
    for (const auto& [name, size] : memory_.tree(disk(n))) {
      const std::string path = disk(n) + "/" + name;
      const bool is_record = name.ends_with("/record") || name.ends_with("/record.tmp");
      if (is_record) memory_.put_content(where + path, memory_.content(path));
      if (name.ends_with('/')) {
        memory_.mkdir((where + path.substr(0, path.size() - 1)).c_str(), 0700);
      }
    }
  }
  broken_->show_records(where);
}

void Cluster::unfreeze_records() {
  broken_->show_records({});
}

void Cluster::interrupt(std::uint64_t n, std::function<void()> what) {
  broken_->interrupt(n, std::move(what));
}

bool Cluster::end_interrupt() {
  return broken_->end_interrupt();
}

// ---- A job -------------------------------------------------------------------------------------

namespace {

// Requests that are under way at once are carried out in any order.
class DirectTransport final : public service::Transport {
 public:
  DirectTransport(Cluster& cluster, Job& whole_job, int job, const std::vector<NodeIndex>& nodes,
                  Random& random)
      : cluster_(cluster), whole_job_(whole_job), job_(job), random_(random) {
    for (NodeIndex i = 0; i < nodes.size(); ++i) {
      const std::string name = "n" + std::to_string(nodes[i]);
      auto executor = std::make_unique<service::Executor>(
          service::Executor::Options{.run = service::Executor::Run::kByHand});
      auto handler =
          service::make_node_handler(name, i, static_cast<NodeIndex>(nodes.size()), *executor);
      nodes_.push_back({name, std::move(executor), std::move(handler)});
    }
    // When all nodes are known: a client sees then who lives.
    for (NodeIndex i = 0; i < nodes.size(); ++i) {
      nodes_[i].executor->connect(
          std::make_unique<service::Client>(std::make_unique<FromNode>(*this, i)));
    }
  }

  NodeIndex nodes() const override { return static_cast<NodeIndex>(nodes_.size()); }
  NodeIndex self() const override { return 0; }
  const std::string& node_name(NodeIndex node) const override { return nodes_[node].name; }

  std::unique_ptr<Call> send(NodeIndex node, service::Opcode opcode, Bytes body) override {
    auto request = std::make_shared<Request>();
    request->node = node;
    request->opcode = opcode;
    request->body = std::move(body);
    waiting_.push_back(request);
    return std::make_unique<DirectCall>(*this, std::move(request));
  }

 private:
  // The same requests, from another node.
  class FromNode final : public service::Transport {
   public:
    FromNode(DirectTransport& all, NodeIndex self) : all_(all), self_(self) {}
    NodeIndex nodes() const override { return all_.nodes(); }
    NodeIndex self() const override { return self_; }
    const std::string& node_name(NodeIndex node) const override { return all_.node_name(node); }
    std::unique_ptr<Call> send(NodeIndex node, service::Opcode opcode, Bytes body) override {
      return all_.send(node, opcode, std::move(body));
    }

   private:
    DirectTransport& all_;
    NodeIndex self_;
  };
  struct Node {
    std::string name;
    std::unique_ptr<service::Executor> executor;
    std::unique_ptr<service::Handler> handler;
  };
  struct Request {
    NodeIndex node = 0;
    service::Opcode opcode{};
    Bytes body;
    bool is_step = false;  // no request, but the next step of what the node's executor does
    std::optional<Result<Bytes>> reply;
  };
  class DirectResponder final : public service::Responder {
   public:
    explicit DirectResponder(std::shared_ptr<Request> request) : request_(std::move(request)) {}
    service::ConnectionId connection() const override { return 1; }
    void reply(const Status& status, Bytes body) override {
      request_->reply = status.is_ok() ? Result<Bytes>(std::move(body)) : Result<Bytes>(status);
    }

   private:
    std::shared_ptr<Request> request_;
  };
  class DirectCall final : public Call {
   public:
    DirectCall(DirectTransport& transport, std::shared_ptr<Request> request)
        : transport_(transport), request_(std::move(request)) {}
    Result<Bytes> receive() override {
      while (!request_->reply && !transport_.waiting_.empty()) transport_.carry_out_one();
      if (!request_->reply) return Status(Code::kInternal, "a request that is never answered");
      return std::move(*request_->reply);
    }
    bool is_ready() override { return request_->reply.has_value(); }

   private:
    DirectTransport& transport_;
    std::shared_ptr<Request> request_;
  };

  void carry_out_one() {
    const std::size_t which = random_() % waiting_.size();
    const std::shared_ptr<Request> request = waiting_[which];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(which));
    if (request->is_step) {
      bool did = false;
      as_process_of(request->node, [&] { did = nodes_[request->node].executor->run_one(); });
      if (did) waiting_.push_back(request);
      return;
    }
    if (cluster_.breakage() == Breakage::kFenceBeforeRecords) {
      if (request->opcode == service::Opcode::kCommit) {
        request->reply = Bytes{};
        delayed_.push_back(request);
        return;
      }
      if (request->opcode == service::Opcode::kCommitDone) {
        for (const auto& commit : std::exchange(delayed_, {})) handle(commit);
      }
    }
    if (cluster_.breakage() == Breakage::kNumberTwice &&
        request->opcode == service::Opcode::kNextGeneration) {
      const auto asked = decoded<service::NextGeneration>(request->body).value();
      request->reply = encoded(service::GenerationNumber{asked.after + 1});
      return;
    }
    if (whole_job_.intercept) request->reply = whole_job_.intercept(request->node, request->opcode);
    if (request->reply) return;
    if (whole_job_.listen) whole_job_.listen(request->node, request->opcode, request->body);
    handle(request);
  }

  void handle(const std::shared_ptr<Request>& request) {
    as_process_of(request->node, [&] {
      nodes_[request->node].handler->handle(request->opcode, request->body,
                                            std::make_unique<DirectResponder>(request));
    });
    if (request->opcode == service::Opcode::kRestore) {
      auto step = std::make_shared<Request>();
      step->node = request->node;
      step->is_step = true;
      waiting_.push_back(std::move(step));
    }
  }

  void as_process_of(NodeIndex node, const std::function<void()>& work) {
    const int before = cluster_.process();
    cluster_.set_process(job_ * 16 + node + 1);
    work();
    cluster_.set_process(before);
  }

  Cluster& cluster_;
  Job& whole_job_;
  int job_;
  Random& random_;
  std::vector<Node> nodes_;
  std::vector<std::shared_ptr<Request>> waiting_;
  std::vector<std::shared_ptr<Request>> delayed_;
};

}  // namespace

Job::Job(Cluster& cluster, int number, std::vector<NodeIndex> nodes, std::uint64_t seed)
    : cluster_(cluster), number_(number), nodes_(std::move(nodes)), random_(seed) {
  cluster_.set_process(number_ * 16 + 1);
  client_ = std::make_unique<service::Client>(
      std::make_unique<DirectTransport>(cluster_, *this, number_, nodes_, random_));
}

Job::~Job() {
  file.reset();
  client_.reset();
  for (int i = 0; i <= kNodes; ++i) cluster_.memory().kill(number_ * 16 + i);
}

}  // namespace dedup::simulation
