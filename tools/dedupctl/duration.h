// Times as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dedup::ctl {

// A whole number and its unit, s, m, h or d: "90s", "12h". Seconds; none if it is anything else.
std::optional<std::uint64_t> parse_age(const std::string& text);

// The same, above 0, with fractions: "0.8s", "1.5h".
std::optional<double> parse_duration(const std::string& text);

// "0.80 s", "12.0 s", "4.5 min", "2.3 h", "1.2 d".
std::string duration_text(double seconds);

// "2024-02-29T12:00:00Z"
std::string utc(std::uint64_t seconds_since_1970);

}  // namespace dedup::ctl
