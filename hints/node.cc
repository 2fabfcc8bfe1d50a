#include "hints/node.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace dedup::hints {
namespace {

constexpr std::uint64_t kMostNodes = 9999;
constexpr std::chrono::seconds kLongestTimeout{86400};

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return c >= '0' && c <= '9'; });
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What a message says of a variable's value.
std::string printable(std::string_view value) {
  std::string text;
  for (const char c : value.substr(0, 200)) {
    text += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? '?' : c;
  }
  return text;
}

Status wrong(std::string_view nodes, const std::string& why) {
  return {Code::kArgument, "DEDUP_NODES=" + printable(nodes) + ": " + why};
}

Status check_names(std::string_view nodes, std::vector<std::string_view> names) {
  for (const std::string_view name : names) {
    if (name.empty()) return wrong(nodes, "a name is empty");
    if (!is_node_name(name)) {
      return wrong(nodes, "names of nodes have letters, digits, '.', '_' and '-' only");
    }
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return Status::ok();
  return wrong(nodes, std::string(*twice) + " is named twice");
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> names;
  for (;;) {
    const auto comma = list.find(',');
    names.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    list.remove_prefix(comma + 1);
  }
}

struct Simulated {
  std::uint64_t count = 0;
  std::vector<std::string_view> names;  // none: a number was given

  std::string name(std::size_t i) const {
    return names.empty() ? "n" + std::to_string(i) : std::string(names[i]);
  }
};

Result<Simulated> parse(std::string_view nodes) {
  Simulated out;
  if (is_number(nodes)) {
    const auto read = std::from_chars(nodes.data(), nodes.data() + nodes.size(), out.count);
    if (read.ec != std::errc{} || out.count < 1 || out.count > kMostNodes) {
      return wrong(nodes, "from 1 to " + std::to_string(kMostNodes) + " nodes");
    }
    return out;
  }
  out.names = split(nodes);
  out.count = out.names.size();
  DEDUP_TRY(check_names(nodes, out.names));
  return out;
}

// Which of so many nodes.
std::size_t dealt(std::uint64_t nodes, int rank, int ranks) {
  const auto all = static_cast<std::uint64_t>(ranks);
  return static_cast<std::uint64_t>(rank) * std::min(nodes, all) / all;
}

}  // namespace

bool is_node_name(std::string_view name) {
  const bool letters = std::ranges::all_of(
      name, [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
  return letters && !name.empty() && name != "." && name != ".." && name[0] != '-';
}

Result<std::string> simulated_node(std::string_view nodes, int rank, int ranks) {
  DEDUP_ASSIGN(const Simulated simulated, parse(nodes));
  return simulated.name(dealt(simulated.count, rank, ranks));
}

std::string node_of_process() {
  if (const std::string_view name = variable("DEDUP_NODE"); !name.empty()) return std::string(name);
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') return "localhost";
  return host;
}

Result<std::string> node_of_rank(int rank, int ranks) {
  if (!variable("DEDUP_NODE").empty() || !simulates_nodes()) return node_of_process();
  return simulated_node(variable("DEDUP_NODES"), rank, ranks);
}

bool simulates_nodes() {
  return !variable("DEDUP_NODES").empty();
}

Result<std::vector<std::string>> simulated_nodes() {
  DEDUP_ASSIGN(const Simulated simulated, parse(variable("DEDUP_NODES")));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < simulated.count; ++i) names.push_back(simulated.name(i));
  return names;
}

Result<std::chrono::seconds> node_timeout() {
  const std::string_view text = variable("DEDUP_NODE_TIMEOUT");
  if (text.empty()) return kNodeTimeout;
  std::int64_t seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const bool is_number = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  if (is_number && seconds >= 1 && seconds <= kLongestTimeout.count()) {
    return std::chrono::seconds(seconds);
  }
  return Status(Code::kArgument, "DEDUP_NODE_TIMEOUT=" + printable(text) + ": from 1 to " +
                                     std::to_string(kLongestTimeout.count()) + " seconds");
}

std::string failure_domain() {
  return std::string(variable("DEDUP_FAILURE_DOMAIN"));
}

std::string mount_directory() {
  return std::string(variable("DEDUP_MOUNT"));
}

}  // namespace dedup::hints
