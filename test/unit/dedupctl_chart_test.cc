#include "tools/dedupctl/chart.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dedup::ctl {
namespace {

using Numbers = Chart::Numbers;

Chart chart(std::vector<std::optional<double>> values) {
  Chart out;
  out.title = "Title";
  out.description = "What it is <of>";
  for (std::size_t i = 0; i < values.size(); ++i) out.places.push_back(std::to_string(i + 1));
  out.series = {{"a & b", std::move(values)}};
  out.show = [](double value) { return std::to_string(static_cast<int>(value)); };
  return out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

TEST(AxisMarks, AreRoundAndFew) {
  EXPECT_EQ(axis_marks(6, Numbers::kAny), (std::vector<double>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(axis_marks(7, Numbers::kAny), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(axis_marks(1, Numbers::kWhole), (std::vector<double>{0, 1}));
  EXPECT_EQ(axis_marks(0, Numbers::kAny), (std::vector<double>{0, 1}));
  EXPECT_EQ(axis_marks(3 << 20, Numbers::kBytes),
            (std::vector<double>{0, 1 << 19, 1 << 20, 3 << 19, 1 << 21, 5 << 19, 3 << 20}));
  for (const double top : {1e-9, 0.3, 17., 1e6, 123456789.}) {
    const auto marks = axis_marks(top, Numbers::kAny);
    EXPECT_LE(marks.size(), 7u) << top;
    EXPECT_GE(marks.back(), top * (1 - 1e-6)) << top;
  }
}

TEST(Escaped, IsNoTagAndUtf8) {
  EXPECT_EQ(escaped("a<b>&\"c\"\n\x1b"), "a&lt;b&gt;&amp;&quot;c&quot;  ");
  EXPECT_EQ(escaped("\xff"), "\xef\xbf\xbd");
}

TEST(LineChart, HasAPointForEachNumberAndGapsForNone) {
  const std::string svg = line_chart(chart({1, 2, std::nullopt, 3}), 7);
  EXPECT_EQ(count(svg, "<circle"), 3u);
  // Its line begins anew behind the gap.
  const std::string path = svg.substr(svg.find("class=\"s0\""));
  EXPECT_EQ(std::ranges::count(path.substr(0, path.find("/>")), 'M'), 2);
  EXPECT_NE(svg.find("<title>2: a &amp; b 2</title>"), std::string::npos);
  EXPECT_NE(svg.find("role=\"img\" aria-labelledby=\"t7 d7\""), std::string::npos);
  EXPECT_NE(svg.find("<desc id=\"d7\">What it is &lt;of&gt;</desc>"), std::string::npos);
}

TEST(LineChart, OfOneNumberOrNoneIsAPicture) {
  for (const auto& values : {std::vector<std::optional<double>>{5}, {}, {std::nullopt}}) {
    const std::string svg = line_chart(chart(values), 1);
    EXPECT_EQ(count(svg, "<svg"), 1u);
    EXPECT_EQ(count(svg, "</svg>"), 1u);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
  }
}

TEST(LineChart, OfManyHasALineAndFewNames) {
  const std::string svg = line_chart(chart(std::vector<std::optional<double>>(1000, 1)), 1);
  EXPECT_EQ(count(svg, "<circle"), 0u);
  EXPECT_EQ(count(svg, "text-anchor=\"middle\""), 12u);
}

TEST(LineChart, ALogarithmHasNoZero) {
  Chart odds = chart({1e-6, 0, 0.5});
  odds.is_logarithmic = true;
  const std::string svg = line_chart(odds, 1);
  EXPECT_EQ(count(svg, "<circle"), 2u);
  EXPECT_EQ(count(svg, "class=\"grid\""), 7u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(BarChart, HasABarForEachNumber) {
  Chart nodes = chart({4, 2, 0});
  nodes.series.push_back({"second", {1, std::nullopt, 0}});
  const std::string svg = bar_chart(nodes, 3);
  EXPECT_EQ(count(svg, "<rect"), 6u);
  EXPECT_EQ(count(svg, "width=\"520.0\""), 1u);
  EXPECT_EQ(count(svg, "width=\"260.0\""), 1u);
  EXPECT_EQ(bar_chart(chart({0, 0}), 1).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace dedup::ctl
