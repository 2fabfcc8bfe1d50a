// Who replaces what stands at a path, with every call of every job before or after every other's
// (store/replacement.h): of the jobs that run at once, each is stopped, and killed, at any call
// that looks at names or changes them. All ways with up to so many switches and kills are gone
// through; most faults of such a kind need two or three (Musuvathi and Qadeer, PLDI 2007, section
// 2).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/placeholder.h"
#include "store/replacement.h"
#include "test/faults/memory_system.h"
#include "test/hooks/forwarding_system.h"

namespace dedup::simulation {
namespace {

using store::PathState;

const std::string kPath = "/shared/f";
constexpr std::size_t kStack = std::size_t{256} << 10;

// ---- Jobs that take turns ----------------------------------------------------------------------

// At a call, counted over all jobs: another job goes on, or the one that makes it dies.
struct Event {
  std::size_t at = 0;
  int job = 0;  // kKill: none
  static constexpr int kKill = -1;
};

// Just before a job's next call that is this one, another job goes on.
struct Stop {
  int job = 0;
  std::string call;  // how it begins
  int to = 0;
};

// Runs functions as jobs, one at a time; control changes hands at calls only.
class Turns {
 public:
  Turns(std::vector<std::function<void()>> jobs, std::vector<Event> events)
      : jobs_(std::move(jobs)), events_(std::move(events)), fibers_(jobs_.size()) {}
  Turns(std::vector<std::function<void()>> jobs, std::vector<Stop> stops)
      : jobs_(std::move(jobs)), stops_(std::move(stops)), fibers_(jobs_.size()) {}

  // The number of calls that the jobs made.
  std::size_t run() {
    running_ = this;
    for (std::size_t i = 0; i < jobs_.size(); ++i) prepare(i);
    for (current_ = 0; current_ < jobs_.size();) {
      swapcontext(&main_, &fibers_[current_].context);
      if (wanted_ >= 0) {
        current_ = static_cast<std::size_t>(std::exchange(wanted_, -1));
      } else {
        for (current_ = 0; current_ < jobs_.size() && fibers_[current_].is_done;) ++current_;
      }
    }
    running_ = nullptr;
    return calls_;
  }

  // Before a call. False: the job is dead, and the call does nothing.
  bool enter(std::string_view name, std::string_view path) {
    Fiber& fiber = fibers_[current_];
    if (fiber.is_dead) return false;
    const std::size_t at = calls_++;
    if (next_stop_ < stops_.size()) {
      const Stop& stop = stops_[next_stop_];
      const bool is_it = stop.job == static_cast<int>(current_) &&
                         (std::string(name) + " " + std::string(path)).starts_with(stop.call);
      if (!is_it) return true;
      ++next_stop_;
      wanted_ = stop.to;
      swapcontext(&fiber.context, &main_);
      return true;
    }
    if (next_ == events_.size() || events_[next_].at != at) return true;
    const Event event = events_[next_++];
    if (event.job == Event::kKill) {
      fiber.is_dead = true;
      return false;
    }
    const auto to = static_cast<std::size_t>(event.job);
    if (to == current_ || fibers_[to].is_done) return true;
    wanted_ = event.job;
    swapcontext(&fiber.context, &main_);
    return true;
  }

  bool has_passed_all_stops() const { return next_stop_ == stops_.size(); }

  // Of the job that runs.
  bool is_dead() const { return fibers_[current_].is_dead; }

  static Turns* running() { return running_; }

 private:
  struct Fiber {
    ucontext_t context{};
    bool is_done = false;
    bool is_dead = false;
  };

  void prepare(std::size_t job) {
    ucontext_t& context = fibers_[job].context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack(job);
    context.uc_stack.ss_size = kStack;
    context.uc_link = &main_;
    makecontext(&context, &Turns::start, 0);
  }
  static void start() {
    Turns& turns = *running_;
    const std::size_t mine = turns.current_;
    turns.jobs_[mine]();
    turns.fibers_[mine].is_done = true;
  }

  // The same for every run.
  static std::byte* stack(std::size_t job) {
    static std::vector<std::unique_ptr<std::byte[]>> stacks;
    while (stacks.size() <= job) {
      stacks.push_back(std::make_unique_for_overwrite<std::byte[]>(kStack));
    }
    return stacks[job].get();
  }

