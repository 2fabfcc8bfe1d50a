// stat --prometheus: the stores', or some files', figures for monitoring.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tools/dedupctl/holding.h"
#include "tools/dedupctl/metrics.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/prometheus.h"
#include "tools/dedupctl/select.h"

namespace dedup::ctl {
namespace {

// Bytes that are on the store's disk and neither segments nor logs, as far as sizes tell.
std::uint64_t rest_of(std::uint64_t disk, std::uint64_t segments, std::uint64_t logs) {
  return disk - std::min(disk, segments + logs);
}

// What of a file is lost; known only if all stores are here to which it was committed.
struct Loss {
  bool is_known = false;
  std::uint64_t bytes = 0;
};

// Collective.
Result<Loss> loss_of(Session& session, const FileRow* file) {
  DEDUP_ASSIGN(const auto generation,
               Generation::open(session.ranks, session.local, session.catalog, file));
  DEDUP_ASSIGN(const Holding holding, measure(*generation, generation->wanted()));
  if (!session.is_root()) return Loss{};
  const auto standings = session.catalog.standings(*file);
  return Loss{std::find(standings.begin(), standings.end(), Standing::kMissing) == standings.end(),
              holding.tally.lost_bytes()};
}

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels labels_of(const StoreRow& row) {
  return {{"node", row.node}, {"store", row.survey.uuid.hex()}};
}

// One sample for each store.
std::string of_stores(const Catalog& catalog, const std::string& name, const std::string& help,
                      const std::function<std::uint64_t(const StoreRow&)>& value) {
  std::vector<MetricSample> samples;
  for (const StoreRow& row : catalog.stores) samples.push_back({labels_of(row), value(row)});
  return gauge(name, help, samples);
}

std::string text_of_stores(const Catalog& catalog) {
  const auto logs = [](const StoreRow& row) {
    std::uint64_t sum = 0;
    for (const store::FileSurvey& file : row.survey.files) sum += file.log_bytes;
    return sum;
  };
  std::string out;
  out += of_stores(catalog, "dedup_store_segment_bytes", "Bytes of segments, in which chunks are.",
                   [](const StoreRow& row) { return row.survey.segment_bytes; });
  out += of_stores(
      catalog, "dedup_store_live_bytes",
      "Of these, bytes that newest or kept generations need, at least.",
      [](const StoreRow& row) { return row.survey.segment_bytes - row.survey.dead_bytes; });
  out += of_stores(catalog, "dedup_store_dead_bytes",
                   "Of these, bytes that none of them needs, at most.",
                   [](const StoreRow& row) { return row.survey.dead_bytes; });
  out += of_stores(catalog, "dedup_store_metadata_bytes",
                   "Disk space beside segments and logs: records, recipes, indexes, directories.",
                   [&](const StoreRow& row) {
                     return rest_of(row.survey.disk_bytes, row.survey.segment_bytes, logs(row));
                   });
  out +=
      of_stores(catalog, "dedup_store_log_bytes", "Bytes of jobs' logs, not committed yet.", logs);
  out += of_stores(catalog, "dedup_store_free_bytes",
                   "Bytes that are free on the store's file system.",
                   [](const StoreRow& row) { return row.survey.free_bytes; });
  out += of_stores(catalog, "dedup_store_files", "Files that the store has a part of.",
                   [&](const StoreRow& row) {
                     const auto& files = row.survey.files;
                     return static_cast<std::uint64_t>(std::count_if(
                         files.begin(), files.end(), [&](const store::FileSurvey& file) {
                           const FileRow* const known = catalog.row_of(file.identity);
                           return known == nullptr || !known->is_kept();
                         }));
                   });
  out += of_stores(catalog, "dedup_store_generations", "Committed generations, also older ones.",
                   [](const StoreRow& row) {
                     std::uint64_t sum = 0;
                     for (const auto& file : row.survey.files) sum += file.committed.size();
                     return sum;
                   });
  out += gauge("dedup_stores_unreadable", "Stores that should be there and cannot be read.",
               {{{}, catalog.troubles.size()}});
  return out;
}

// The samples of files that are named, one metric after the other.
struct FileSamples {
  std::vector<MetricSample> segments;
  std::vector<MetricSample> live;
  std::vector<MetricSample> dead;
  std::vector<MetricSample> metadata;
  std::vector<MetricSample> lost;

  void add(const Catalog& catalog, const FileRow& file, const std::string& path, const Loss& loss) {
    const Labels name{{"file", path}, {"identity", file.identity.hex()}};
    for (const FileOnStore& on : file.on) {
      Labels labels = name;
      for (auto& label : labels_of(catalog.stores[on.store])) labels.push_back(std::move(label));
      const store::FileSurvey& survey = on.survey;
      const std::uint64_t needed = std::min(survey.live_bytes, survey.segment_bytes);
      segments.push_back({labels, survey.segment_bytes});
      live.push_back({labels, needed});
      dead.push_back({labels, survey.segment_bytes - needed});
      metadata.push_back(
          {labels, rest_of(survey.disk_bytes, survey.segment_bytes, survey.log_bytes)});
    }
    if (loss.is_known) lost.push_back({name, loss.bytes});
  }

  std::string text() const {
    return gauge("dedup_file_segment_bytes", "Bytes of segments that the file has.", segments) +
           gauge("dedup_file_live_bytes", "Of these, bytes that its newest generation needs.",
                 live) +
           gauge("dedup_file_dead_bytes", "Of these, bytes that it does not need.", dead) +
           gauge("dedup_file_metadata_bytes",
                 "The file's disk space beside segments and logs: records, recipes, indexes.",
                 metadata) +
           gauge("dedup_file_lost_bytes", "Bytes of the file that no store has.", lost);
  }
};

}  // namespace

ExitCode stat_for_prometheus(Session& session) {
  if (session.options.json) {
    return fail(session, Status(Code::kArgument, "stat takes --json or --prometheus, not both"));
  }
  std::set<Id128> seen;
  FileSamples samples;
  Loss all{true, 0};
  const ExitCode code =
      for_each_file(session, [&](const FileRow* file, const std::string& path) -> ExitCode {
        const auto loss = loss_of(session, file);
        if (!loss.is_ok()) return fail(session, loss.status());
        if (!session.is_root()) return kFine;
        all.is_known = all.is_known && loss->is_known;
        all.bytes += loss->bytes;
        // Of a file that is named twice there are samples once.
        if (seen.insert(file->identity).second) samples.add(session.catalog, *file, path, *loss);
        return kFine;
      });
  if (!session.is_root()) return code;
  if (!session.options.files.empty()) {
    print(samples.text());
    return code;
  }
  std::string text = text_of_stores(session.catalog);
  // What went wrong is a file of which nothing is known, or a store that may have what is missing.
  if (all.is_known && code == kFine) {
    text += gauge("dedup_lost_bytes", "Bytes of all files that no store has.", {{{}, all.bytes}});
  }
  print(text);
  return code;
}

}  // namespace dedup::ctl
