#include "hints/hints.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/hooks.h"

namespace dedup::hints {
namespace {

constexpr std::string_view kPrefix = "dedup_";
constexpr std::string_view kDriverPrefix =
    "dedup_last_";  // what the last commit did: the driver sets these
constexpr std::string_view kEnvironment = "the environment";

// For a message: printable, and not longer than leaves room for the rest.
std::string quoted(std::string_view value) {
  constexpr std::size_t kMost = 60;
  std::string text = "\"";
  for (const char c : value.substr(0, kMost)) {
    const auto u = static_cast<unsigned char>(c);
    text += u < 0x20 || u == 0x7f ? '?' : c;
  }
  if (value.size() > kMost) text += "...";
  return text + '"';
}

std::string without_quotes(std::string text) {
  std::erase(text, '`');
  return text;
}

// Applies the source's hints to `into`; only_changeable: checks the others, too, but leaves them.
Status apply(const Source& source, std::string_view origin, bool only_changeable, Hints& into,
             Warnings& warnings) {
  for (const auto& [key, value] : source) {
    const Entry* entry = find(key);
    const bool is_ours = key.starts_with(kPrefix) && !key.starts_with(kDriverPrefix);
    if (entry == nullptr && !is_ours) continue;
    if (entry == nullptr) {
      warnings.push_back({key, "unknown hint " + key + " (from " + std::string(origin) +
                                   ") is ignored: see dedup(7) for the hints there are"});
      continue;
    }
    Hints checked = into;
    if (!entry->parse(value, checked)) {
      // Programs give MPI's own hints to any driver: what means nothing is passed over, as by
      // others.
      if (!is_ours) continue;
      std::string from(origin);
      if (origin == kEnvironment) from += " (" + environment_name(*entry) + ")";
      return {Code::kInfoValue, key + ": value " + quoted(value) + " from " + from +
                                    " is not allowed; allowed: " + without_quotes(entry->allowed)};
    }
    checked.replication_is_given |= entry->name == "dedup_replication";
    if (entry->changeable || !only_changeable) into = std::move(checked);
  }
  return Status::ok();
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::pair<std::string_view, std::string_view> name_and_value(std::string_view line) {
  const std::size_t equals = std::min(line.find('='), line.size());
  return {line.substr(0, equals), line.substr(std::min(equals + 1, line.size()))};
}

}  // namespace

bool Hints::operator==(const Hints& other) const {
  const auto entries = table();
  return std::all_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.print(*this) == entry.print(other); });
}

const Entry* find(std::string_view name) {
  const auto all = table();
  const auto it = std::ranges::find(all, name, &Entry::name);
  return it == all.end() ? nullptr : &*it;
}

std::string environment_name(const Entry& entry) {
  if (!entry.name.starts_with(kPrefix)) return {};
  std::string name(entry.name);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

Source environment_source() {
  Source source;
  for (const Entry& entry : table()) {
    const std::string variable = environment_name(entry);
    const char* value = variable.empty() ? nullptr : std::getenv(variable.c_str());
    if (value != nullptr && *value != '\0') source.emplace_back(entry.name, value);
  }
  return source;
}

Warnings unknown_variables(const char* const* environment) {
  Warnings warnings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    const std::string_view name = variable.substr(0, variable.find('='));
    if (!name.starts_with("DEDUP_") || is_test_variable(name)) continue;
    const bool is_known =
        std::ranges::find(variables(), name) != variables().end() ||
        std::ranges::any_of(table(), [&](const Entry& e) { return environment_name(e) == name; });
    if (is_known) continue;
    warnings.push_back({std::string(name),
                        "unknown variable " + quoted(name) +
                            " in the environment is ignored: see dedup(7) for those there are"});
  }
  return warnings;
}

Result<Hints> resolve(const Source& info, const Source& hints_file, const Source& environment,
                      Warnings& warnings) {
  Hints hints;
  DEDUP_TRY(apply(environment, kEnvironment, false, hints, warnings));
  DEDUP_TRY(apply(hints_file, "ROMIO's hints file or HDF5_DRIVER_CONFIG", false, hints, warnings));
  DEDUP_TRY(apply(info, "MPI_Info", false, hints, warnings));
  if (hints.stripe_parities == 0) return hints;
  if (!hints.replication_is_given) hints.replication = hints.stripe_parities + 1;
  if (hints.replication <= hints.stripe_parities) {
    return Status(Code::kInfoValue, "dedup_replication: " + std::to_string(hints.replication) +
                                        " nodes with a chunk do not survive the loss of " +
                                        std::to_string(hints.stripe_parities) +
                                        " as dedup_redundancy wants it: leave it out, or give " +
                                        std::to_string(hints.stripe_parities + 1) + " at least");
  }
  return hints;
}

Result<Hints> update(const Hints& current, const Source& info, Warnings& warnings) {
  Hints hints = current;
  DEDUP_TRY(apply(info, "MPI_Info", true, hints, warnings));
  return hints;
}

Source describe(const Hints& hints) {
  Source source;
  for (const Entry& entry : table()) {
    std::string text = entry.print(hints);
    if (!text.empty()) source.emplace_back(entry.name, std::move(text));
  }
  return source;
}

std::string agreement_text(const Hints& hints, Agreement scope) {
  std::string text;
  for (const Entry& entry : table()) {
    if (entry.agreement != scope) continue;
    text.append(entry.name).append("=").append(entry.print(hints)).append("\n");
  }
  return text;
}

std::string first_difference(const std::string& a, const std::string& b) {
  const auto in_a = lines(a);
  const auto in_b = lines(b);
  for (std::size_t i = 0; i < std::max(in_a.size(), in_b.size()); ++i) {
    const auto [name_a, value_a] = name_and_value(i < in_a.size() ? in_a[i] : "");
    const auto [name_b, value_b] = name_and_value(i < in_b.size() ? in_b[i] : "");
    if (name_a == name_b && value_a == value_b) continue;
    return std::string(name_a.empty() ? name_b : name_a) + " is " + quoted(value_a) +
           " on one rank and " + quoted(value_b) + " on another";
  }
  return {};
}

std::string safe_node_name(std::string_view name) {
  std::string safe(name);
  for (char& c : safe) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!allowed) c = '_';
  }
  if (safe.empty()) safe = "_";
  if (safe == "." || safe == "..") std::ranges::fill(safe, '_');
  return safe;
}

}  // namespace dedup::hints
