#include "engine/report.h"

#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dedup::engine {
namespace {

struct Figure {
  const char* name;
  double (*value)(const DumpStats&);
};

template <auto Member>
double field(const DumpStats& stats) {
  return static_cast<double>(stats.*Member);
}

constexpr std::array<Figure, 16> kFigures = {{
    {"bytes_written", field<&DumpStats::bytes_written>},
    {"bytes_zero", field<&DumpStats::bytes_zero>},
    {"bytes_unique_local", field<&DumpStats::bytes_unique_local>},
    {"bytes_stored_before", field<&DumpStats::bytes_stored_before>},
    {"bytes_fingerprinted", field<&DumpStats::bytes_fingerprinted>},
    {"bytes_unique_collective", field<&DumpStats::bytes_unique_collective>},
    {"bytes_stored", field<&DumpStats::bytes_stored>},
    {"bytes_sent", field<&DumpStats::bytes_sent>},
    {"bytes_received", field<&DumpStats::bytes_received>},
    {"bytes_reducing", field<&DumpStats::bytes_reducing>},
    {"merges", field<&DumpStats::merges>},
    {"seconds_hashing", field<&DumpStats::seconds_hashing>},
    {"seconds_reducing", field<&DumpStats::seconds_reducing>},
    {"seconds_exchanging", field<&DumpStats::seconds_exchanging>},
    {"seconds_storing", field<&DumpStats::seconds_storing>},
    {"seconds_writing", field<&DumpStats::seconds_writing>},
}};

bool is_whole(std::string_view name) {
  return !name.starts_with("seconds_");
}

std::string number_text(std::string_view name, double value) {
  if (is_whole(name)) return std::to_string(static_cast<std::uint64_t>(value));
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

nlohmann::json number_json(std::string_view name, double value) {
  if (is_whole(name)) return static_cast<std::uint64_t>(std::llround(value));
  return value;
}

}  // namespace

const OverRanks& LastCommit::figure(std::string_view name) const {
  return std::ranges::find(figures, name, &decltype(figures)::value_type::first)->second;
}

std::uint64_t LastCommit::total(std::string_view name) const {
  return static_cast<std::uint64_t>(std::llround(figure(name).total));
}

namespace {

// Of each figure the sum over ranks, the least and the largest, and how many troubles there are.
struct Figures {
  std::array<OverRanks, kFigures.size()> of;  // in order; `mine` has no meaning here
  double troubles = 0;
};
constexpr int kFiguresWords = sizeof(Figures) / sizeof(double);
static_assert(sizeof(Figures) == sizeof(double) * (4 * kFigures.size() + 1));

void add_figures(void* in, void* in_and_out, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    const Figures& theirs = static_cast<const Figures*>(in)[i];
    Figures& ours = static_cast<Figures*>(in_and_out)[i];
    for (std::size_t f = 0; f < kFigures.size(); ++f) {
      ours.of[f].total += theirs.of[f].total;
      ours.of[f].min = std::min(ours.of[f].min, theirs.of[f].min);
      ours.of[f].max = std::max(ours.of[f].max, theirs.of[f].max);
    }
    ours.troubles += theirs.troubles;
  }
}

}  // namespace

LastCommit collect_figures(const Topology& topology, const DumpStats& stats,
                           std::size_t& troubles) {
  Figures all;
  for (std::size_t i = 0; i < kFigures.size(); ++i) {
    const double mine = kFigures[i].value(stats);
    all.of[i] = {mine, mine, mine, mine};
  }
  all.troubles = static_cast<double>(troubles);
  MPI_Datatype type;
  MPI_Op op;
  PMPI_Type_contiguous(kFiguresWords, MPI_DOUBLE, &type);
  PMPI_Type_commit(&type);
  PMPI_Op_create(add_figures, 1, &op);
  PMPI_Allreduce(MPI_IN_PLACE, &all, 1, type, op, topology.comm());
  PMPI_Op_free(&op);
  PMPI_Type_free(&type);
  troubles = static_cast<std::size_t>(std::llround(all.troubles));
  LastCommit last;
  last.any = true;
  last.ranks = topology.size();
  for (std::size_t i = 0; i < kFigures.size(); ++i) {
    all.of[i].mine = kFigures[i].value(stats);
    last.figures.emplace_back(kFigures[i].name, all.of[i]);
  }
  return last;
}

std::vector<std::pair<std::string, std::string>> describe(const LastCommit& last) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!last.any) return out;
  out.emplace_back("dedup_last_generation", std::to_string(last.generation));
  for (const auto& [name, figure] : last.figures) {
    out.emplace_back("dedup_last_" + name, number_text(name, figure.mine));
    out.emplace_back("dedup_last_total_" + name, number_text(name, figure.total));
  }
  return out;
}

Status append_report(const std::string& report_path, const std::string& file, const Id128& identity,
                     const hints::Hints& hints, unsigned nodes, const LastCommit& last,
                     const plan::LossOdds& odds) {
  nlohmann::ordered_json line;
  line["file"] = file;
  line["identity"] = identity.hex();
  line["generation"] = last.generation;
  line["time"] = last.time;
  for (const auto& [key, value] : hints::describe(hints)) {
    if (key == "dedup_mode") line["mode"] = value;
  }
  line["replication"] = hints.replication;
  line["chunk_size"] = hints.chunk_size;
  line["ranks"] = last.ranks;
  line["nodes"] = nodes;
  for (const auto& [name, figure] : last.figures) {
    line[name] = {{"total", number_json(name, figure.total)},
                  {"min", number_json(name, figure.min)},
                  {"avg", figure.total / last.ranks},
                  {"max", number_json(name, figure.max)}};
  }
  line["lowest_copies"] = last.lowest_copies;
  line["node_sets"] = last.node_sets;
  line["losses_survived"] = odds.survived();
  line["loss_odds"] = nlohmann::json::array();
  for (const plan::Odds& one : odds.beyond_survived(plan::kLossesTold)) {
    line["loss_odds"].push_back(one.probability);
  }
  line["copies_made"] = last.copies_made;
  line["lost_chunks"] = last.lost_chunks;
  line["unknown_bytes"] = last.unknown_bytes;
  line["not_written_back"] = nlohmann::json::array();
  for (const auto& [path, why] : last.not_written_back) {
    line["not_written_back"].push_back({{"file", path}, {"why", why}});
  }
  // A path in a file name need not be UTF-8: what is not is replaced, not refused.
  const std::string text =
      line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";

  const int fd = open(report_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return Status::from_errno(errno, "report file " + report_path);
  // One write, so that lines of several jobs do not mix.
  const ssize_t written = write(fd, text.data(), text.size());
  Status status;
  if (written != static_cast<ssize_t>(text.size())) {
    status = Status::from_errno(written < 0 ? errno : ENOSPC, "report file " + report_path);
  }
  if (close(fd) != 0 && status.is_ok()) {
    status = Status::from_errno(errno, "report file " + report_path);
  }
  return status;
}

}  // namespace dedup::engine
