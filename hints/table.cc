// The table of hints, and how their values are read and printed.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

#include "hints/hints.h"
#include "hints/node.h"

namespace dedup::hints {
namespace {

// Of the driver, of dedup-mpiexec and dedup-run, and of what builds and measures them.
constexpr std::array<std::string_view, 18> kVariables = {
    "DEDUP_FAILURE_DOMAIN", "DEDUP_NODE",       "DEDUP_NODES",     "DEDUP_NODE_TIMEOUT",
    "DEDUP_INTERFACE",      "DEDUP_YIELD",      "DEDUP_PRELOAD",   "DEDUP_RUN",
    "DEDUP_LOST_NODES",     "DEDUP_BUILD",      "DEDUP_WERROR",    "DEDUP_MPICH_SOURCE",
    "DEDUP_MPICH_DEVICE",   "DEDUP_BENCH_DISK", "DEDUP_SAME_HOST", "DEDUP_MOUNT",
    "DEDUP_MOUNT_BY",       "DEDUP_MOUNT_JOB"};

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMostStripeNodes = 64;
constexpr std::uint64_t kMostStripeParities = 8;
constexpr std::uint64_t kTiB = std::uint64_t{1} << 40;

// MPI's info objects cut longer values (MPI_MAX_INFO_VAL in MPICH).
constexpr std::size_t kLongestValue = 1023;

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

// 1 for "", 2^10 for "K" and "KiB", and so on.
std::optional<std::uint64_t> unit_factor(std::string_view unit) {
  if (unit.empty()) return 1;
  std::uint64_t factor = 1;
  for (const std::string_view name : {"KiB", "MiB", "GiB", "TiB"}) {
    factor *= 1024;
    if (equal_ignoring_case(unit, name) || equal_ignoring_case(unit, name.substr(0, 1))) {
      return factor;
    }
  }
  return std::nullopt;
}

// A decimal number from `low` to `high`; with_unit: it may be followed by a unit of bytes.
std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t low,
                                          std::uint64_t high, bool with_unit) {
  text = trim(text);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!with_unit && !unit.empty()) return std::nullopt;
  const auto factor = unit_factor(trim(unit));
  if (!factor || number > std::numeric_limits<std::uint64_t>::max() / *factor) return std::nullopt;
  number *= *factor;
  if (number < low || number > high) return std::nullopt;
  return number;
}

template <typename T>
T member_type(T Hints::*);
template <auto Member>
using Type = decltype(member_type(Member));

template <auto Member, std::uint64_t Low, std::uint64_t High, bool WithUnit>
bool parse_integer(std::string_view text, Hints& into) {
  const auto number = parse_number(text, Low, High, WithUnit);
  if (!number) return false;
  into.*Member = static_cast<Type<Member>>(*number);
  return true;
}

template <auto Member>
std::string print_integer(const Hints& hints) {
  return std::to_string(hints.*Member);
}

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr std::array kModes = {Choice<Mode>{"collective", Mode::kCollective},
                               Choice<Mode>{"local", Mode::kLocal},
                               Choice<Mode>{"none", Mode::kNone}};
// SHA-1 proves nothing: chunks can be made that have the same. Who asks for it gets what does.
constexpr std::array kFingerprints = {Choice<FingerprintKind>{"keyed", FingerprintKind::kKeyed},
                                      Choice<FingerprintKind>{"sha256", FingerprintKind::kSha256},
                                      Choice<FingerprintKind>{"sha1", FingerprintKind::kSha256}};
constexpr std::array kReductions = {Choice<Reduction>{"exact", Reduction::kExact},
                                    Choice<Reduction>{"tree", Reduction::kTree}};
constexpr std::array kPartners = {Choice<Partners>{"load", Partners::kLoad},
                                  Choice<Partners>{"ring", Partners::kRing}};
constexpr std::array kVisibilities = {Choice<Visibility>{"immediate", Visibility::kImmediate},
                                      Choice<Visibility>{"sync", Visibility::kSync}};
constexpr std::array kFsyncs = {Choice<Fsync>{"commit", Fsync::kCommit},
                                Choice<Fsync>{"never", Fsync::kNever}};
constexpr std::array kFlushes = {Choice<Flush>{"none", Flush::kNone},
                                 Choice<Flush>{"background", Flush::kBackground},
                                 Choice<Flush>{"close", Flush::kClose}};
constexpr std::array kFlushWaits = {Choice<FlushWait>{"wait", FlushWait::kWait},
                                    Choice<FlushWait>{"leave", FlushWait::kLeave}};
constexpr std::array kFlushedChoices = {Choice<Flushed>{"drop", Flushed::kDrop},
                                        Choice<Flushed>{"keep", Flushed::kKeep}};
