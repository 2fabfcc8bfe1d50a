#include "tools/dedupctl/report_lines.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

namespace dedup::ctl {
namespace {

using nlohmann::json;

OverRanks over_ranks(const json& line, const char* name) {
  const json& figure = line.at(name);
  return {figure.at("total").get<double>(), figure.at("min").get<double>(),
          figure.at("avg").get<double>(), figure.at("max").get<double>()};
}

}  // namespace

Result<ReportedCommit> parse_commit(const std::string& text) {
  try {
    const json line = json::parse(text);
    ReportedCommit commit;
    commit.file = line.at("file").get<std::string>();
    commit.generation = line.at("generation").get<std::uint64_t>();
    commit.time = line.value("time", std::uint64_t{0});
    commit.mode = line.at("mode").get<std::string>();
    commit.replication = line.at("replication").get<std::uint64_t>();
    commit.chunk_size = line.at("chunk_size").get<std::uint64_t>();
    commit.ranks = line.at("ranks").get<std::uint64_t>();
    commit.nodes = line.at("nodes").get<std::uint64_t>();
    commit.written = over_ranks(line, "bytes_written");
    commit.zero = over_ranks(line, "bytes_zero");
    commit.unique = over_ranks(line, "bytes_unique_local");
    commit.stored = over_ranks(line, "bytes_stored");
    commit.sent = over_ranks(line, "bytes_sent");
    if (line.contains("seconds_writing")) commit.seconds = over_ranks(line, "seconds_writing").max;
    commit.lowest_copies = line.at("lowest_copies").get<std::uint64_t>();
    commit.losses_survived = line.value("losses_survived", std::uint64_t{0});
    commit.loss_odds = line.value("loss_odds", std::vector<double>{});
    return commit;
  } catch (const json::exception& error) {
    return Status(Code::kCorrupt, std::string("is no line of a report: ") + error.what());
  }
}

Result<std::vector<ReportedCommit>> read_report(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status::from_errno(errno, "cannot open " + path);
  std::vector<ReportedCommit> commits;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    auto commit = parse_commit(line);
    if (!commit.is_ok()) return commit.status().with_context(fmt::format("{}:{}", path, number));
    commits.push_back(std::move(*commit));
  }
  if (file.bad()) return Status(Code::kIo, "cannot read " + path);
  return commits;
}

}  // namespace dedup::ctl
