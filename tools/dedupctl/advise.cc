// advise: what chunk size, mode and redundancy would do for a file, plain or in the stores; and how
// often to write a checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "base/warn.h"
#include "plan/advice.h"
#include "store/fs.h"
#include "store/real_path.h"
#include "tools/dedupctl/content.h"
#include "tools/dedupctl/duration.h"
#include "tools/dedupctl/interval.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/progress.h"
#include "tools/dedupctl/recommend.h"
#include "tools/dedupctl/report_lines.h"
#include "tools/dedupctl/select.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

constexpr std::uint64_t kReadAtOnce = kBlockSpan;
constexpr unsigned kUsualNodes = 8;

// Reads files one after the other, each a later step of the same, and has what is to be said of
// them; on rank 0.
class Examination {
 public:
  explicit Examination(unsigned nodes)
      : scan_({kScannedSizes.begin(), kScannedSizes.end()}, nodes), costs_(nodes) {}

  void begin(const std::string& path, std::uint64_t size) {
    path_ = path;
    size_ = size;
    sample_.emplace(kScannedSizes[kUsualSize]);
    scan_.begin(size);
  }
  void add(std::uint64_t offset, std::span<const std::byte> bytes) {
    scan_.add(offset, bytes);
    const std::uint64_t blocks = (size_ + kBlockSpan - 1) / kBlockSpan;
    if (plan::is_sampled(offset / kBlockSpan, blocks)) sample_->add_written(bytes);
  }
  // The file is read.
  void end();

  const std::string& text() const { return text_; }
  const Json& json() const { return json_; }
  // Of all files.
  std::string text_of_advice() const;
  void put_advice(Json& out) const;

 private:
  std::vector<std::string> sentences(const Recommendation& recommended) const;

  Scan scan_;
  CostTable costs_;
  plan::SampleFigures sampled_;  // of all files
  std::string path_;
  std::uint64_t size_ = 0;
  std::optional<plan::Sample> sample_;
  std::string text_;
  Json json_ = Json::array();
};

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string bytes_text(double bytes) {
  return human(static_cast<std::uint64_t>(bytes));
}

std::string losses(unsigned count) {
  return fmt::format("{} loss{}", count, count == 1 ? "" : "es");
}

std::string text_of_file(const std::string& path, std::uint64_t size, const CostTable& costs,
                         bool has_earlier) {
  const auto data = static_cast<double>(costs.figures(kUsualSize).data);
  const double zeros = size == 0 ? 0 : 1 - data / static_cast<double>(size);
  std::string out = fmt::format("{}\n  {}, {} zeros; as if {} nodes wrote it, a part each\n",
                                printable(path), human(size), percent(zeros), costs.nodes());
  if (data == 0) return out;
  std::vector<std::string> head{"CHUNKS", "FOUND", "BY NODES ALONE", "STORED", "SENT", "LISTS"};
  if (has_earlier) head.emplace_back("IN EARLIER FILES");
  Table sizes(head, {1, 2, 3, 4, 5, 6});
  for (std::size_t i = 0; i < kScannedSizes.size(); ++i) {
    const ScanFigures& figures = costs.figures(i);
    const ScanCost& cost = costs.cost(i, hints::Mode::kCollective);
    std::vector<std::string> row{human(kScannedSizes[i]),        percent(figures.found()),
                                 percent(figures.found_alone()), bytes_text(cost.stored),
                                 bytes_text(cost.sent),          bytes_text(cost.lists)};
    if (has_earlier) row.push_back(percent(figures.found_before()));
    sizes.add(std::move(row));
  }
  return out + sizes.text();
}

std::string text_of_ways(const CostTable& costs, std::size_t size) {
  Table table({"KEPT AS", "SURVIVES", "STORED", "SENT", "LISTS"}, {2, 3, 4});
  for (std::size_t i = 0; i < costs.ways().size(); ++i) {
    const ScanCost& cost = costs.cost_of_way(size, i);
    table.add({costs.ways()[i].name, losses(costs.ways()[i].losses), bytes_text(cost.stored),
               bytes_text(cost.sent), bytes_text(cost.lists)});
  }
  return table.text();
}

Json json_of(const ScanCost& cost) {
  const auto whole = [](double bytes) { return static_cast<std::uint64_t>(bytes); };
  return {{"stored_bytes", whole(cost.stored)},
          {"sent_bytes", whole(cost.sent)},
          {"list_bytes", whole(cost.lists)}};
}

Json json_of_file(const std::string& path, std::uint64_t size, const CostTable& costs) {
  Json sizes = Json::array();
  for (std::size_t i = 0; i < kScannedSizes.size(); ++i) {
    const ScanFigures& figures = costs.figures(i);
    Json row = {{"chunk_size", kScannedSizes[i]},
                {"data_bytes", figures.data},
                {"found", figures.found()},
                {"found_by_nodes_alone", figures.found_alone()},
                {"in_earlier_files", figures.found_before()}};
    row.update(json_of(costs.cost(i, hints::Mode::kCollective)));
    sizes.push_back(std::move(row));
  }
  return {{"path", path}, {"size", size}, {"nodes", costs.nodes()}, {"chunk_sizes", sizes}};
}

