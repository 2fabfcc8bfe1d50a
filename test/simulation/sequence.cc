#include "test/simulation/sequence.h"

#include <algorithm>
#include <array>

namespace dedup::simulation {
namespace {

using Kind = Step::Kind;

constexpr std::array<const char*, static_cast<std::size_t>(Kind::kEnd)> kKindNames = {
    "open", "write",    "commit",     "close", "kill", "delete",       "remove", "rename", "copy",
    "lose", "remember", "bring back", "press", "gc",   "gc --unnamed", "rm",     "rm --on"};

// How often each kind is drawn where none is due.
constexpr std::array<unsigned, static_cast<std::size_t>(Kind::kEnd)> kWeights = {
    12, 0, 0, 0, 2, 1, 1, 1, 1, 4, 3, 2, 0, 0, 0, 0, 0};

bool uses_job(Kind kind) {
  return kind == Kind::kOpen || kind == Kind::kWrite || kind == Kind::kCommit ||
         kind == Kind::kClose || kind == Kind::kKill || kind == Kind::kPress;
}

std::vector<NodeIndex> draw_nodes(Random& random) {
  std::vector<NodeIndex> all(kNodes);
  for (NodeIndex n = 0; n < kNodes; ++n) all[n] = n;
  std::shuffle(all.begin(), all.end(), random);
  all.resize(2 + random() % 3);
  return all;
}

Kind draw_kind(Random& random) {
  unsigned total = 0;
  for (const unsigned weight : kWeights) total += weight;
  auto left = static_cast<unsigned>(random() % total);
  std::size_t kind = 0;
  while (left >= kWeights[kind]) left -= kWeights[kind++];
  return static_cast<Kind>(kind);
}

void draw_fault(Random& random, Step& step) {
  constexpr std::array kFaults = {store::Fault::kDead, store::Fault::kDead,
                                  store::Fault::kDead, store::Fault::kDeadShort,
                                  store::Fault::kIo,   store::Fault::kLate};
  step.fault = kFaults[random() % kFaults.size()];
  // A commit makes some hundred calls.
  step.fault_at = 1 + random() % (random() % 2 == 0 ? 60 : 600);
  // At the real path, of some twenty.
  step.fault_at_shared = random() % 3 == 0;
  if (step.fault_at_shared) step.fault_at = 1 + random() % 30;
  step.powerless = random() % 3 == 0 ? 0 : static_cast<unsigned>(random());
}

// What a job does after it has opened a file: a write and a commit or two, and a close.
std::vector<Kind> draw_session(Random& random) {
  std::vector<Kind> kinds;
  for (std::size_t i = random() % 3; i-- > 0;) {
    kinds.push_back(Kind::kWrite);
    if (random() % 2 == 0) kinds.push_back(Kind::kCommit);
  }
  kinds.push_back(Kind::kWrite);
  // The second does nothing unless the first failed.
  if (random() % 4 == 0) kinds.insert(kinds.end(), {Kind::kCommit, Kind::kCommit});
  kinds.push_back(random() % 8 == 0 ? Kind::kKill : Kind::kClose);
  return kinds;
}

// Disks are not changed while a process has files open there, nor is the name that it has just
// looked at.
bool may_be_inside(Kind kind) {
  return uses_job(kind) || kind == Kind::kDelete || kind == Kind::kRemove || kind == Kind::kCopy;
}

Step draw_upkeep(Random& random) {
  constexpr std::array kKinds = {Kind::kGc,        Kind::kGc, Kind::kGcUnnamed,
                                 Kind::kGcUnnamed, Kind::kRm, Kind::kRmOn};
  Step step;
  step.kind = kKinds[random() % kKinds.size()];
  step.seed = random();
  step.name = random() % 2 == 0 ? 0 : random() % kNames;
  step.node = static_cast<NodeIndex>(random() % kNodes);
  step.nodes = draw_nodes(random);
  if (random() % 3 != 0) {
    step.nodes.resize(kNodes);
    for (NodeIndex n = 0; n < kNodes; ++n) step.nodes[n] = n;
  }
  step.inside_at = 1 + random() % (random() % 2 == 0 ? 60 : 400);
  return step;
}

}  // namespace

std::vector<Step> draw_sequence(std::uint64_t seed) {
  std::vector<Step> steps = draw_jobs(seed);
  Random random(~seed);
  for (std::size_t i = random() % 4; i-- > 0;) {
    const std::size_t at = random() % (steps.size() + 1);
    const auto place = steps.begin() + static_cast<std::ptrdiff_t>(at);
    const bool pressed = random() % 4 == 0;
    if (pressed) {
      Step step;
      step.kind = Kind::kPress;
      step.seed = random();
      step.job = random() % kJobs;
      steps.insert(place, std::move(step));
      continue;
    }
    Step step = draw_upkeep(random);
    auto end = place;
    for (std::size_t n = random() % 5; n-- > 0 && end != steps.end() && may_be_inside(end->kind);) {
      step.inside.push_back(*end++);
    }
    if (step.inside.empty() && random() % 3 == 0) draw_fault(random, step);
    steps.insert(steps.erase(place, end), std::move(step));
  }
  return steps;
}

std::vector<Step> draw_jobs(std::uint64_t seed) {
  Random random(seed);
  // Few nodes meet each other more often.
  const std::vector<NodeIndex> favourites = draw_nodes(random);
  const auto copies = static_cast<unsigned>(1 + random() % 3);
  const bool one_name = random() % 2 == 0;
  std::array<std::vector<Kind>, kJobs> due;
  std::vector<Step> steps(6 + random() % 30);
  for (Step& step : steps) {
    step.job = random() % 4 == 0 ? 1 : 0;
    std::vector<Kind>& session = due[step.job];
    if (session.empty() || random() % 8 == 0) {
      step.kind = draw_kind(random);
      if (step.kind == Kind::kOpen) {
        session = draw_session(random);
        std::reverse(session.begin(), session.end());
      }
    } else {
      step.kind = session.back();
      session.pop_back();
    }
    step.seed = random();
    step.name = one_name ? 0 : random() % kNames;
    step.other = random() % kNames;
    step.nodes = random() % 3 == 0 ? draw_nodes(random) : favourites;
    if (random() % 6 == 0) step.nodes.resize(std::max<std::size_t>(1, step.nodes.size() - 1));
    step.node = random() % 2 == 0 ? favourites[random() % favourites.size()]
                                  : static_cast<NodeIndex>(random() % kNodes);
    step.writable = random() % 4 != 0;
    step.create = random() % 4 != 0;
    step.copies = random() % 8 == 0 ? static_cast<unsigned>(1 + random() % 3) : copies;
    step.keep = (step.seed >> 40 & 1) == 0 ? 1 : 3;
    step.striped = step.copies > 1 && (step.seed >> 41 & 3) == 0;
    step.cells = static_cast<unsigned>(random());
    if (random() % 8 == 0) draw_fault(random, step);
  }
  return steps;
}

std::string Step::text() const {
  std::string out = kKindNames[static_cast<std::size_t>(kind)];
  if (uses_job(kind)) out += ", job " + std::to_string(job);
  if (kind == Kind::kOpen || kind == Kind::kDelete) {
    out += ", f" + std::to_string(name) + " on nodes";
    for (const NodeIndex n : nodes) out += " " + std::to_string(n);
  }
  if (kind == Kind::kOpen) {
    out += writable ? ", to write" : ", to read";
    if (create) out += ", create";
    out += ", K = " + std::to_string(copies);
    if (striped) out += " in stripes";
    if (keep > 1) out += ", keeps " + std::to_string(keep);
  }
  if (kind == Kind::kRemove) out += " f" + std::to_string(name);
  if (kind == Kind::kRename || kind == Kind::kCopy) {
    out += " f" + std::to_string(name) + " to f" + std::to_string(other);
  }
  if (kind == Kind::kLose || kind == Kind::kRemember || kind == Kind::kBringBack) {
    out += " the disk of node " + std::to_string(node);
  }
  if (kind == Kind::kRm || kind == Kind::kRmOn) out += " f" + std::to_string(name);
  if (kind == Kind::kRmOn) out += " of node " + std::to_string(node);
  if (is_upkeep()) {
    out += ", with the stores of nodes";
    for (const NodeIndex n : nodes) out += " " + std::to_string(n);
  }
  if (!inside.empty()) out += "; at its call " + std::to_string(inside_at) + ":";
  for (const Step& step : inside) out += "\n  " + step.text();
  if (fault != store::Fault::kNone) {
    out += "; " + std::string(store::name_of(fault)) + " at call " + std::to_string(fault_at) +
           (fault_at_shared ? " of the shared file system" : "") + ", power lost where " +
           std::to_string(powerless % 64) + " has a bit";
  }
  return out;
}

}  // namespace dedup::simulation