constexpr std::array kFetches = {Choice<Fetch>{"none", Fetch::kNone},
                                 Choice<Fetch>{"open", Fetch::kOpen}};
constexpr std::array kExchanges = {Choice<Exchange>{"put", Exchange::kPut},
                                   Choice<Exchange>{"send", Exchange::kSend}};
constexpr std::array kLogs = {Choice<Log>{"none", Log::kNone}, Choice<Log>{"info", Log::kInfo}};

template <auto Member, const auto& Choices>
bool parse_choice(std::string_view text, Hints& into) {
  for (const auto& choice : Choices) {
    if (trim(text) != choice.name) continue;
    into.*Member = choice.value;
    return true;
  }
  return false;
}

template <auto Member, const auto& Choices>
std::string print_choice(const Hints& hints) {
  for (const auto& choice : Choices) {
    if (hints.*Member == choice.value) return std::string(choice.name);
  }
  return {};
}

// "collective, local or none"
template <typename Choices>
std::string names(const Choices& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 < choices.size() ? ", " : " or ";
    text += choices[i].name;
  }
  return text;
}

// With less than this nothing is ever put into a tier; and a name that ends in "=12" is not taken
// for one with a limit.
constexpr std::uint64_t kLeastTier = std::uint64_t{1} << 20;

bool parse_store(std::string_view text, Hints& into) {
  text = trim(text);
  if (text.size() > kLongestValue || text.find('\0') != text.npos) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') continue;
    ++i;
    constexpr std::string_view kAfterPercent = "n%:=";
    if (i == text.size() || kAfterPercent.find(text[i]) == kAfterPercent.npos) return false;
  }
  for (const TierText& tier : tiers_of(text)) {
    if (!tier.directory.starts_with('/')) return false;
    if (!tier.limit) continue;
    const auto limit = parse_bytes(*tier.limit);
    if (!limit || (*limit != 0 && *limit < kLeastTier)) return false;
  }
  into.store = text;
  return true;
}

// "copies", "xor:7" or "rs:8+2".
bool parse_redundancy(std::string_view text, Hints& into) {
  text = trim(text);
  if (text == "copies") {
    into.stripe_data = into.stripe_parities = 0;
    return true;
  }
  const bool is_xor = text.starts_with("xor:");
  if (!is_xor && !text.starts_with("rs:")) return false;
  text.remove_prefix(is_xor ? 4 : 3);
  const std::size_t plus = text.find('+');
  if (is_xor != (plus == text.npos)) return false;
  const auto data = parse_number(text.substr(0, plus), 1, kMostStripeNodes, false);
  const auto parities =
      is_xor ? 1 : parse_number(text.substr(plus + 1), 1, kMostStripeParities, false);
  if (!data || !parities || *data + *parities > kMostStripeNodes) return false;
  into.stripe_data = static_cast<std::uint32_t>(*data);
  into.stripe_parities = static_cast<std::uint32_t>(*parities);
  return true;
}

std::string print_redundancy(const Hints& hints) {
  const std::string data = std::to_string(hints.stripe_data);
  switch (hints.stripe_parities) {
    case 0:
      return "copies";
    case 1:
      return "xor:" + data;
    default:
      return "rs:" + data + "+" + std::to_string(hints.stripe_parities);
  }
}

bool parse_report(std::string_view text, Hints& into) {
  text = trim(text);
  if (text.size() > kLongestValue || text.find('\0') != text.npos) return false;
  into.report = text;
  return true;
}

bool parse_generation(std::string_view text, Hints& into) {
  text = trim(text);
  const bool is_before = text.starts_with('-');
  if (is_before) text.remove_prefix(1);
  const auto number = parse_number(text, 0, std::uint64_t{1} << 62, false);
  if (!number || text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) {
    return false;
  }
  const auto generation = static_cast<std::int64_t>(*number);
  into.generation = is_before ? -generation : generation;
  return true;
}

bool parse_striping_unit(std::string_view text, Hints& into) {
  const auto number =
      text.empty() ? std::optional<std::uint64_t>(0) : parse_number(text, 1, kTiB, false);
  if (!number) return false;
  into.striping_unit = *number;
  return true;
}

bool parse_base(std::string_view text, Hints& into) {
  text = trim(text);
  if (text.starts_with("dedup:")) text.remove_prefix(6);
  const bool is_word = text == "auto" || text == "none";
  if (!is_word && !text.starts_with('/')) return false;
  if (text.size() > kLongestValue || text.find('\0') != text.npos) return false;
  into.base = text;
  return true;
}

