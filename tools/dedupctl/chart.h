// Pictures of numbers, as SVG that stands in a page (page.h has their colours): lines over commits,
// and bars of nodes. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dedup::ctl {

// For HTML and SVG, between tags and in quotes.
std::string escaped(const std::string& text);

// How a number is shown: "4.0 KiB".
using ShowNumber = std::function<std::string(double)>;

struct Series {
  std::string name;
  std::vector<std::optional<double>> values;  // one for each place; none is a gap
};

struct Chart {
  std::string title;
  std::string description;  // for who does not see it
  std::vector<std::string> places;
  std::vector<Series> series;
  ShowNumber show;
  bool is_logarithmic = false;  // then what is not above 0 is a gap
  enum class Numbers { kAny, kWhole, kBytes } numbers = Numbers::kAny;
  double least_top = 0;  // the axis goes up to there at least
};

// A line for each series; `number`: of the picture in its page.
std::string line_chart(const Chart& chart, std::size_t number);
// For each place a bar of each series, one below the other.
std::string bar_chart(const Chart& chart, std::size_t number);

// Marks of an axis from 0 to at least `top`, at most seven of them and at least two: 1, 2 or 5
// times a power of ten apart, those of bytes a power of two.
std::vector<double> axis_marks(double top, Chart::Numbers numbers);

}  // namespace dedup::ctl
