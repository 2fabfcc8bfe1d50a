// top: what the stores have, again and again.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>

#include "base/warn.h"
#include "tools/dedupctl/duration.h"
#include "tools/dedupctl/node_watch.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/report_lines.h"
#include "tools/dedupctl/screen.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

using Clock = std::chrono::steady_clock;

NodeState state_of(const Session& session, std::size_t store) {
  const StoreRow& row = session.catalog.stores[store];
  NodeState node;
  node.node = row.node;
  node.files = row.survey.files.size();
  node.stored = row.survey.disk_bytes;
  node.dead = row.survey.dead_bytes;
  node.free = row.survey.free_bytes;
  for (const store::FileSurvey& file : row.survey.files) {
    node.uncommitted += file.log_bytes;
    if (file.writing) ++node.open;
  }
  return node;
}

// On rank 0.
Watched look(const Session& session) {
  const Catalog& catalog = session.catalog;
  Watched now;
  std::map<Id128, std::size_t> place;  // of a store in now.nodes
  for (std::size_t i = 0; i < catalog.stores.size(); ++i) {
    place[catalog.stores[i].survey.uuid] = now.nodes.size();
    now.nodes.push_back(state_of(session, i));
  }
  for (const FileRow& file : catalog.files) {
    if (file.deleted || file.is_kept()) continue;
    ++now.files;
    now.open +=
        std::ranges::any_of(file.on, [](const FileOnStore& on) { return on.survey.writing; });
    if (!file.exists()) continue;
    const auto standings = catalog.standings(file);
    if (!is_as_wanted(file, standings)) ++now.to_heal;
    const WrittenBack back = written_back(catalog, file);
    if (back.is_begun) now.to_write_back += file.record().size - back.bytes;
    for (std::size_t i = 0; i < standings.size(); ++i) {
      if (standings[i] == Standing::kHere) continue;
      const store::StoreEntry& entry = file.record().stores[i];
      const auto [it, is_new] = place.try_emplace(entry.uuid, now.nodes.size());
      if (is_new) {
        NodeState missing;
        missing.node = entry.node;
        missing.is_here = false;
        now.nodes.push_back(std::move(missing));
      }
      NodeState& node = now.nodes[it->second];
      if (node.is_here) {
        ++node.behind;
      } else {
        ++node.files;
      }
    }
  }
  return now;
}

// Of a report that a job appends to; one that is not there yet has no lines.
class Reported {
 public:
  explicit Reported(const std::string& path) : path_(path) { first_ = lines().size(); }

  std::optional<Moved> moved() const {
    if (path_.empty()) return std::nullopt;
    const std::vector<ReportedCommit> all = lines();
    Moved out;
    for (std::size_t i = first_; i < all.size(); ++i) {
      ++out.commits;
      out.written += all[i].written.total;
      out.stored += all[i].stored.total;
      out.sent += all[i].sent.total;
    }
    return out;
  }

 private:
  std::vector<ReportedCommit> lines() const {
    if (path_.empty()) return {};
    auto read = read_report(path_);
    return read.is_ok() ? std::move(*read) : std::vector<ReportedCommit>();
  }

  std::string path_;
  std::size_t first_ = 0;
};

Json json_of(const Session& session, const Watched& now,
             const std::vector<std::optional<double>>& changes, const std::optional<Moved>& moved) {
  Json out = json_head(session, "top");
  out["nodes"] = Json::array();
  for (std::size_t i = 0; i < now.nodes.size(); ++i) {
    const NodeState& node = now.nodes[i];
    Json row = {{"node", node.node},           {"state", node.is_here ? "here" : "missing"},
                {"files", node.files},         {"files_open", node.open},
                {"files_behind", node.behind}, {"disk_bytes", node.stored},
                {"dead_bytes", node.dead},     {"log_bytes", node.uncommitted},
                {"free_bytes", node.free}};
    row["bytes_a_second"] = i < changes.size() && changes[i] ? Json(*changes[i]) : Json(nullptr);
    out["nodes"].push_back(std::move(row));
  }
  out["files"] = now.files;
  out["files_open"] = now.open;
  out["files_to_heal"] = now.to_heal;
  out["bytes_to_write_back"] = now.to_write_back;
  if (moved) {
    out["commits"] = {{"count", moved->commits},
                      {"bytes_written", moved->written},
                      {"bytes_stored", moved->stored},
                      {"bytes_sent", moved->sent}};
  }
  return out;
}

std::string heading(const Session& session) {
  std::string text = fmt::format("dedupctl top, every {}, q ends it\n\n",
                                 duration_text(*parse_duration(session.options.interval)));
  for (const Trouble& trouble : session.catalog.troubles) {
    text += "node " + trouble.node + ": " + trouble.message + "\n";
  }
  return text;
}

// On rank 0: whether somebody ends it before the next look.
Result<bool> wait(Screen* screen, std::chrono::milliseconds interval) {
  if (screen != nullptr) return screen->wait_for_end(interval);
  const auto end = Clock::now() + interval;
  for (auto left = interval; left.count() > 0;
       left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now())) {
    if (::poll(nullptr, 0, static_cast<int>(left.count())) < 0 && errno != EINTR) {
      return Status::from_errno(errno, "cannot wait");
    }
  }
  return false;
}

}  // namespace

ExitCode top(Session& session) {
  const Options& options = session.options;
  const auto interval = std::chrono::milliseconds(
      static_cast<std::int64_t>(1000 * *parse_duration(options.interval)));
  std::unique_ptr<Screen> screen;
  Status status;
  if (session.is_root() && !options.json) {
    auto opened = Screen::open();
    status = opened.status();
    if (status.is_ok()) screen = std::move(*opened);
  }
  status = session.ranks.share(status);
  if (!status.is_ok()) return fail(session, status);
  const Reported reported(session.is_root() ? options.report : "");
  Watched before;
  auto before_at = Clock::now();
  for (std::uint64_t looks = 1;; ++looks) {
    if (session.is_root()) {
      Watched now = look(session);
      const auto now_at = Clock::now();
      const std::chrono::duration<double> passed = now_at - before_at;
      const auto changes =
          looks == 1 ? std::vector<std::optional<double>>() : rates(before, now, passed.count());
      const auto moved = reported.moved();
      if (screen) {
        screen->show(heading(session) + text_of(now, changes, moved));
      } else if (options.json) {
        print(json_of(session, now, changes, moved)
                  .dump(-1, ' ', false, Json::error_handler_t::replace) +
              "\n");
      } else {
        print_troubles(session);
        print((looks == 1 ? "" : "\n") + text_of(now, changes, moved));
      }
      std::fflush(stdout);
      before = std::move(now);
      before_at = now_at;
    }
    if (looks == options.count) break;
    std::uint64_t is_over = 0;
    if (session.is_root()) {
      const auto ended = wait(screen.get(), interval);
      status = ended.status();
      is_over = !ended.is_ok() || *ended ? 1 : 0;
    }
    // The others leave their cores to the job that is looked at.
    const Status told = session.ranks.combine(Combining::kSum, {&is_over, 1}, Waiting::kPatient);
    if (!told.is_ok()) return fail(session, told);
    if (is_over != 0) break;
    session.look_again();
  }
  screen.reset();
  return status.is_ok() ? session.code_of_stores() : fail(session, status);
}

}  // namespace dedup::ctl