  static inline Turns* running_ = nullptr;
  std::vector<std::function<void()>> jobs_;
  std::vector<Event> events_;
  std::vector<Stop> stops_;
  std::vector<Fiber> fibers_;
  ucontext_t main_{};
  std::size_t current_ = 0;
  std::size_t calls_ = 0;
  std::size_t next_ = 0;
  std::size_t next_stop_ = 0;
  int wanted_ = -1;
};

// Ways to break it, to see that this finds them.
enum class Breakage {
  kNone,
  kSharedClaims,  // symlink() replaces what is there
  kNoClaims,      // looks, and renames
  kNoClaimStays,  // those on what stands there are removed like others
};

class TurnSystem final : public store::ForwardingSystem {
 public:
  // `locks`: whether the nodes know of each other's locks.
  TurnSystem(System& below, Breakage breakage, bool locks)
      : ForwardingSystem(below), breakage_(breakage), locks_(locks) {}

  int open(const char* path, int flags, mode_t mode) override {
    return turn("open", path, [&] { return below_.open(path, flags, mode); });
  }
  int stat(const char* path, struct stat* about) override {
    return turn("stat", path, [&] { return below_.stat(path, about); });
  }
  int lstat(const char* path, struct stat* about) override {
    return turn("lstat", path, [&] { return below_.lstat(path, about); });
  }
  int rename(const char* from, const char* to) override {
    return turn("rename", to, [&] { return below_.rename(from, to); });
  }
  int link(const char* from, const char* to) override {
    return turn("link", to, [&] { return below_.link(from, to); });
  }
  int symlink(const char* target, const char* path) override {
    return turn("symlink", path, [&] {
      if (breakage_ == Breakage::kSharedClaims) (void)below_.unlink(path);
      return below_.symlink(target, path);
    });
  }
  int flock(int fd, int operation) override {
    return locks_ ? turn("flock", "", [&] { return below_.flock(fd, operation); }) : 0;
  }
  int readlink(const char* path, std::string& target) override {
    return turn("readlink", path, [&] { return below_.readlink(path, target); });
  }
  int unlink(const char* path) override {
    return turn("unlink", path, [&] { return below_.unlink(path); });
  }

 private:
  template <typename Call>
  int turn(const char* name, const char* path, Call&& call) {
    if (Turns::running() != nullptr && !Turns::running()->enter(name, path)) {
      errno = EIO;
      return -1;
    }
    return call();
  }

  Breakage breakage_;
  bool locks_;
};

// ---- What they do ------------------------------------------------------------------------------

class World {
 public:
  World(Breakage breakage, bool begins_plain, bool locks)
      : breakage_(breakage), system_(memory_, breakage, locks) {
    before_ = &store::use_system(system_);
    memory_.mount("/shared");
    if (begins_plain) {
      memory_.put_content(kPath, {});
    } else {
      const auto first = begin({});
      EXPECT_TRUE(first->put().is_ok());
    }
    opened_ = *store::look_at(kPath);
  }
  ~World() { store::use_system(*before_); }

  // A job that has had the file open from the begin, and commits twice.
  void commit() {
    PathState base = opened_;
    for (int i = 0; i < 2; ++i) {
      const Id128 parent = base.placeholder.attempt;
      const auto next = begin(parent);
      if (!next) return;
      const auto now = store::settle_path(kPath);
      // As the fence looks.
      if (!now.is_ok() || now->stamp.inode != base.stamp.inode) return;
      if (!put(*next, *now).is_ok()) return;
      const auto mine = store::look_at(kPath);
      if (!mine.is_ok()) return;
      base = *mine;
    }
  }

  // The same, once, by a job that keeps the plain file as a copy first (engine/protocol/
  // displaced_file.h).
  void keep_and_commit() {
    const auto next = begin(opened_.placeholder.attempt);
    if (!next) return;
    const auto now = store::settle_path(kPath);
    if (!now.is_ok() || now->kind != PathState::Kind::kPlain || !(now->stamp == opened_.stamp)) {
      return;
    }
    const Id128 attempt = begun_[next.get()];
    const auto kept = store::keep_as_copy(kPath, now->stamp, attempt);
    PathState before = *now;
    if (kept.is_ok()) {
      const auto named = store::look_at(kPath);
      if (named.is_ok() && named->kind == PathState::Kind::kPlain) {
        store::Stamp same = named->stamp;
        same.changed = before.stamp.changed;
        if (same == before.stamp) before = *named;
      }
    }
    if (!put(*next, before).is_ok() && kept.is_ok()) store::remove_copy(kPath, *kept);
  }