void Examination::end() {
  sampled_ += sample_->figures();
  const bool has_earlier = !text_.empty();
  CostTable costs(scan_.nodes());
  costs.add(scan_);
  costs_.add(scan_);
  text_ += (has_earlier ? "\n" : "") + text_of_file(path_, size_, costs, has_earlier);
  json_.push_back(json_of_file(path_, size_, costs));
}

std::vector<std::string> Examination::sentences(const Recommendation& recommended) const {
  std::vector<std::string> out = recommended.reasons;
  const ScanFigures& usual = costs_.figures(kUsualSize);
  plan::Findings findings;
  findings.chunk_size = kScannedSizes[kUsualSize];
  findings.data_bytes = usual.data;
  findings.unique_bytes = static_cast<std::uint64_t>(usual.different - usual.before);
  findings.sample = sampled_;
  for (std::string& sentence : plan::advice_on_content(findings)) {
    out.push_back(std::move(sentence));
  }
  return out;
}

std::string Examination::text_of_advice() const {
  if (text_.empty()) return {};
  const Recommendation recommended = recommend(costs_);
  std::string out = "\n";
  if (costs_.figures(kUsualSize).data > 0 && !costs_.ways().empty()) {
    out += text_of_ways(costs_, recommended.size) + "\n";
  }
  out += "what to do\n";
  for (const auto& [name, value] : recommended.settings) {
    out += fmt::format("  {}={}\n", name, value);
  }
  for (const std::string& sentence : sentences(recommended)) out += "  - " + sentence + "\n";
  return out;
}

void Examination::put_advice(Json& out) const {
  if (text_.empty()) return;
  const Recommendation recommended = recommend(costs_);
  out["redundancy"] = Json::array();
  for (std::size_t i = 0; i < costs_.ways().size(); ++i) {
    Json row = {{"name", costs_.ways()[i].name}, {"losses_survived", costs_.ways()[i].losses}};
    row.update(json_of(costs_.cost_of_way(recommended.size, i)));
    out["redundancy"].push_back(std::move(row));
  }
  out["settings"] = Json::object();
  for (const auto& [name, value] : recommended.settings) out["settings"][name] = value;
  out["advice"] = sentences(recommended);
}

// ---- Files --------------------------------------------------------------------------------------

// On rank 0: whether the user means a plain file, and not one in the stores.
bool is_plain(const std::string& name) {
  const auto state = store::look_at(absolute_path(without_prefix(name)));
  return state.is_ok() && state->kind == store::PathState::Kind::kPlain;
}

// On rank 0.
Status examine_plain(const Session& session, const std::string& name, Examination& examination) {
  const std::string path = absolute_path(without_prefix(name));
  DEDUP_ASSIGN(const auto file, store::fs::open_read(path));
  DEDUP_ASSIGN(const store::Stamp stamp, store::stamp_of(file));
  Progress progress(session, path, stamp.size);
  examination.begin(path, stamp.size);
  Bytes buffer;
  for (std::uint64_t at = 0; at < stamp.size; at += buffer.size()) {
    buffer.resize(std::min(kReadAtOnce, stamp.size - at));
    DEDUP_TRY(store::fs::read_at(file, at, buffer));
    examination.add(at, buffer);
    progress.add(buffer.size());
  }
  return Status::ok();
}

// Collective.
Result<Moved> examine_stored(Session& session, const FileRow* file, const std::string& path,
                             Examination& examination) {
  DEDUP_ASSIGN(const auto generation,
               Generation::open(session.ranks, session.local, session.catalog, file));
  Progress progress(session, path, generation->record().size);
  if (session.is_root()) examination.begin(path, generation->record().size);
  return move_content(
      *generation, {0}, true,
      [&](std::uint64_t offset, std::span<const std::byte> bytes) {
        examination.add(offset, bytes);
        return Status::ok();
      },
      [&](std::uint64_t bytes) { progress.add(bytes); });
}

ExitCode examine(Session& session, const std::string& name, Examination& examination) {
  std::uint64_t plain = session.is_root() && is_plain(name) ? 1 : 0;
  session.ranks.sum({&plain, 1});
  if (plain != 0) {
    const Status status = session.ranks.share(
        session.is_root() ? examine_plain(session, name, examination) : Status::ok());
    if (!status.is_ok()) return fail(session, status);
    if (session.is_root()) examination.end();
    return kFine;
  }
  return for_each_file(session, {name},
                       [&](const FileRow* file, const std::string& path) -> ExitCode {
                         const auto moved = examine_stored(session, file, path, examination);
                         if (!moved.is_ok()) return fail(session, moved.status());
                         if (!session.is_root()) return kFine;
                         examination.end();
                         if (moved->lost_bytes == 0) return kFine;
                         warn(fmt::format("{}: {} of it are lost, and taken for zeros", path,
                                          human(moved->lost_bytes)));
                         return kProblems;
                       });
}

