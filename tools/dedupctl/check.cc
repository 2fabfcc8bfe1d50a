// check: every chunk against its checksum and its name, every recipe shard against the commit
// record, and whether each is held K times, or its stripe is whole.
#include "tools/dedupctl/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/fields.h"
#include "base/text.h"
#include "store/chunk_check.h"
#include "tools/dedupctl/heal.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/progress.h"
#include "tools/dedupctl/select.h"

namespace dedup::ctl {
namespace {

constexpr std::size_t kRangesShown = 10;
constexpr std::uint64_t kReadAtOnce = std::uint64_t{512} << 20;
constexpr std::uint64_t kMostSteps = 32;

// Reads a store's chunks; those that are bad are not counted as held.
void check_part(const Session& session, Part& part, const std::string& node,
                const store::CommitRecord& record, CheckResult& result) {
  if (part.index() == nullptr) return;
  std::uint64_t live = 0;
  for (const auto& use : part.index()->segments()) live += use.live_bytes;
  Progress progress(session, record.path + " on " + node, live);
  // In steps, for the memory it takes and for the bar.
  const auto steps =
      static_cast<unsigned>(std::clamp<std::uint64_t>(live / kReadAtOnce, 1, kMostSteps));
  for (unsigned step = 0; step < steps; ++step) {
    const auto checked =
        store::check_chunks(part.store(), record.identity, record.attempt, step, steps);
    if (!checked.is_ok()) {
      result.problems.push_back({node, checked.status().message()});
      return;
    }
    result.chunks += checked->chunks;
    result.bytes += checked->bytes;
    result.bad += checked->bad.size();
    result.unproven += checked->unproven;
    for (const Fingerprint& fingerprint : checked->bad) part.distrust(fingerprint);
    for (const std::string& text : checked->texts) result.problems.push_back({node, text});
    progress.add(checked->stored);
  }
}

// All ranks' problems on rank 0.
std::vector<Problem> gather_problems(const Ranks& ranks, const std::vector<Problem>& mine) {
  std::vector<Problem> all;
  for (const Bytes& bytes : ranks.gather(encoded(mine))) {
    auto theirs = decoded<std::vector<Problem>>(bytes).value_or(std::vector<Problem>{});
    std::move(theirs.begin(), theirs.end(), std::back_inserter(all));
  }
  return all;
}

// What the catalog knows: stores that are missing or behind, records that do not hold.
void add_problems_of_stores(const Session& session, const FileRow& file,
                            std::vector<Problem>& problems) {
  const auto standings = session.catalog.standings(file);
  for (std::size_t i = 0; i < standings.size(); ++i) {
    const store::StoreEntry& entry = file.record().stores[i];
    if (standings[i] == Standing::kMissing) {
      problems.push_back({entry.node, "its store " + entry.uuid.hex() + " is missing"});
    } else if (standings[i] == Standing::kBehind) {
      problems.push_back({entry.node, "its store " + entry.uuid.hex() +
                                          " has no chunk of this generation that can be found"});
    }
  }
  for (const FileOnStore& on : file.on) {
    const std::string& node = session.catalog.stores[on.store].node;
    for (const std::string& text : on.survey.damaged) problems.push_back({node, text});
    if (!on.survey.index_damage.empty()) problems.push_back({node, on.survey.index_damage});
  }
}

void add_problems_of_holding(const CheckResult& result, const Generation& generation,
                             std::vector<Problem>& problems) {
  const plan::Tally& tally = result.holding.tally;
  for (const std::uint32_t s : generation.lost_shards()) {
    problems.push_back(
        {"", fmt::format("recipe shard {} of {} is lost", s, generation.record().shards.size())});
  }
  const auto stores = static_cast<std::uint32_t>(generation.record().stores.size());
  const bool is_striped = result.in_stripes(generation.record());
  if (result.wanted.within(stores) < result.wanted) {
    problems.push_back({"", fmt::format("{} are wanted, but it was committed on {} nodes",
                                        generation.record().stripes.parities > 0
                                            ? "stripes of " + redundancy_of(generation.record())
                                            : fmt::format("{} copies", result.wanted.as_copies()),
                                        stores)});
  }
  const auto& shards = generation.shards();
  const auto scarce = std::count_if(shards.begin(), shards.end(), [&](plan::Redundancy kept) {
    return !kept.is_lost() && kept < result.wanted;
  });
  if (scarce > 0) {
    problems.push_back({"", fmt::format("{} of {} recipe shards are on fewer than {} stores",
                                        scarce, shards.size(), result.wanted.as_copies())});
  }
  if (tally.short_bytes() > 0) {
    const std::uint32_t wanted = result.wanted.as_copies();
    problems.push_back(
        {"", is_striped ? fmt::format(
                              "{} bytes do not survive the loss of any {} stores, but are not lost",
                              tally.short_bytes(), wanted - 1)
                        : fmt::format("{} bytes are on fewer than {} stores, but not lost",
                                      tally.short_bytes(), wanted)});
  }
  if (result.unproven > 0) {
    problems.push_back(
        {"", fmt::format("{} copies are of chunks that were taken as equal by their SHA-1, which "
                         "can be the same by intent: whether they are what was written, only its "
                         "writer can tell; writing the file anew gives them names that prove it",
                         result.unproven)});
  }
  const auto lost = tally.lost();
  for (std::size_t i = 0; i < lost.size(); ++i) {
    if (i == kRangesShown) {
      problems.push_back({"", fmt::format("and {} more ranges are lost", lost.size() - i)});
      break;
    }
    problems.push_back(
        {"", fmt::format("bytes {} to {} are lost: they cannot be had from the stores here",
                         lost[i].offset, lost[i].end() - 1)});
  }
}

Json json_of_check(const Session& session, const FileRow& file, const CheckResult& result) {
  Json row = json_of(session, file);
  const plan::Tally& tally = result.holding.tally;
  row["result"] = result.is_sound() ? "sound" : tally.lost_bytes() > 0 ? "lost" : "degraded";
  row["checked_chunks"] = result.chunks;
  row["checked_bytes"] = result.bytes;
  row["bad_chunks"] = result.bad;
  row["unproven_chunks"] = result.unproven;
  row["wanted_copies"] = result.wanted.as_copies();
  row["lowest_copies"] = tally.lowest().as_copies();
  row["lowest_shard_copies"] = result.lowest_shard.as_copies();
  row["stripes"] = result.holding.stripes.count();
  row["whole_stripes"] = result.holding.stripes.whole();
  row["short_bytes"] = tally.short_bytes();
  row["lost_bytes"] = tally.lost_bytes();
  row["lost_ranges"] = Json::array();
  for (const ByteRange& range : tally.lost()) {
    row["lost_ranges"].push_back({{"offset", range.offset}, {"length", range.length}});
  }
  row["problems"] = Json::array();
  for (const Problem& problem : result.problems) {
    row["problems"].push_back({{"node", problem.node}, {"text", problem.text}});
  }
  return row;
}

std::string text_of_check(const FileRow& file, const CheckResult& result) {
  const std::string name = printable(name_of(file));
  std::string out;
  for (const Problem& problem : result.problems) {
    out += problem.node.empty()
               ? fmt::format("{}: {}\n", name, printable(problem.text))
               : fmt::format("{}: node {}: {}\n", name, problem.node, printable(problem.text));
  }
  const plan::Tally& tally = result.holding.tally;
  out += fmt::format("{}: {}; generation {}, {} copies of chunks read ({}), {} bad; {}\n", name,
                     result.is_sound()        ? "sound"
                     : tally.lost_bytes() > 0 ? "DATA IS LOST"
                                              : "not as it should be, nothing is lost",
                     file.record().number, result.chunks, human(result.bytes), result.bad,
                     kept_text(result.in_stripes(file.record()), tally.lowest().as_copies(),
                               result.wanted.as_copies()));
  return out;
}

}  // namespace

bool CheckResult::in_stripes(const store::CommitRecord& record) const {
  return record.stripes.parities > 0 || holding.stripes.count() > 0;
}

bool CheckResult::is_sound() const {
  return problems.empty() && bad == 0 && holding.tally.lowest() >= wanted && lowest_shard >= wanted;
}

Result<CheckResult> check_file(Session& session, const FileRow* file, const CheckScope& scope) {
  DEDUP_ASSIGN(const auto generation,
               Generation::open(session.ranks, session.local, session.catalog, file));
  const store::CommitRecord& record = generation->record();
  plan::Redundancy wanted = generation->wanted();
  if (scope.as_can_be) wanted = wanted.within(static_cast<std::uint32_t>(record.stores.size()));
  CheckResult result{0, 0, 0, 0, {plan::Tally(0, wanted)}, wanted, wanted, {}};
  result.problems = generation->problems();
  for (Part& part : generation->parts()) {
    if (!scope.reads_chunks) break;
    check_part(session, part, generation->node_of(part.position()), record, result);
  }
  for (std::uint64_t* number : {&result.chunks, &result.bytes, &result.bad, &result.unproven}) {
    session.ranks.sum({number, 1});
  }
  DEDUP_ASSIGN(result.holding, measure(*generation, wanted));
  const auto& shards = generation->shards();
  if (!shards.empty()) result.lowest_shard = *std::min_element(shards.begin(), shards.end());
  const std::vector<Problem> of_stripes = result.holding.stripes.problems(*generation);
  result.problems.insert(result.problems.end(), of_stripes.begin(), of_stripes.end());
  result.problems = gather_problems(session.ranks, result.problems);
  if (session.is_root()) {
    add_problems_of_stores(session, *file, result.problems);
    add_problems_of_holding(result, *generation, result.problems);
  }
  return result;
}

ExitCode check(Session& session) {
  if (session.options.repair) return repair(session);
  Json files = Json::array();
  const ExitCode code =
      for_each_file(session, [&](const FileRow* file, const std::string&) -> ExitCode {
        const auto result = check_file(session, file, {});
        if (!result.is_ok()) return fail(session, result.status());
        if (!session.is_root()) return kFine;
        if (session.options.json) {
          files.push_back(json_of_check(session, *file, *result));
        } else {
          print(text_of_check(*file, *result));
        }
        return result->is_sound() ? kFine : kProblems;
      });
  if (session.is_root() && session.options.json) {
    Json out = json_head(session, "check");
    out["files"] = std::move(files);
    print(out);
  }
  return code;
}

}  // namespace dedup::ctl