  // One that opens it now, and goes on from what is there.
  Status open_and_commit() {
    DEDUP_ASSIGN(const PathState base, store::settle_path(kPath));
    const auto next = begin(base.placeholder.attempt);
    return next ? put(*next, base) : Status(Code::kIo, "cannot write beside the path");
  }

  // One whom nobody else who commits can be in the way of.
  void open_and_commit_alone() {
    const Status status = open_and_commit();
    if (!status.is_ok() && !Turns::running()->is_dead()) {
      wrong_ = "nothing stood in its way: " + status.message();
    }
  }

  void tidy() {
    (void)store::remove_leftovers("/shared");
    if (breakage_ != Breakage::kNoClaimStays) return;
    std::vector<std::string> names;
    (void)memory_.list("/shared", names);
    for (const std::string& name : names) {
      if (name.find(".dedup-next-") != std::string::npos)
        (void)memory_.unlink(("/shared/" + name).c_str());
    }
  }

  // What is wrong afterwards; empty: nothing.
  std::string check() {
    if (!wrong_.empty()) return wrong_;
    const Status last = open_and_commit();
    if (!last.is_ok()) return "nobody can go on: " + last.message();
    const auto now = store::look_at(kPath);
    if (!now.is_ok() || now->kind != PathState::Kind::kPlaceholder) return "no placeholder";
    std::set<Id128> line;
    for (Id128 at = now->placeholder.attempt; !at.is_zero(); at = parents_[at]) line.insert(at);
    for (const Id128& attempt : acknowledged_) {
      if (!line.contains(attempt)) return "what was acknowledged is lost";
    }
    return "";
  }

 private:
  // Its name is new; the ids are the same each time.
  std::unique_ptr<store::Replacement> begin(const Id128& parent) {
    Id128 id;
    id.bytes[0] = ++last_;
    parents_[id] = parent;
    auto begun = store::Replacement::begin(kPath, id);
    if (!begun.is_ok()) return nullptr;
    store::Placeholder placeholder;
    placeholder.attempt = id;
    placeholder.inode = *(*begun)->inode();
    (void)(*begun)->write(0, store::encode_placeholder(placeholder));
    begun_[begun->get()] = id;
    return std::move(*begun);
  }

  Status put(store::Replacement& next, const PathState& now) {
    const Status status = breakage_ == Breakage::kNoClaims ? next.put() : next.put_after(now);
    if (status.is_ok()) acknowledged_.insert(begun_[&next]);
    const bool is_told = Turns::running() == nullptr || !Turns::running()->is_dead();
    if (is_told && status.code() == Code::kConflict && standing() == begun_[&next]) {
      wrong_ = "what stands there is said not to";
    }
    return status;
  }

  // The attempt at the path, looked at between two calls.
  Id128 standing() {
    store::System& used = store::use_system(memory_);
    const auto now = store::look_at(kPath);
    store::use_system(used);
    return now.is_ok() ? now->placeholder.attempt : Id128{};
  }

  Breakage breakage_;
  test::MemorySystem memory_;
  TurnSystem system_;
  store::System* before_;
  PathState opened_;
  std::uint8_t last_ = 0;
  std::map<Id128, Id128> parents_;
  std::map<const store::Replacement*, Id128> begun_;
  std::set<Id128> acknowledged_;
  std::string wrong_;
};

// ---- All ways ----------------------------------------------------------------------------------

struct Case {
  const char* name;
  bool begins_plain;
  std::vector<void (*)(World&)> jobs;
  std::size_t most_events;
  bool locks = false;
};

class Exploration {
 public:
  Exploration(const Case& what, Breakage breakage) : case_(what), breakage_(breakage) {}

  // What is wrong in the first way in which anything is; empty: nothing.
  std::string run() {
    explore({});
    return found_;
  }
  std::size_t ways() const { return ways_; }

