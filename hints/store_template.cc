// The hint dedup_store: directories with a limit each, and what stands in them for something else.
#include "hints/hints.h"

namespace dedup::hints {
namespace {

// Where this character stands first from `from` on, not behind a percent sign that makes it part of
// a name.
std::size_t find_separator(std::string_view text, char separator, std::size_t from = 0) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == '%') {
      ++i;
    } else if (text[i] == separator) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::string expand(std::string_view directory, std::string_view node_name) {
  std::string path;
  for (std::size_t i = 0; i < directory.size(); ++i) {
    const char next = directory[i] == '%' && i + 1 < directory.size() ? directory[i + 1] : '\0';
    if (next == 'n') {
      path += safe_node_name(node_name);
      ++i;
    } else if (next == '%' || next == ':' || next == '=') {
      path += next;
      ++i;
    } else {
      path += directory[i];
    }
  }
  return path;
}

}  // namespace

std::vector<TierText> tiers_of(std::string_view store) {
  std::vector<TierText> tiers;
  for (;;) {
    const std::size_t end = find_separator(store, ':');
    const std::string_view one = store.substr(0, end);
    const std::size_t equals = find_separator(one, '=');
    TierText& tier = tiers.emplace_back();
    tier.directory = one.substr(0, equals);
    if (equals != one.npos) tier.limit = one.substr(equals + 1);
    if (end == store.npos) return tiers;
    store.remove_prefix(end + 1);
  }
}

std::string change_tiers(std::string_view store,
                         const std::function<std::string(std::string_view)>& change) {
  std::string text;
  for (const TierText& tier : tiers_of(store)) {
    if (!text.empty()) text += ':';
    text += change(tier.directory);
    if (tier.limit) text.append("=").append(*tier.limit);
  }
  return text;
}

bool has_node_name(std::string_view directory) {
  for (std::size_t i = 0; i + 1 < directory.size(); ++i) {
    if (directory[i] == '%' && directory[++i] == 'n') return true;
  }
  return false;
}

StorePlace expand_store(std::string_view store, std::string_view node_name) {
  std::vector<StoreTier> tiers;
  for (const TierText& tier : tiers_of(store)) {
    StoreTier& one = tiers.emplace_back();
    one.directory = expand(tier.directory, node_name);
    if (tier.limit) one.limit = parse_bytes(*tier.limit);
  }
  const bool is_plain = tiers.size() == 1 && !tiers[0].limit;
  StorePlace place(std::move(tiers));
  if (!is_plain) place.set_as_one_directory(expand(store, node_name));
  return place;
}

}  // namespace dedup::hints
