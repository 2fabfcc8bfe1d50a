#include "tools/dedupctl/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "tools/dedupctl/chart.h"
#include "tools/dedupctl/duration.h"

namespace dedup::ctl {
namespace {

// Colours that are told apart by who does not see red or green, each also with dashes of its own.
constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>dedup: files' history</title>
<style>
:root {
  --paper: #ffffff; --ink: #1b1f24; --dim: #57606a; --grid: #d0d7de;
  --c0: #0b5fa5; --c1: #b34700; --c2: #007a5a; --c3: #8a3fa0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181d; --ink: #e6edf3; --dim: #9da7b1; --grid: #343b44;
    --c0: #6cb6ff; --c1: #ffab66; --c2: #4fd1a5; --c3: #d2a8ff;
  }
}
body {
  background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 60rem; padding: 1rem;
}
h1 { font-size: 1.5rem; }
h2 { font-size: 1.2rem; overflow-wrap: anywhere; border-top: 1px solid var(--grid); padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0; }
p.note { color: var(--dim); margin: 0 0 0.25rem; }
figure { margin: 0; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--dim); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--grid); stroke-width: 1; }
.s0, .s1, .s2, .s3 { fill: none; stroke-width: 2; }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); stroke-dasharray: 7 3; }
.s2 { stroke: var(--c2); stroke-dasharray: 2 3; } .s3 { stroke: var(--c3); stroke-dasharray: 9 3 2 3; }
circle { stroke: none; }
.s0 circle, .b0 { fill: var(--c0); } .s1 circle, .b1 { fill: var(--c1); }
.s2 circle, .b2 { fill: var(--c2); } .s3 circle, .b3 { fill: var(--c3); }
figcaption svg { display: inline-block; width: 2.2rem; height: 0.8rem; vertical-align: middle; }
figcaption span { margin-right: 1.2rem; white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.9rem; }
th, td { padding: 0.2rem 0.7rem; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
</style>
</head>
<body>
<h1>dedup: files' history</h1>
)";

std::string bytes_text(double number) {
  return human(static_cast<std::uint64_t>(std::max(0.0, std::round(number))));
}

std::string percent_text(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

std::string whole_text(double number) {
  return fmt::format("{:.0f}", number);
}

// 1 once in so many: "0.5 %", "1e-06 %".
std::string odds_text(const std::vector<double>& odds) {
  std::string text;
  for (const double one : odds) text += (text.empty() ? "" : ", ") + percent_text(one);
  return text.empty() ? "-" : text;
}

using Value = std::function<std::optional<double>(const ReportedCommit&)>;

Series series(const std::string& name, const std::vector<ReportedCommit>& commits,
              const Value& value) {
  Series out{name, {}};
  for (const ReportedCommit& commit : commits) out.values.push_back(value(commit));
  return out;
}

// The pictures of a page, numbered.
class Pictures {
 public:
  std::string lines(const Chart& chart) { return framed(chart, line_chart(chart, ++count_), "s"); }
  std::string bars(const Chart& chart) { return framed(chart, bar_chart(chart, ++count_), "b"); }

 private:
  static std::string framed(const Chart& chart, const std::string& picture,
                            const std::string& kind) {
    std::string out =
        fmt::format("<figure>\n<h3>{}</h3>\n<p class=\"note\">{}</p>\n{}<figcaption>\n",
                    escaped(chart.title), escaped(chart.description), picture);
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
      const std::string sign =
          kind == "s" ? fmt::format("<g class=\"s{}\"><path d=\"M0,6H34\"/></g>", i)
                      : fmt::format("<rect class=\"b{}\" width=\"34\" height=\"12\"/>", i);
      out +=
          fmt::format("<span><svg viewBox=\"0 0 34 12\" aria-hidden=\"true\">{}</svg> {}</span>\n",
                      sign, escaped(chart.series[i].name));
    }
    return out + "</figcaption>\n</figure>\n";
  }

  std::size_t count_ = 0;
};

Chart chart_of(const std::vector<ReportedCommit>& commits) {
  Chart chart;
  for (const ReportedCommit& commit : commits) {
    chart.places.push_back(std::to_string(commit.generation));
  }
  return chart;
}