 private:
  void explore(const std::vector<Event>& events) {
    ++ways_;
    const std::size_t calls = run_one(events);
    if (!found_.empty() || events.size() == case_.most_events) return;
    const std::size_t first = events.empty() ? 0 : events.back().at + 1;
    for (std::size_t at = first; at < calls; ++at) {
      for (int job = Event::kKill; job < static_cast<int>(case_.jobs.size()); ++job) {
        std::vector<Event> more = events;
        more.push_back({at, job});
        explore(more);
        if (!found_.empty()) return;
      }
    }
  }

  std::size_t run_one(const std::vector<Event>& events) {
    World world(breakage_, case_.begins_plain, case_.locks);
    std::vector<std::function<void()>> jobs;
    for (auto* const job : case_.jobs) jobs.emplace_back([&world, job] { job(world); });
    const std::size_t calls = Turns(std::move(jobs), events).run();
    const std::string wrong = world.check();
    if (wrong.empty()) return calls;
    found_ = wrong + ", with";
    for (const Event& event : events) {
      found_ += " " + std::to_string(event.at) + ":" +
                (event.job == Event::kKill ? "kill" : std::to_string(event.job));
    }
    return calls;
  }

  const Case& case_;
  Breakage breakage_;
  std::string found_;
  std::size_t ways_ = 0;
};

void commits(World& world) {
  world.commit();
}
void opens(World& world) {
  (void)world.open_and_commit();
}
void opens_alone(World& world) {
  world.open_and_commit_alone();
}
void keeps(World& world) {
  world.keep_and_commit();
}
void tidies(World& world) {
  world.tidy();
}

const std::array<Case, 9> kCases = {{
    {"two jobs and dedupctl gc", false, {opens, opens, tidies}, 3},
    {"a job, and one that tidies", false, {opens_alone, tidies}, 3, true},
    {"two jobs", false, {commits, commits}, 3},
    {"two jobs at a plain file", true, {commits, commits}, 2},
    {"two jobs and one that opens it", false, {commits, commits, opens}, 2},
    {"a job, and two that open it", true, {commits, opens, opens}, 2},
    {"two jobs that keep the plain file", true, {keeps, keeps}, 2},
    {"a job that keeps it, and one that opens it", true, {keeps, opens}, 2},
    {"two jobs, one of which keeps it, and one that opens it", true, {keeps, commits, opens}, 2},
}};

TEST(ReplacementByAll, LosesNothingAndStandsInNobodysWay) {
  for (const Case& one : kCases) {
    Exploration exploration(one, Breakage::kNone);
    EXPECT_EQ(exploration.run(), "") << one.name;
    EXPECT_GT(exploration.ways(), 1000U) << one.name;
    RecordProperty(one.name, static_cast<int>(exploration.ways()));
  }
}

// Six switches: the first job's second name for the plain file changes what the second one looks
// for once it has its claim, which a third one has seen.
TEST(ReplacementByAll, AClaimStaysWhereOnlyTheTimeOfTheLastChangeIsAnother) {
  World world(Breakage::kNone, true, false);
  std::vector<std::function<void()>> jobs;
  for (auto* const job : {keeps, commits, opens}) jobs.emplace_back([&world, job] { job(world); });
  const std::string beside = "/shared/.f.dedup-";
  Turns turns(std::move(jobs), std::vector<Stop>{{0, "link " + beside + "copy", 1},
                                                 {1, "symlink " + beside + "next", 1},
                                                 {1, "stat " + kPath, 0},
                                                 {0, "symlink " + beside + "next", 2},
                                                 {2, "rename " + kPath, 1},
                                                 {1, "unlink " + beside + "tmp", 0},
                                                 {0, "unlink " + beside, 2}});
  turns.run();
  EXPECT_TRUE(turns.has_passed_all_stops());
  EXPECT_EQ(world.check(), "");
}

TEST(ReplacementByAll, IsFoundToBeBroken) {
  for (const Breakage breakage :
       {Breakage::kSharedClaims, Breakage::kNoClaims, Breakage::kNoClaimStays}) {
    const bool found = std::any_of(kCases.begin(), kCases.end(), [&](const Case& one) {
      return !Exploration(one, breakage).run().empty();
    });
    EXPECT_TRUE(found) << static_cast<int>(breakage);
  }
}

}  // namespace
}  // namespace dedup::simulation
