#include "tools/dedupctl/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/dedupctl/utf8.h"

namespace dedup::ctl {
namespace {

// In the units of the picture, which is as wide as its place in the page.
constexpr double kWidth = 720;
constexpr double kHeight = 260;
constexpr double kLeft = 84;
constexpr double kRight = 16;
constexpr double kTop = 12;
constexpr double kBottom = 34;
constexpr double kBar = 14;
constexpr double kBetweenNodes = 12;
constexpr double kNames = 120;   // of nodes
constexpr double kNumbers = 80;  // behind bars
constexpr std::size_t kMostPlaceNames = 12;
constexpr std::size_t kMostMarked = 60;  // commits whose points are shown
constexpr std::size_t kMostMarks = 7;
constexpr std::size_t kColours = 4;  // that page.cc has

std::string head(const Chart& chart, std::size_t number, double height) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"t{} d{}\">\n"
      "<title id=\"t{}\">{}</title>\n<desc id=\"d{}\">{}</desc>\n",
      kWidth, height, number, number, number, escaped(chart.title), number,
      escaped(chart.description));
}

std::string text(double x, double y, const char* anchor, const std::string& what) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(what));
}

double largest(const Chart& chart) {
  double most = chart.least_top;
  for (const Series& series : chart.series) {
    for (const auto& value : series.values) most = std::max(most, value.value_or(0));
  }
  return most;
}

// Numbers to heights.
class Axis {
 public:
  explicit Axis(const Chart& chart) : is_logarithmic_(chart.is_logarithmic) {
    if (!is_logarithmic_) {
      marks_ = axis_marks(largest(chart), chart.numbers);
      low_ = 0;
      high_ = marks_.back();
      return;
    }
    double least = 1;
    for (const Series& series : chart.series) {
      for (const auto& value : series.values) {
        if (value.value_or(0) > 0) least = std::min(least, *value);
      }
    }
    low_ = std::min(-1.0, std::floor(std::log10(least)));
    high_ = 0;
    const double step = std::ceil(-low_ / static_cast<double>(kMostMarks - 1));
    for (double at = 0; at >= low_; at -= step) marks_.push_back(std::pow(10, at));
  }

  const std::vector<double>& marks() const { return marks_; }
  bool has(const std::optional<double>& value) const {
    return value.has_value() && (!is_logarithmic_ || *value > 0);
  }
  double y(double value) const {
    const double share = ((is_logarithmic_ ? std::log10(value) : value) - low_) / (high_ - low_);
    return kTop + (1 - share) * (kHeight - kTop - kBottom);
  }

 private:
  bool is_logarithmic_;
  double low_ = 0;
  double high_ = 1;
  std::vector<double> marks_;
};

double x_of(std::size_t place, std::size_t places) {
  const double share =
      places < 2 ? 0.5 : static_cast<double>(place) / static_cast<double>(places - 1);
  return kLeft + share * (kWidth - kLeft - kRight);
}

std::string line(const Chart& chart, const Axis& axis, std::size_t which) {
  const Series& series = chart.series[which];
  const std::size_t places = chart.places.size();
  std::string path;
  std::string points;
  bool is_gap = true;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    if (!axis.has(series.values[i])) {
      is_gap = true;
      continue;
    }
    const double x = x_of(i, places);
    const double y = axis.y(*series.values[i]);
    path += fmt::format("{}{:.1f},{:.1f}", is_gap ? "M" : "L", x, y);
    is_gap = false;
    if (places > kMostMarked) continue;
    points += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"><title>{}: {} {}</title></circle>\n", x, y,
        escaped(chart.places[i]), escaped(series.name), escaped(chart.show(*series.values[i])));
  }
  return fmt::format("<g class=\"s{}\"><path d=\"{}\"/>\n{}</g>\n", which % kColours, path, points);
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : as_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // Of control characters HTML has no use for most.
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::vector<double> axis_marks(double top, Chart::Numbers numbers) {
  constexpr double kSteps[] = {1, 2, 5, 10};
  const double least_step = top / static_cast<double>(kMostMarks - 1);
  double step = 1;
  if (numbers == Chart::Numbers::kBytes) {
    while (step < least_step) step *= 2;
  } else if (top > 0) {
    const double power = std::pow(10, std::floor(std::log10(least_step)));
    step = power * *std::find_if(std::begin(kSteps), std::end(kSteps) - 1, [&](double times) {
             return power * times >= least_step * (1 - 1e-9);
           });
    if (numbers == Chart::Numbers::kWhole) step = std::max(1.0, step);
  }
  std::vector<double> marks{0};
  while (marks.size() < 2 || marks.back() < top * (1 - 1e-9)) {
    marks.push_back(step * static_cast<double>(marks.size()));
  }
  return marks;
}

std::string line_chart(const Chart& chart, std::size_t number) {
  const Axis axis(chart);
  std::string out = head(chart, number, kHeight);
  for (const double mark : axis.marks()) {
    const double y = axis.y(mark);
    out += fmt::format("<path class=\"grid\" d=\"M{},{:.1f}H{}\"/>\n", kLeft, y, kWidth - kRight);
    out += text(kLeft - 8, y + 4, "end", chart.show(mark));
  }
  const std::size_t places = chart.places.size();
  const std::size_t every = (places + kMostPlaceNames - 1) / kMostPlaceNames;
  for (std::size_t i = 0; i < places; i += every) {
    out += text(x_of(i, places), kHeight - kBottom + 22, "middle", chart.places[i]);
  }
  for (std::size_t i = 0; i < chart.series.size(); ++i) out += line(chart, axis, i);
  return out + "</svg>\n";
}

std::string bar_chart(const Chart& chart, std::size_t number) {
  const auto bars = static_cast<double>(chart.series.size());
  const double each = bars * kBar + kBetweenNodes;
  const double most = std::max(largest(chart), std::numeric_limits<double>::min());
  std::string out =
      head(chart, number, kBetweenNodes + each * static_cast<double>(chart.places.size()));
  for (std::size_t i = 0; i < chart.places.size(); ++i) {
    const double top = kBetweenNodes + each * static_cast<double>(i);
    out += text(kNames - 8, top + bars * kBar / 2 + 4, "end", chart.places[i]);
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      const double value = chart.series[s].values[i].value_or(0);
      const double y = top + kBar * static_cast<double>(s);
      const double width = value / most * (kWidth - kNames - kNumbers);
      out += fmt::format(
          "<rect class=\"b{}\" x=\"{}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\"><title>{}: {} "
          "{}</title></rect>\n",
          s % kColours, kNames, y, width, kBar - 2, escaped(chart.places[i]),
          escaped(chart.series[s].name), escaped(chart.show(value)));
      out += text(kNames + width + 6, y + kBar - 4, "start", chart.show(value));
    }
  }
  return out + "</svg>\n";
}

}  // namespace dedup::ctl
