#include "test/simulation/run.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <set>

#include "engine/protocol/delete_file.h"
#include "engine/protocol/find_and_attach.h"
#include "engine/protocol/generation_commit.h"
#include "engine/protocol/leases.h"
#include "engine/protocol/leave.h"
#include "engine/protocol/reader.h"
#include "service/messages/file_home.h"
#include "service/messages/homes.h"
#include "service/messages/store_node.h"
#include "test/simulation/chunks.h"
#include "test/simulation/dedupctl.h"
#include "test/simulation/model.h"
#include "test/simulation/tidy.h"

namespace dedup::simulation {
namespace {

using Kind = Step::Kind;
constexpr std::size_t kDeleter = kJobs;  // the job that deletes is of its own

std::array<std::byte, kCellSize> cell_bytes(std::uint64_t value) {
  std::array<std::byte, kCellSize> bytes{};
  for (std::size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
    bytes[8 + i] = value == 0 ? std::byte{0} : ~bytes[i];
  }
  return bytes;
}

// ~0: not what any cell may hold.
std::uint64_t cell_value(std::span<const std::byte, kCellSize> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  const auto right = cell_bytes(value);
  return std::equal(bytes.begin(), bytes.end(), right.begin()) ? value : ~std::uint64_t{0};
}

std::string text_of(const Content& content) {
  std::string text = "[";
  for (const std::uint64_t value : content) text += " " + std::to_string(value);
  return text + " ]";
}

// A job, and what it knows of its file.
struct Slot {
  std::unique_ptr<Job> job;
  std::shared_ptr<File> file;
  std::shared_ptr<const Version> base;
  std::size_t name = 0;
  Content content{};
  bool dirty = false;
  bool complete = true;        // enough stores are there to read all of the base
  std::set<NodeIndex> faulty;  // nodes on which a call failed
};

class Run {
 public:
  Run(Breakage breakage, Counts& counts, bool verbose)
      : cluster_(breakage), counts_(counts), verbose_(verbose) {}

  ~Run() {
    for (std::size_t i = 0; i < kJobs; ++i) kill(i);
  }

  std::optional<std::string> step(const Step& step) {
    seed_product(step.seed);
    problem_.reset();
    ++counts_.steps;
    if (verbose_) std::fprintf(stderr, "%s\n", step.text().c_str());
    carry_out(step);
    if (verbose_) show();
    return problem_;
  }

  // In the end every file is read once more, and gc leaves what is needed and nothing else.
  std::optional<std::string> finish() {
    problem_.reset();
    for (std::size_t i = 0; i < kJobs; ++i) kill(i);
    read_all();
    if (!problem_) check_tidy();
    // What gc has left is what there was.
    if (!problem_) read_all();
    return problem_;
  }

 private:
  void read_all() {
    for (std::size_t name = 0; name < kNames && !problem_; ++name) {
      const Name& entry = model_.name(name);
      if (!entry.file || entry.is_copy) continue;
      Step last;
      last.seed = 1 + name;
      last.name = name;
      last.nodes = entry.file->last->nodes;
      if (last.nodes.empty()) last.nodes = {0, 1};
      last.copies = 1;
      seed_product(last.seed);
      open(last);
      kill(0);
    }
  }

  void carry_out(const Step& step) {
    Slot& slot = slots_[step.job];
    Name& name = model_.name(step.name);
    switch (step.kind) {
      case Kind::kOpen:
        if (!slot.job) open(step);
        break;
      case Kind::kWrite:
        if (slot.job) write(step);
        break;
      case Kind::kCommit:
      case Kind::kClose:
        if (slot.job) commit_and_close(step);
        break;
      case Kind::kKill:
        kill(step.job);
        break;
      case Kind::kDelete:
        delete_name(step);
        break;
      case Kind::kRemove:
        if (!name.file) break;
        cluster_.memory().unlink(Cluster::path(step.name).c_str());
        name = {};
        break;
      case Kind::kRename:
        rename(step);
        break;
      case Kind::kCopy:
        copy(step);
        break;
      case Kind::kLose:
        kill_on(step.node);
        cluster_.wipe(step.node);
        model_.wipe(step.node);
        break;
      case Kind::kRemember:
        cluster_.remember(step.node);
        model_.remember(step.node);
        break;
      case Kind::kBringBack:
        kill_on(step.node);
        if (cluster_.bring_back(step.node)) model_.bring_back(step.node);
        break;
      case Kind::kPress:
        if (slot.job) press(step);
        break;
      case Kind::kGc:
      case Kind::kGcUnnamed:
      case Kind::kRm:
      case Kind::kRmOn:
        look_after(step);
        break;
      case Kind::kEnd:
        break;
    }
  }