std::string pictures_of(const std::vector<ReportedCommit>& commits, Pictures& pictures) {
  std::string out;
  Chart bytes = chart_of(commits);
  bytes.title = "Bytes of each commit";
  bytes.description =
      "By generation: what the program wrote, and what of it was stored on all nodes and sent.";
  bytes.numbers = Chart::Numbers::kBytes;
  bytes.show = bytes_text;
  bytes.series = {series("written", commits, [](const auto& c) { return c.written.total; }),
                  series("stored", commits, [](const auto& c) { return c.stored.total; }),
                  series("sent", commits, [](const auto& c) { return c.sent.total; })};
  out += pictures.lines(bytes);

  Chart found = chart_of(commits);
  found.title = "What was found to be there already";
  found.description =
      "Zeros, as a share of what was written; and what copies of all data would have taken and "
      "did not, as a share of that.";
  found.show = percent_text;
  found.least_top = 1;
  found.series = {series("zeros", commits,
                         [](const auto& c) {
                           return c.written.total == 0
                                      ? std::nullopt
                                      : std::optional(c.zero.total / c.written.total);
                         }),
                  series("saved of copies", commits, saved_share)};
  out += pictures.lines(found);

  Chart copies = chart_of(commits);
  copies.title = "Redundancy";
  copies.description =
      "On how many nodes the chunk is that is on fewest, on how many each should be, and how many "
      "nodes could be lost, whichever they are, without a loss of data.";
  copies.numbers = Chart::Numbers::kWhole;
  copies.show = whole_text;
  copies.series = {
      series("fewest copies", commits,
             [](const auto& c) { return static_cast<double>(c.lowest_copies); }),
      series("wanted", commits, [](const auto& c) { return static_cast<double>(c.replication); }),
      series("losses survived", commits,
             [](const auto& c) { return static_cast<double>(c.losses_survived); })};
  out += pictures.lines(copies);

  Chart odds = chart_of(commits);
  odds.title = "Odds of losing data";
  odds.description =
      "If one node more is lost than is survived for certain, two more and three more, all nodes "
      "alike. The axis is logarithmic.";
  odds.show = percent_text;
  odds.is_logarithmic = true;
  for (std::size_t more = 0; more < 3; ++more) {
    odds.series.push_back(
        series(more == 0 ? "one more" : fmt::format("{} more", more == 1 ? "two" : "three"),
               commits, [more](const auto& c) {
                 return more < c.loss_odds.size() ? std::optional(c.loss_odds[more]) : std::nullopt;
               }));
  }
  out += pictures.lines(odds);

  Chart loads = chart_of(commits);
  loads.title = "Load of ranks";
  loads.description = "What the rank stored that stored most, least, and on average.";
  loads.numbers = Chart::Numbers::kBytes;
  loads.show = bytes_text;
  loads.series = {series("most", commits, [](const auto& c) { return c.stored.max; }),
                  series("average", commits, [](const auto& c) { return c.stored.average; }),
                  series("least", commits, [](const auto& c) { return c.stored.min; })};
  out += pictures.lines(loads);

  const bool has_times = std::ranges::any_of(commits, [](const auto& c) { return c.seconds > 0; });
  if (!has_times) return out;
  Chart times = chart_of(commits);
  times.title = "Time";
  times.description = "What writing and committing took of the slowest rank's time.";
  times.show = [](double seconds) { return fmt::format("{:.3g} s", seconds); };
  times.series = {series("seconds", commits, [](const auto& c) {
    return c.seconds > 0 ? std::optional(c.seconds) : std::nullopt;
  })};
  return out + pictures.lines(times);
}

std::string row(const char* cell, const std::vector<std::string>& words) {
  std::string out = "<tr>";
  for (const std::string& word : words) {
    out += fmt::format("<{}>{}</{}>", cell, escaped(word), cell);
  }
  return out + "</tr>\n";
}

std::string table_of(const std::vector<ReportedCommit>& commits) {
  std::string out = "<details>\n<summary>All numbers</summary>\n<div class=\"scroll\"><table>\n" +
                    row("th", {"generation", "committed", "written", "zeros", "stored", "sent",
                               "saved of copies", "seconds", "ranks", "nodes", "mode", "copies",
                               "losses survived", "odds of the next losses"});
  for (const ReportedCommit& c : commits) {
    const auto saved = saved_share(c);
    out += row(
        "td",
        {std::to_string(c.generation), c.time == 0 ? "-" : utc(c.time), bytes_text(c.written.total),
         bytes_text(c.zero.total), bytes_text(c.stored.total), bytes_text(c.sent.total),
         saved ? percent_text(*saved) : "-", c.seconds > 0 ? duration_text(c.seconds) : "-",
         std::to_string(c.ranks), std::to_string(c.nodes), c.mode,
         fmt::format("{} of {}", c.lowest_copies, c.replication), std::to_string(c.losses_survived),
         odds_text(c.loss_odds)});
  }
  return out + "</table></div>\n</details>\n";
}

std::string text_of_now(const StoredNow& now, Pictures& pictures) {
  Chart chart;
  chart.title = "What nodes have of it now";
  chart.description = "In its segments, and what of that the newest generation needs.";
  chart.numbers = Chart::Numbers::kBytes;
  chart.show = bytes_text;
  chart.series = {{"stored", {}}, {"needed", {}}};
  for (const NodePart& part : now.nodes) {
    chart.places.push_back(part.state == "here" ? part.node
                                                : fmt::format("{} ({})", part.node, part.state));
    chart.series[0].values.emplace_back(part.stored);
    chart.series[1].values.emplace_back(part.live);
  }
  std::string out = fmt::format(
      "<p>Now in the stores: generation {}, {}, committed {}. {}It survives the loss of any {} "
      "node{}; the odds of losing data with one more, two more and three more: {}.</p>\n",
      now.generation, human(now.size), utc(now.time),
      now.lost == 0 ? "" : fmt::format("{} of it are lost. ", human(now.lost)), now.losses_survived,
      now.losses_survived == 1 ? "" : "s", odds_text(now.loss_odds));
  return out + (now.nodes.empty() ? "" : pictures.bars(chart));
}

}  // namespace

std::optional<double> saved_share(const ReportedCommit& commit) {
  const double data = commit.written.total - commit.zero.total;
  const auto copies =
      static_cast<double>(std::max<std::uint64_t>(1, std::min(commit.replication, commit.nodes)));
  if (data <= 0) return std::nullopt;
  return std::max(0.0, 1 - commit.stored.total / (data * copies));
}

std::string page_of(const std::vector<FileHistory>& files) {
  std::string out = kHead;
  Pictures pictures;
  for (const FileHistory& file : files) {
    out += fmt::format("<section>\n<h2>{}</h2>\n", escaped(file.path));
    if (file.now) out += text_of_now(*file.now, pictures);
    if (file.commits.empty()) {
      out += "<p class=\"note\">No report of its commits (dedup_report).</p>\n";
    } else {
      out += pictures_of(file.commits, pictures) + table_of(file.commits);
    }
    out += "</section>\n";
  }
  if (files.empty()) out += "<p>No file.</p>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace dedup::ctl