// ---- Interval -----------------------------------------------------------------------------------

// What a checkpoint takes, and how that is known.
struct Known {
  double seconds = 0;
  std::string source;
};

// The median of what the commits took that have a time, of the files that are named, if any is.
Result<Known> cost_of_report(const Options& options) {
  DEDUP_ASSIGN(const std::vector<ReportedCommit> commits, read_report(options.report));
  std::vector<double> seconds;
  for (const ReportedCommit& commit : commits) {
    const bool is_meant =
        options.files.empty() ||
        std::any_of(options.files.begin(), options.files.end(), [&](const std::string& name) {
          return absolute_path(without_prefix(name)) == commit.file;
        });
    if (is_meant && commit.seconds > 0) seconds.push_back(commit.seconds);
  }
  if (seconds.empty()) {
    return Status(Code::kArgument, options.report + ": no line has seconds_writing" +
                                       (options.files.empty() ? "" : " of these files") +
                                       "; say with --write what a checkpoint takes");
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return Known{*middle, fmt::format("the median of {} commit{} in {}", seconds.size(),
                                    seconds.size() == 1 ? "" : "s", options.report)};
}

// What the options say.
Result<CheckpointCost> checkpoint_cost(const Options& options, std::string& source) {
  CheckpointCost cost;
  cost.mtbf = *parse_duration(options.mtbf);
  if (!options.restart.empty()) cost.restart = *parse_duration(options.restart);
  if (!options.write.empty()) {
    cost.write = *parse_duration(options.write);
    source = "as given";
    return cost;
  }
  if (options.report.empty()) {
    return Status(Code::kArgument,
                  "--mtbf takes --write, what a checkpoint takes, or --report, a file of commits");
  }
  DEDUP_ASSIGN(const Known known, cost_of_report(options));
  cost.write = known.seconds;
  source = known.source;
  return cost;
}

struct Named {
  const char* name;
  double seconds;
};

std::array<Named, 2> intervals(const CheckpointCost& cost) {
  return {Named{"Young", young_interval(cost)}, Named{"Daly", daly_interval(cost)}};
}

std::string text_of(const CheckpointCost& cost, const std::string& source) {
  std::string out = "how often to write a checkpoint\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    out += fmt::format("  {:<10} {}\n", name, value);
  };
  line("takes", duration_text(cost.write) + ", " + printable(source));
  line("failures", "one in " + duration_text(cost.mtbf));
  if (cost.restart > 0) line("restart", duration_text(cost.restart));
  for (const Named& interval : intervals(cost)) {
    line(interval.name,
         fmt::format("after {} of computing; {} of the time is lost",
                     duration_text(interval.seconds), percent(time_lost(cost, interval.seconds))));
  }
  if (cost.write > cost.mtbf / 2) {
    out +=
        "  - A checkpoint takes so long that a failure comes between many: no interval helps; "
        "write less, or faster.\n";
  }
  return out;
}

Json json_of(const CheckpointCost& cost, const std::string& source) {
  Json out = {{"write_seconds", cost.write},
              {"write_source", source},
              {"mtbf_seconds", cost.mtbf},
              {"restart_seconds", cost.restart}};
  for (const Named& interval : intervals(cost)) {
    const std::string name = interval.name == std::string_view("Young") ? "young" : "daly";
    out[name] = {{"seconds", interval.seconds}, {"time_lost", time_lost(cost, interval.seconds)}};
  }
  return out;
}

}  // namespace

ExitCode advise(Session& session) {
  const Options& options = session.options;
  if (options.files.empty() && options.mtbf.empty()) {
    return fail(session, Status(Code::kArgument, "advise takes FILE, or --mtbf, or both"));
  }
  std::optional<CheckpointCost> cost;
  std::string source;
  if (!options.mtbf.empty() && session.is_root()) {
    const auto known = checkpoint_cost(options, source);
    if (!known.is_ok()) return fail(session, known.status());
    cost = *known;
  }
  Examination examination(options.node_count == 0 ? kUsualNodes : options.node_count);
  ExitCode code = kFine;
  for (const std::string& name : options.files) {
    code = worse(code, examine(session, name, examination));
  }
  if (!session.is_root()) return code;
  if (options.json) {
    Json out = json_head(session, "advise");
    out["files"] = examination.json();
    examination.put_advice(out);
    if (cost) out["interval"] = json_of(*cost, source);
    print(out);
    return code;
  }
  std::string text = examination.text() + examination.text_of_advice();
  if (cost) text += (text.empty() ? "" : "\n") + text_of(*cost, source);
  print(text);
  return code;
}

}  // namespace dedup::ctl