  // What stands at the real paths.
  void show() const {
    for (const auto& [name, size] : cluster_.memory().tree("/shared")) {
      std::fprintf(stderr, "    %s: %llu bytes\n", name.c_str(),
                   static_cast<unsigned long long>(size));
    }
  }

  void wrong(std::string what) {
    if (!problem_) problem_ = std::move(what);
  }

  void note(const char* what, const Status& status) const {
    if (verbose_ && !status.is_ok()) {
      std::fprintf(stderr, "    %s: %s\n", what, status.message().c_str());
    }
  }

  // ---- Jobs ------------------------------------------------------------------------------------

  // Nothing that the job's objects do in going counts.
  void kill(std::size_t number) {
    Slot& slot = slots_[number];
    if (!slot.job) return;
    cluster_.plan_fault(store::Fault::kDead, 1);
    slot = {};
    cluster_.end_fault();
  }

  void kill_on(NodeIndex node) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].job) continue;
      const auto& nodes = slots_[i].job->nodes();
      if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) kill(i);
    }
  }

  // If the step's fault was that the job died: it is gone, and nodes lose power.
  bool died(const Step& step, std::size_t number) {
    if (!cluster_.job_died()) return false;
    ++counts_.died;
    const std::vector<NodeIndex> nodes = slots_[number].job->nodes();
    slots_[number] = {};
    cluster_.end_fault();
    for (const NodeIndex node : nodes) {
      if ((step.powerless >> node & 1) == 0) continue;
      kill_on(node);
      cluster_.lose_power(node, step.seed + node);
    }
    return true;
  }

  // On how many nodes a dump has a chunk: what stripes are made of is on one until the commit.
  static unsigned copies_before_commit(const engine::JobFile& file) {
    const engine::Keeping keeping = file.keeping();
    return keeping.stripes.is_possible() ? 1 : keeping.copies;
  }

  // Whether a call failed in this step; what the job puts on that node does not count from then on.
  bool end_of_fault(Slot& slot) {
    cluster_.set_process(0);
    const bool struck = cluster_.struck();
    if (struck && slot.job) {
      const int index = cluster_.struck_process() % 16 - 1;
      const auto& nodes = slot.job->nodes();
      if (index >= 0 && index < static_cast<int>(nodes.size())) {
        slot.faulty.insert(nodes[static_cast<std::size_t>(index)]);
      }
      if (slot.faulty.size() >= (slot.job->file ? copies_before_commit(*slot.job->file) : 1)) {
        slot.complete = false;
      }
    }
    cluster_.end_fault();
    return struck;
  }

  bool others_active(std::size_t number) const {
    if (upkeep_active_) return true;
    for (std::size_t i = 0; i < kJobs; ++i) {
      if (i != number && slots_[i].job) return true;
    }
    return false;
  }

  bool is_there(std::size_t name) {
    struct stat about {};
    return cluster_.memory().stat(Cluster::path(name).c_str(), &about) == 0;
  }

  // ---- Opening and reading ---------------------------------------------------------------------

  static Status begin(Slot& slot, const Step& step, bool& created) {
    Job& job = *slot.job;
    job.file = std::make_unique<engine::JobFile>(job.client(), job.ranks());
    engine::JobFile& file = *job.file;
    file.path = Cluster::path(step.name);
    file.hints.store = "/%n/s";
    file.hints.replication = step.copies;
    if (step.striped) {
      file.hints.stripe_data = 2 + step.seed % 3;
      file.hints.stripe_parities = step.copies - 1;
    }
    file.hints.keep = step.keep;
    file.home = service::file_home(file.path, file.nodes());
    file.writable = step.writable;
    file.handle = Id128::random();
    const auto begin = [&] { return use_store(job, file); };
    return engine::find_and_attach(file, {step.create, false}, begin, created);
  }

  static Status use_store(Job& job, engine::JobFile& file) {
    const std::string directory = Cluster::disk(job.nodes().front()) + "/s";
    DEDUP_ASSIGN(file.local, engine::LocalFile::get(file.client(), file.identity(), directory));
    return Status::ok();
  }

  static Result<Content> read(engine::JobFile& file) {
    Content content{};
    for (std::size_t i = 0; i < kCells.size(); ++i) {
      std::array<std::byte, kCellSize> bytes{};
      DEDUP_ASSIGN(const std::uint64_t size, engine::file_size(file));
      const std::uint64_t there = size - std::min(size, kCells[i]);
      DEDUP_TRY(engine::read_range(
          file, kCells[i], std::span(bytes).first(std::min<std::uint64_t>(kCellSize, there))));
      content[i] = cell_value(bytes);
    }
    return content;
  }

  void open(const Step& step) {
    Slot& slot = slots_[step.job];
    Name& name = model_.name(step.name);
    const int number = static_cast<int>(step.job) + 1;
    cluster_.plan_fault(step.fault, step.fault_at, step.fault_at_shared);
    slot.job = std::make_unique<Job>(cluster_, number, step.nodes, step.seed);
    slot.name = step.name;
    bool created = false;
    Status status = begin(slot, step, created);
    note("open", status);
    bool is_open = status.is_ok();
    Content content{};
    if (is_open) {
      const auto got = read(*slot.job->file);
      note("read", got.status());
      status = got.status();
      if (got.is_ok()) content = *got;
    }
    if (died(step, step.job)) {
      if (!name.file && is_there(step.name)) name.file = new_file();
      return;
    }
    const bool struck = end_of_fault(slot);
    if (!status.is_ok()) {
      ++counts_.refused;
      check_refusal(step, name, status, struck);
      if (is_open) (void)engine::leave(*slot.job->file);
      slot = {};
      if (!name.file && is_there(step.name)) name.file = new_file();
      return;
    }
    ++counts_.opened;
    const auto may_be = versions_of(name, content);
    check_opened(step, slot, name, content);
    if (!name.is_copy && !problem_) check_before(step, slot, may_be);
    cluster_.freeze_view(number);
  }

  static std::shared_ptr<File> new_file() {
    auto file = std::make_shared<File>();
    file->last = std::make_shared<Version>();
    return file;
  }

  void check_refusal(const Step& step, const Name& name, const Status& status, bool struck) {
    if (struck) return;
    const bool in_use = status.code() == Code::kFileInUse && others_active(step.job);
    if (in_use || removing_) return;
    if (!name.file) {
      if (status.code() == Code::kNoSuchFile && !step.create) return;
      wrong("a file that is not there cannot be made: " + status.message());
      return;
    }
    if (status.code() == Code::kNoSuchFile) {
      wrong("a file that is there is said not to be: " + status.message());
    } else if (!name.is_copy && model_.must_read(*name.file, step.nodes)) {
      wrong("a file that can be read is refused: " + status.message());
    }
  }

  void check_opened(const Step& step, Slot& slot, Name& name, const Content& content) {
    if (!name.file) {
      if (!step.create) wrong("a file that is not there was opened");
      name.file = new_file();
    }
    slot.file = name.file;
    slot.content = content;
    if (name.is_copy) {
      slot.complete = false;
      slot.base = slot.file->last;
      const bool right =
          std::any_of(name.copied.begin(), name.copied.end(),
                      [&](const auto& version) { return version->content == content; });
      if (!right) wrong("a copy reads as something else: " + text_of(content));
      return;
    }
    File& file = *name.file;
    slot.complete = model_.must_read(file, step.nodes);
    if (slot.complete) ++counts_.required;
    slot.base = file.find(content);
    if (!slot.base) {
      wrong("read " + text_of(content) + ", not the last acknowledged " +
            text_of(file.last->content) + " nor a later one");
      slot.base = file.last;
    }
    if (slot.base == file.last) return;
    ++counts_.later;
    if (!step.writable) return;
    file.last = slot.base;
    file.later.clear();
  }

  // Those that read as `content`.
  static std::vector<std::shared_ptr<const Version>> versions_of(const Name& name,
                                                                 const Content& content) {
    std::vector<std::shared_ptr<const Version>> found;
    if (!name.file) return found;
    found = name.file->later;
    found.push_back(name.file->last);
    std::erase_if(found, [&](const auto& version) { return version->content != content; });
    return found;
  }

  static Result<Content> read_before(Slot& slot, const Step& step) {
    engine::JobFile older(slot.job->client(), slot.job->ranks());
    older.path = Cluster::path(step.name);
    older.hints.store = "/%n/s";
    older.hints.generation = -1;
    older.handle = Id128::random();
    bool created = false;
    const auto begin = [&] { return use_store(*slot.job, older); };
    DEDUP_TRY(engine::find_and_attach(older, {}, begin, created));
    const Result<Content> content = read(older);
    const Status left = engine::leave(older);
    if (content.is_ok()) DEDUP_TRY(left);
    return content;
  }

  // The generation before the one that was read, which is one of `may_be`, is as it was, or it is
  // not kept, or too many of its stores are not here.
  void check_before(const Step& step, Slot& slot,
                    const std::vector<std::shared_ptr<const Version>>& may_be) {
    if (may_be.empty() || slot.base->nodes.empty()) return;
    const auto got = read_before(slot, step);
    note("read the one before", got.status());
    bool is_right = false;
    for (const auto& version : may_be) {
      const auto& before = version->before;
      const bool must_be = before && !has_given_up_ && !others_active(step.job) &&
                           model_.is_available(*before, step.nodes);
      is_right = is_right || (got.is_ok() ? before && before->content == *got : !must_be);
    }
    if (got.is_ok()) ++counts_.before;
    if (is_right) return;
    wrong(got.is_ok() ? "the generation before reads as " + text_of(*got)
                      : "the generation before is kept, and refused: " + got.status().message());
  }

  // ---- Writing ---------------------------------------------------------------------------------

  // What a cell is written with: a number that nothing had before, what another file has there, as
  // time steps do, or what some file had once. The first cell of a write is new: so contents tell
  // versions apart.
  std::uint64_t next_value(const Step& step, const Slot& slot, std::size_t cell, bool is_first) {
    const auto& other = model_.name(step.other).file;
    const bool repeats = (step.cells >> (8 + cell) & 1) != 0;
    if (is_first || !repeats) return ++serial_;
    // Or what some file had before, which stores may still have a part of.
    if (!other || other == slot.file) return serial_ == 0 ? ++serial_ : 1 + step.seed % serial_;
    const std::uint64_t value = other->last->content[cell];
    return value != 0 ? value : ++serial_;
  }

  Status put_cell(Slot& slot, std::size_t cell, std::uint64_t value) {
    const engine::JobFile& file = *slot.job->file;
    const auto bytes = cell_bytes(value);
    NodeSet nodes = file.client().live().list();
    std::shuffle(nodes.begin(), nodes.end(), slot.job->random());
    nodes.resize(copies_before_commit(file));
    return write_chunk(file, kCells[cell], {bytes.begin(), bytes.end()}, nodes).status();
  }

  void write(const Step& step) {
    Slot& slot = slots_[step.job];
    cluster_.set_process(static_cast<int>(step.job + 1) * 16 + 1);
    cluster_.plan_fault(step.fault, step.fault_at, step.fault_at_shared);
    Status status;
    if (slot.job->file->writable) {
      const unsigned cells = step.cells % 32 == 0 ? 1 : step.cells;
      for (std::size_t i = 0; i < kCells.size() && status.is_ok(); ++i) {
        if ((cells >> i & 1) == 0) continue;
        slot.content[i] = next_value(step, slot, i, (cells & ((1u << i) - 1)) == 0);
        status = put_cell(slot, i, slot.content[i]);
      }
      slot.dirty = true;
    }
    note("write", status);
    Result<Content> got = Status(Code::kInternal, "not read");
    if (status.is_ok()) got = read(*slot.job->file);
    if (died(step, step.job)) return;
    const bool struck = end_of_fault(slot);
    const bool excused = struck || !slot.complete;
    if (excused && (!status.is_ok() || !got.is_ok())) {
      // The program ends, as most do.
      kill(step.job);
    } else if (!status.is_ok()) {
      wrong("a write failed: " + status.message());
    } else if (!got.is_ok()) {
      wrong("an open file cannot be read: " + got.status().message());
    } else if (*got != slot.content) {
      wrong("an open file reads as " + text_of(*got) + ", not " + text_of(slot.content));
    }
  }

  static Status commit(engine::JobFile& file) {
    DEDUP_ASSIGN(const engine::JobLock lock,
                 engine::JobLock::take(file, service::LockKind::kCommit));
    return engine::GenerationCommit(file).run([] { return Status::ok(); });
  }

  // True if the job lives on.
  bool try_commit(const Step& step) {
    Slot& slot = slots_[step.job];
    const auto version = std::make_shared<Version>(
        Version{slot.content, slot.job->nodes(), slot.job->file->hints.replication, !slot.complete,
                slot.job->file->hints.keep > 1 && !slot.base->nodes.empty() ? slot.base : nullptr});
    const std::shared_ptr<File> file = slot.file;
    const bool is_next = slot.base == file->last;
    const bool others_tried = !file->later.empty();
    if (is_next) file->later.push_back(version);
    for (const NodeIndex node : version->nodes) model_.put(node, version);
    const Status status = commit(*slot.job->file);
    note("commit", status);
    if (died(step, step.job)) return false;
    (void)end_of_fault(slot);
    for (const NodeIndex node : slot.faulty) model_.doubt(node, version);
    const Name& name = model_.name(slot.name);
    const bool is_named = name.file == file && !name.is_copy;
    if (!status.is_ok()) {
      ++counts_.failed;
      const bool excused =
          !slot.faulty.empty() || !slot.complete || others_tried || others_active(step.job);
      if (!excused && is_next && is_named) {
        wrong("a commit failed: " + status.message());
      }
      return true;
    }
    ++counts_.committed;
    if (!is_next && is_named) wrong("two jobs went on from one generation");
    file->last = version;
    file->later.clear();
    slot.base = version;
    slot.dirty = false;
    return true;
  }

  void commit_and_close(const Step& step) {
    Slot& slot = slots_[step.job];
    cluster_.set_process(static_cast<int>(step.job + 1) * 16 + 1);
    cluster_.plan_fault(step.fault, step.fault_at, step.fault_at_shared);
    if (slot.dirty && !try_commit(step)) return;
    if (step.kind == Kind::kCommit) {
      cluster_.end_fault();
      return;
    }
    // A fault that was not met by the commit is over.
    const Status status = engine::leave(*slot.job->file);
    note("close", status);
    if (died(step, step.job)) return;
    const bool struck = end_of_fault(slot);
    if (!status.is_ok() && !struck) wrong("a close failed: " + status.message());
    slot = {};
  }

  // No room is left: services free what they may.
  void press(const Step& step) {
    has_given_up_ = true;
    const Slot& slot = slots_[step.job];
    cluster_.set_process(static_cast<int>(step.job + 1) * 16 + 1);
    engine::JobFile& file = *slot.job->file;
    for (NodeIndex n = 0; n < file.nodes(); ++n) {
      const service::Space request{file.identity(), ~std::uint64_t{0}};
      note("press", file.client().call(n, request).status());
    }
    cluster_.set_process(0);
  }

  // ---- dedupctl --------------------------------------------------------------------------------

  // Of a file of which a store is not here, or behind, more may stay; also an attempt that was
  // prepared on one that is not here, or whose record cannot be read.
  static bool is_all_known(const ctl::Catalog& catalog, const ctl::FileRow& row) {
    const auto is_here = [&](const store::StoreEntry& entry) {
      return catalog.store_of(entry.uuid) != nullptr;
    };
    for (const ctl::FileOnStore& on : row.on) {
      if (!on.survey.damaged.empty()) return false;
      for (const store::CommitRecord& record : on.survey.prepared) {
        if (!std::all_of(record.stores.begin(), record.stores.end(), is_here)) return false;
      }
    }
    const auto standings = catalog.standings(row);
    return std::all_of(standings.begin(), standings.end(),
                       [](ctl::Standing one) { return one == ctl::Standing::kHere; });
  }

  void check_tidy() {
    std::vector<NodeIndex> all(kNodes);
    std::iota(all.begin(), all.end(), NodeIndex{0});
    ctl::Freed freed;
    const Status status = Dedupctl(all).gc(false, freed);
    if (!status.is_ok()) wrong("gc failed: " + status.message());
    const Dedupctl again(all);
    for (const ctl::FileRow& row : again.catalog().files) {
      if (!row.exists() || !is_all_known(again.catalog(), row)) continue;
      for (const ctl::FileOnStore& on : row.on) {
        const std::string what = untidy(again.store(on), row.identity);
        if (!what.empty()) wrong("in the end: " + what);
      }
    }
  }

  void look_after(const Step& step) {
    constexpr int kProcess = kUpkeep * 16 + 1;
    upkeep_active_ = true;
    removing_ = step.kind == Kind::kRm || step.kind == Kind::kRmOn;
    cluster_.set_process(kProcess);
    cluster_.plan_fault(step.fault, step.fault_at);
    bool is_over = step.inside.empty();
    if (!is_over) {
      cluster_.interrupt(step.inside_at, [&] {
        carry_out_inside(step);
        is_over = true;
        cluster_.set_process(kProcess);
      });
    }
    // Not a plain file, which is none of the stores' even if they have one of its name.
    const bool is_placeholder =
        is_there(step.name) && !cluster_.memory().content(Cluster::path(step.name)).empty();
    const Status status = run_dedupctl(step);
    note("dedupctl", status);
    cluster_.unfreeze_records();
    (void)cluster_.end_interrupt();
    cluster_.memory().kill(kProcess);
    const bool struck = cluster_.struck();
    cluster_.end_fault();
    cluster_.set_process(0);
    upkeep_active_ = removing_ = false;
    ++counts_.upkeep;
    Name& name = model_.name(step.name);
    if (step.kind == Kind::kRm) {
      if (!is_there(step.name)) {
        name = {};
      } else if (status.is_ok() && !struck && is_placeholder && step.inside.empty()) {
        wrong("a file is still there after rm");
      }
    }
    if (!is_over) carry_out_inside(step);
  }

  void carry_out_inside(const Step& step) {
    // Whoever makes a file there from here on makes another one.
    if (step.kind == Kind::kRm && !is_there(step.name)) model_.name(step.name) = {};
    for (const Step& one : step.inside) {
      seed_product(one.seed);
      carry_out(one);
    }
  }

  Status run_dedupctl(const Step& step) {
    Dedupctl dedupctl(step.nodes);
    cluster_.freeze_records();
    if (step.kind == Kind::kGc || step.kind == Kind::kGcUnnamed) {
      ctl::Freed freed;
      const Status status = dedupctl.gc(step.kind == Kind::kGcUnnamed, freed);
      for (const std::string& text : freed.notes) note("gc", {Code::kInternal, text});
      return status;
    }
    std::vector<std::string> nodes;
    const std::shared_ptr<File> file = model_.name(step.name).file;
    if (step.kind == Kind::kRmOn) nodes.push_back("n" + std::to_string(step.node));
    const Status status = dedupctl.rm(Cluster::path(step.name), nodes);
    // Whatever was attempted there meanwhile counts as gone, too.
    const bool refused = status.code() == Code::kFileInUse || status.code() == Code::kNoSuchFile;
    if (step.kind == Kind::kRmOn && file && !refused) model_.take(step.node, *file);
    return status;
  }

  // ---- Names -----------------------------------------------------------------------------------

  void delete_name(const Step& step) {
    Slot& slot = slots_[kDeleter];
    cluster_.plan_fault(step.fault, step.fault_at, step.fault_at_shared);
    slot.job =
        std::make_unique<Job>(cluster_, static_cast<int>(kDeleter) + 1, step.nodes, step.seed);
    hints::Hints hints;
    hints.store = "/%n/s";
    const Status status = engine::delete_file(slot.job->client(), Cluster::path(step.name), hints);
    note("delete", status);
    Name& name = model_.name(step.name);
    const bool was_there = name.file != nullptr;
    if (!is_there(step.name)) name = {};
    if (died(step, kDeleter)) return;
    const bool struck = end_of_fault(slot);
    slot = {};
    if (struck) return;
    if (status.is_ok() && name.file) wrong("a file is still there after it was deleted");
    if (status.is_ok() && !was_there) wrong("what was not there was deleted");
    if (!status.is_ok() && was_there && !others_active(kDeleter)) {
      wrong("a file cannot be deleted: " + status.message());
    }
  }

  void rename(const Step& step) {
    Name& from = model_.name(step.name);
    if (step.name == step.other || !from.file) return;
    for (const Slot& slot : slots_) {
      if (slot.job && slot.file == from.file) return;
    }
    cluster_.memory().rename(Cluster::path(step.name).c_str(), Cluster::path(step.other).c_str());
    model_.name(step.other) = std::exchange(from, {});
  }

  void copy(const Step& step) {
    const Name& from = model_.name(step.name);
    if (step.name == step.other || !from.file) return;
    const Bytes bytes = cluster_.memory().content(Cluster::path(step.name));
    // A copy of a placeholder back into the placeholder changes nothing: it is the same file, too.
    if (model_.name(step.other).file && !bytes.empty() &&
        bytes == cluster_.memory().content(Cluster::path(step.other))) {
      return;
    }
    cluster_.memory().put_content(Cluster::path(step.other), bytes);
    Name& to = model_.name(step.other);
    if (bytes.empty()) {
      to = {new_file(), false, {}};
      return;
    }
    std::vector<std::shared_ptr<const Version>> copied = from.copied;
    if (!from.is_copy) {
      copied = from.file->later;
      copied.push_back(from.file->last);
    }
    to = {from.file, true, std::move(copied)};
  }

  Cluster cluster_;
  Model model_;
  Counts& counts_;
  bool verbose_;
  std::array<Slot, kJobs + 1> slots_;
  bool upkeep_active_ = false;
  bool has_given_up_ = false;  // kept generations, as there was no room
  bool removing_ = false;      // with it, a file may be gone or half gone
  std::uint64_t serial_ = 0;
  std::optional<std::string> problem_;
};

}  // namespace

