// stat: what a file consists of, what deduplication saves, and each node's part.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "tools/dedupctl/duration.h"
#include "tools/dedupctl/holding.h"
#include "tools/dedupctl/node_load.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/prometheus.h"
#include "tools/dedupctl/select.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

Json json_of_load(const NodeLoad& load) {
  return {{"node", load.node},
          {"uuid", load.uuid},
          {"state", load.state},
          {"chunks", load.chunks},
          {"live_bytes", load.live_bytes},
          {"stored_bytes", load.stored_bytes},
          {"log_bytes", load.log_bytes}};
}

void put_odds(Json& row, const plan::LossOdds& odds) {
  row["losses_survived"] = odds.survived();
  row["loss_odds"] = Json::array();
  for (const plan::Odds& one : odds.beyond_survived(plan::kLossesTold)) {
    row["loss_odds"].push_back(one.probability);
  }
}

std::string text_of(const plan::LossOdds& odds) {
  std::string text = fmt::format("any {} of {} nodes", odds.survived(), odds.nodes());
  std::string_view separator = "; odds of losing data with";
  std::uint32_t lost = odds.survived();
  for (const plan::Odds& one : odds.beyond_survived(plan::kLossesTold)) {
    text += fmt::format("{} {}: {}{:.3g} %", separator, ++lost, one.error == 0 ? "" : "about ",
                        100 * one.probability);
    separator = ",";
  }
  return text;
}

Json json_of_holding(const Holding& holding, std::uint64_t size) {
  Json by_copies = Json::array();
  for (std::size_t c = 1; c < holding.of_copies.size(); ++c) {
    const ChunkCount& count = holding.of_copies[c];
    if (count.chunks == 0) continue;
    by_copies.push_back({{"copies", c}, {"chunks", count.chunks}, {"bytes", count.bytes}});
  }
  Json in_stripes = Json::array();
  for (std::size_t c = 1; c < holding.in_stripes.size(); ++c) {
    const ChunkCount& count = holding.in_stripes[c];
    if (count.chunks == 0) continue;
    in_stripes.push_back(
        {{"losses_survived", c - 1}, {"chunks", count.chunks}, {"bytes", count.bytes}});
  }
  return {{"data_bytes", holding.tally.data_bytes()},
          {"zero_bytes", size - holding.tally.data_bytes()},
          {"references", holding.tally.references()},
          {"unique_chunks", holding.unique().chunks},
          {"unique_bytes", holding.unique().bytes},
          {"by_copies", std::move(by_copies)},
          {"stripes", holding.stripes.count()},
          {"whole_stripes", holding.stripes.whole()},
          {"in_stripes", std::move(in_stripes)},
          {"lowest_copies", holding.tally.lowest().as_copies()},
          {"lost_bytes", holding.tally.lost_bytes()}};
}

std::string text_of_stripes(const store::CommitRecord& record, const Holding& holding) {
  std::string text = fmt::format("{} wanted; {} stripes, {} of them whole", redundancy_of(record),
                                 holding.stripes.count(), holding.stripes.whole());
  for (std::size_t c = holding.in_stripes.size(); c-- > 1;) {
    if (holding.in_stripes[c].chunks == 0) continue;
    text += fmt::format("; {} chunks survive {}", holding.in_stripes[c].chunks,
                        c == 1 ? "no loss" : fmt::format("any {} losses", c - 1));
  }
  return text;
}

std::string text_of(const Session& session, const FileRow& file, const Holding& holding,
                    const plan::LossOdds& odds) {
  const store::CommitRecord& record = file.record();
  const std::uint64_t data = holding.tally.data_bytes();
  const auto [unique_chunks, unique] = holding.unique();
  std::string out = printable(file.path) + "\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    out += fmt::format("  {:<14} {}\n", name, value);
  };
  line("identity", record.identity.hex());
  line("generation", fmt::format("{}, committed {}", record.number, utc(record.time)));
  line("size", fmt::format("{} ({} bytes)", human(record.size), record.size));
  line("zeros", human(record.size - data));
  line("data", fmt::format("{} in {} pieces, chunks of at most {}", human(data),
                           holding.tally.references(), human(record.chunk_size)));
  line("unique", fmt::format("{} in {} chunks ({})", human(unique), unique_chunks,
                             unique == 0 ? "nothing to compare"
                                         : fmt::format("{:.2f} of the data is unique",
                                                       static_cast<double>(unique) /
                                                           static_cast<double>(data))));
  std::string copies;
  for (std::size_t c = 1; c < holding.of_copies.size(); ++c) {
    if (holding.of_copies[c].chunks == 0) continue;
    copies += fmt::format("{}{} chunks on {}", copies.empty() ? "" : ", ",
                          holding.of_copies[c].chunks, c);
  }
  line("copies",
       fmt::format("{}; wanted on {}", copies.empty() ? "no chunks" : copies, record.replication));
  if (record.stripes.parities > 0 || holding.stripes.count() > 0) {
    line("stripes", text_of_stripes(record, holding));
  }
  if (holding.tally.lost_bytes() > 0) line("lost", human(holding.tally.lost_bytes()));
  if (odds.survived() < odds.nodes()) line("survives", text_of(odds));
  const Json json = json_of(session, file);
  const auto shared = json["shared_bytes"].get<std::uint64_t>();
  const auto disk = json["disk_bytes"].get<std::uint64_t>();
  if (shared > 0) {
    line("shared", fmt::format("{} with other files; to remove this one frees about {}",
                               human(shared), human(disk - std::min(disk, shared))));
  }
  Table table({"NODE", "CHUNKS", "LIVE", "STORED", "LOGS", "STORE", ""}, {1, 2, 3, 4});
  for (const NodeLoad& load : loads(session, file)) {
    table.add({load.node, std::to_string(load.chunks), human(load.live_bytes),
               human(load.stored_bytes), human(load.log_bytes), load.uuid,
               load.state == "here" ? "" : load.state});
  }
  return out + table.text();
}

}  // namespace

ExitCode stat(Session& session) {
  if (session.options.prometheus) return stat_for_prometheus(session);
  Json files = Json::array();
  std::string text;
  const ExitCode code =
      for_each_file(session, [&](const FileRow* file, const std::string&) -> ExitCode {
        auto generation = Generation::open(session.ranks, session.local, session.catalog, file);
        if (!generation.is_ok()) return fail(session, generation.status());
        const auto holding = measure(**generation, (*generation)->wanted());
        if (!holding.is_ok()) return fail(session, holding.status());
        if (!session.is_root()) return kFine;
        const plan::LossOdds odds = loss_odds(**generation, *holding);
        if (session.options.json) {
          Json row = json_of(session, *file);
          row.update(json_of_holding(*holding, file->record().size));
          put_odds(row, odds);
          row["nodes"] = Json::array();
          for (const NodeLoad& load : loads(session, *file))
            row["nodes"].push_back(json_of_load(load));
          files.push_back(std::move(row));
        } else {
          text += (text.empty() ? "" : "\n") + text_of(session, *file, *holding, odds);
        }
        return kFine;
      });
  if (session.is_root()) print_files(session, "stat", std::move(files), text);
  return code;
}

}  // namespace dedup::ctl