const std::vector<Entry>& entries() {
  // Never destroyed: files are opened and closed while the process ends.
  static const auto& all = *new std::vector<Entry>{
      {"dedup_store", "/tmp/dedup-UID",
       "an absolute path, or several, as `/fast=SIZE:/slow`; `%n`: the node's name; `%%`, `%:`, "
       "`%=`",
       "the store's directory, on a disk or in memory of the node's own; or its tiers, fastest "
       "first, with what each may take (1 MiB at least), if that is not all there is. `%%`, `%:` "
       "and `%=` are these characters in a name",
       false, Agreement::kNode, parse_store, [](const Hints& h) { return h.store; }},
      {"dedup_replication", "2", "1 to 16",
       "K: every chunk is on at least min(K, number of nodes) nodes, so any K - 1 may be lost",
       false, Agreement::kAll, parse_integer<&Hints::replication, 1, 16, false>,
       print_integer<&Hints::replication>},
      {"dedup_redundancy", "copies",
       "`copies`, `xor:k`, or `rs:k+m`, with m up to 8 and k + m up to 64",
       "how chunks are kept that fewer than K nodes have: as copies on K nodes; or in stripes of k "
       "nodes with one parity on another (`xor:7`) or m on m others (`rs:8+2`), of which any one "
       "or m may be lost. K is m + 1 then, unless `dedup_replication` says more, and what K nodes "
       "have stays on m + 1 of them; with K above the number of nodes all is in stripes, once",
       false, Agreement::kAll, parse_redundancy, print_redundancy},
      {"dedup_reduction", "tree", names(kReductions),
       "how nodes find out which chunks several of them have: `exact` asks the home of each "
       "chunk's name, which counts them all; `tree` merges the F most frequent on the way up a "
       "tree",
       true, Agreement::kAll, parse_choice<&Hints::reduction, kReductions>,
       print_choice<&Hints::reduction, kReductions>},
      {"dedup_threshold", "131072", "1 to 16777216",
       "F: how many fingerprints the tree carries at most, and how many a node remembers from one "
       "dump to the next",
       true, Agreement::kAll, parse_integer<&Hints::threshold, 1, 1 << 24, false>,
       print_integer<&Hints::threshold>},
      {"dedup_chunk_size", "4096", "512 to 1 MiB, in bytes or with a unit (`4K`, `64 KiB`)",
       "bytes in a chunk, the unit of deduplication", false, Agreement::kAll,
       parse_integer<&Hints::chunk_size, 512, kMiB, true>, print_integer<&Hints::chunk_size>},
      {"dedup_mode", "collective", names(kModes),
       "`collective`: duplicates on different nodes serve as replicas; `local`: each node "
       "deduplicates by itself and copies go to the next nodes in a ring; `none`: no deduplication",
       false, Agreement::kAll, parse_choice<&Hints::mode, kModes>,
       print_choice<&Hints::mode, kModes>},
      {"dedup_fingerprint", "keyed", names(kFingerprints),
       "the hash that makes a chunk's fingerprint: one with a secret key of the file's, or a much "
       "slower one that anybody can recompute; `sha1` is taken for `sha256`, since chunks can be "
       "made that have one SHA-1",
       false, Agreement::kAll, parse_choice<&Hints::fingerprint, kFingerprints>,
       print_choice<&Hints::fingerprint, kFingerprints>},
      {"dedup_partners", "load", names(kPartners),
       "which nodes receive copies: `load` spreads them by what each node sends, `ring` takes the "
       "next ones",
       true, Agreement::kAll, parse_choice<&Hints::partners, kPartners>,
       print_choice<&Hints::partners, kPartners>},
      {"dedup_group", "8", "1 to 64",
       "how many nodes, at least, are one another's partners: what a node has is copied to all of "
       "its group in equal parts, and read from them when it is lost; `1`: to the next nodes in "
       "the "
       "order of partners; without a meaning with `dedup_partners=ring`",
       true, Agreement::kAll, parse_integer<&Hints::group, 1, 64, false>,
       print_integer<&Hints::group>},
      {"dedup_exchange", "send", names(kExchanges),
       "how copies travel: `put` into windows (one-sided), `send` as messages", true,
       Agreement::kAll, parse_choice<&Hints::exchange, kExchanges>,
       print_choice<&Hints::exchange, kExchanges>},
      {"dedup_visibility", "immediate", names(kVisibilities),
       "when other ranks see a write: `immediate` as in a POSIX file, `sync` by MPI's own rule",
       false, Agreement::kAll, parse_choice<&Hints::visibility, kVisibilities>,
       print_choice<&Hints::visibility, kVisibilities>},
      {"dedup_fsync", "commit", names(kFsyncs),
       "`commit`: a commit returns when the data is on the stores' disks; `never`: a power failure "
       "may lose committed data",
       true, Agreement::kAll, parse_choice<&Hints::fsync, kFsyncs>,
       print_choice<&Hints::fsync, kFsyncs>},
      {"dedup_flush", "none", names(kFlushes),
       "`none`: the data stays in the stores, and is lost with them; `background`: after the last "
       "close the whole file is written to its real path, as a plain one, while the program goes "
       "on; `close`: the last close does so before it returns",
       true, Agreement::kAll, parse_choice<&Hints::flush, kFlushes>,
       print_choice<&Hints::flush, kFlushes>},
      {"dedup_flush_wait", "wait", names(kFlushWaits),
       "what `MPI_Finalize` does about files that are still being written in the background: "
       "`wait`s until they are at their paths, or `leave`s them to `dedupctl flush`",
       true, Agreement::kAll, parse_choice<&Hints::flush_wait, kFlushWaits>,
       print_choice<&Hints::flush_wait, kFlushWaits>},
      {"dedup_flush_rate", "0", "0 to 1 TiB, in bytes or with a unit",
       "most bytes a second that a node writes in the background; 0: no limit", true,
       Agreement::kAll, parse_integer<&Hints::flush_rate, 0, kTiB, true>,
       print_integer<&Hints::flush_rate>},
      {"striping_unit", "", "a whole number of bytes",
       "MPI's own hint: what one writer writes to the real path begins and ends at multiples of "
       "it; "
       "without it, at those of the blocks that the file system tells of",
       true, Agreement::kNone, parse_striping_unit,
       [](const Hints& h) { return h.striping_unit == 0 ? "" : std::to_string(h.striping_unit); }},
      {"dedup_flushed", "drop", names(kFlushedChoices),
       "what the stores do with a file that is at its path as a plain one: `drop` it, or `keep` it "
       "as a cache until they need the room: then it is read from them, the next write-back writes "
       "only what has changed, and numbered files share with it",
       true, Agreement::kAll, parse_choice<&Hints::flushed, kFlushedChoices>,
       print_choice<&Hints::flushed, kFlushedChoices>},
      {"dedup_fetch", "none", names(kFetches),
       "`open`: a plain file that is opened to be read is brought into the stores first, each byte "
       "once, and stays at its path: whoever opens it next reads it from them, as long as it does "
       "not change; `none`: it is read where it is",
       true, Agreement::kAll, parse_choice<&Hints::fetch, kFetches>,
       print_choice<&Hints::fetch, kFetches>},
      {"dedup_base", "auto", "`auto`, `none` or an absolute path",
       "the file with which a new one shares what is the same: the one that was committed last of "
       "those beside it whose names differ in digits only, none, or this one",
       false, Agreement::kAll, parse_base, [](const Hints& h) { return h.base; }},
      {"dedup_keep", "1", "1 to 1024",
       "how many generations stay, the newest counted: a commit keeps those before it as they "
       "were, for `dedup_generation` and `dedupctl`; the oldest go when a store has no room",
       true, Agreement::kAll, parse_integer<&Hints::keep, 1, 1024, false>,
       print_integer<&Hints::keep>},
      {"dedup_generation", "0", "a whole number",
       "the generation to be read: its number, or `-1` for the one before the newest, `-2` for the "
       "one before that; `0`: the newest; opens with `MPI_MODE_CREATE` are about the newest",
       false, Agreement::kAll, parse_generation, print_integer<&Hints::generation>},
      {"dedup_report", "", "a path",
       "a file to which rank 0 appends one JSON line for each commit; none if empty", true,
       Agreement::kNone, parse_report, [](const Hints& h) { return h.report; }},
      {"dedup_log", "none", names(kLogs),
       "`info`: rank 0 says on standard error, in a line each, what every open and commit did, and "
       "why little was found if that is so",
       true, Agreement::kNone, parse_choice<&Hints::log, kLogs>, print_choice<&Hints::log, kLogs>},
      {"dedup_buffer", "64 MiB", "1 MiB to 1 TiB, in bytes or with a unit",
       "most bytes of buffers a rank, beyond the program's own", false, Agreement::kAll,
       parse_integer<&Hints::buffer, kMiB, kTiB, true>, print_integer<&Hints::buffer>},
      {"dedup_heal_rate", "0", "0 to 1 TiB, in bytes or with a unit",
       "most bytes a second that a node gets from others while a file is healed; 0: no limit", true,
       Agreement::kAll, parse_integer<&Hints::heal_rate, 0, kTiB, true>,
       print_integer<&Hints::heal_rate>},
  };
  return all;
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  return parse_number(text, 0, std::numeric_limits<std::uint64_t>::max(), true);
}

std::string default_store() {
  return "/tmp/dedup-" + std::to_string(getuid()) + (simulates_nodes() ? "-%n" : "");
}

std::span<const Entry> table() {
  return entries();
}

std::span<const std::string_view> variables() {
  return kVariables;
}

}  // namespace dedup::hints
