#include "test/hooks/paced_device.h"

#include <time.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <string_view>

namespace dedup {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class MonotonicClock final : public PaceClock {
 public:
  std::int64_t now() override {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * kSecond + time.tv_nsec;
  }
  void sleep_until(std::int64_t time) override {
    const timespec until{time / kSecond, time % kSecond};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
  }
};

// A positive number, with a unit or without.
bool parse_rate(std::string_view text, double& out) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, out, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(out) || out <= 0) return false;
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  if (unit.empty()) return true;
  const auto power = std::string_view("KMG").find(unit);
  if (unit.size() != 1 || power == std::string_view::npos) return false;
  out = std::ldexp(out, 10 * (static_cast<int>(power) + 1));
  return true;
}

}  // namespace

PaceClock& monotonic_clock() {
  static MonotonicClock& clock = *new MonotonicClock;
  return clock;
}

std::int64_t PacedDevice::duration(std::uint64_t bytes) const {
  return std::llround(seconds_a_byte_ * static_cast<double>(bytes) * kSecond);
}

std::int64_t PacedDevice::reserve(std::uint64_t bytes, std::int64_t from) const {
  if (!is_paced()) return from;
  const std::int64_t takes = duration(bytes);
  std::int64_t busy = busy_until_->load();
  std::int64_t end = 0;
  do {
    end = (from - busy > kIdleAfter ? from : busy) + takes;
  } while (!busy_until_->compare_exchange_weak(busy, end));
  return end;
}

void PacedDevice::wait(std::int64_t time) const {
  if (is_paced() && clock_->now() < time) clock_->sleep_until(time);
}

Result<PaceRates> parse_pace(const std::string& text) {
  PaceRates rates;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const auto comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const auto equals = entry.find('=');
    const std::string_view name = entry.substr(0, equals);
    double* const rate = name == "store"  ? &rates.store
                         : name == "link" ? &rates.link
                         : name == "hash" ? &rates.hash
                                          : nullptr;
    if (rate == nullptr || *rate != 0 || equals == std::string_view::npos ||
        !parse_rate(entry.substr(equals + 1), *rate)) {
      return Status(Code::kArgument, "\"" + std::string(entry) +
                                         "\": not store=RATE, link=RATE or hash=RATE, " +
                                         "each once, in bytes a second with K, M or G");
    }
  }
  return rates;
}

}  // namespace dedup