std::optional<Violation> run_sequence(const std::vector<Step>& steps, Breakage breakage,
                                      Counts& counts, bool verbose) {
  Run run(breakage, counts, verbose);
  ++counts.sequences;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (auto problem = run.step(steps[i])) return Violation{i, std::move(*problem)};
  }
  if (auto problem = run.finish()) return Violation{steps.size(), std::move(*problem)};
  return std::nullopt;
}

std::vector<Step> shrink(std::vector<Step> steps, Breakage breakage) {
  const auto fails = [&](const std::vector<Step>& some) {
    Counts ignored;
    return run_sequence(some, breakage, ignored).has_value();
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = steps.size(); i-- > 0;) {
      std::vector<Step> fewer = steps;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (fails(fewer)) {
        steps = std::move(fewer);
        smaller = true;
      }
    }
    for (Step& step : steps) {
      for (std::size_t i = step.inside.size(); i-- > 0;) {
        const Step was = step;
        step.inside.erase(step.inside.begin() + static_cast<std::ptrdiff_t>(i));
        if (fails(steps)) {
          smaller = true;
        } else {
          step = was;
        }
      }
      if (step.fault == store::Fault::kNone) continue;
      const Step was = step;
      step.fault = store::Fault::kNone;
      smaller = fails(steps) || smaller;
      if (!fails(steps)) step = was;
    }
  }
  return steps;
}

}  // namespace dedup::simulation
