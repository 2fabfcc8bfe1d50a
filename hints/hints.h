// Every hint of the driver: one table drives parsing, checking, the environment, MPI_File_get_info,
// and the tables of hints in README.md and doc/man/dedup.7 (tools/hints-doc prints them).
//
// No MPI and no files here: the caller turns an MPI_Info into a Source and back. All functions are
// free of shared state and may be called from any thread; environment_source() reads the process's
// environment, so no other thread may change that meanwhile (setenv).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hasher.h"
#include "base/status.h"

namespace dedup::hints {

enum class Mode { kCollective, kLocal, kNone };
enum class Reduction { kExact, kTree };
enum class Partners { kLoad, kRing };
enum class Visibility { kImmediate, kSync };
enum class Fsync { kCommit, kNever };
enum class Flush { kNone, kBackground, kClose };
enum class FlushWait { kWait, kLeave };
enum class Flushed { kDrop, kKeep };
enum class Fetch { kNone, kOpen };
enum class Exchange { kPut, kSend };
enum class Log { kNone, kInfo };

// "/tmp/dedup-UID" with the real user id.
std::string default_store();

// The hints in force for an open file; a default-constructed one has every default.
struct Hints {
  std::string store = default_store();  // a template, see expand_store
  std::uint32_t replication = 2;        // K
  bool replication_is_given = false;    // it is not the default that nobody asked for
  // Of stripes: units of data, and parities. 0 of these: there are no stripes.
  std::uint32_t stripe_data = 0;
  std::uint32_t stripe_parities = 0;
  std::uint32_t threshold = 131072;  // F, in fingerprints
  std::uint32_t chunk_size = 4096;   // bytes
  Mode mode = Mode::kCollective;
  FingerprintKind fingerprint = FingerprintKind::kKeyed;
  Reduction reduction = Reduction::kTree;
  Partners partners = Partners::kLoad;
  std::uint32_t group = 8;  // nodes that are one another's partners; 1: there are no groups
  Visibility visibility = Visibility::kImmediate;
  Fsync fsync = Fsync::kCommit;
  Flush flush = Flush::kNone;
  FlushWait flush_wait = FlushWait::kWait;
  std::uint64_t flush_rate = 0;     // bytes a second of a node; 0: no limit
  std::uint64_t striping_unit = 0;  // bytes; 0: the file system says
  Flushed flushed = Flushed::kDrop;
  Fetch fetch = Fetch::kNone;
  Exchange exchange = Exchange::kSend;
  std::uint64_t buffer = std::uint64_t{64} << 20;  // bytes a rank
  std::uint64_t heal_rate = 0;                     // bytes a second of a node; 0: no limit
  std::string base = "auto";                       // or "none", or a path
  std::uint32_t keep = 1;                          // generations that stay, the newest counted
  std::int64_t generation = 0;                     // to be read; 0: the newest; -1: the one before
  std::string report;                              // a path; empty: no report
  Log log = Log::kNone;

  // Whether the table's texts are the same.
  bool operator==(const Hints& other) const;
};

// Who must give the same value of a hint.
enum class Agreement {
  kNone,  // each rank its own
  kNode,  // the ranks of one node
  kAll    // all ranks of the open
};

// One row of the table.
struct Entry {
  std::string_view name;          // "dedup_replication"; or one of MPI's own hints
  std::string_view default_text;  // as documents show it
  std::string allowed;            // which values there are, for errors and documents
  std::string_view meaning;       // for documents; between backquotes: literal text
  bool changeable;                // takes effect when set on an open file
  Agreement agreement;
  bool (*parse)(std::string_view text, Hints& into);  // false: not allowed, `into` is unchanged
  std::string (*print)(const Hints&);                 // canonical text, which parse takes
};

// All hints, in the order in which documents show them.
std::span<const Entry> table();

// The other variables that the driver and its tools read: "DEDUP_NODES" is one.
std::span<const std::string_view> variables();

// The table's row of that name, or nullptr.
const Entry* find(std::string_view name);

// "DEDUP_REPLICATION" for "dedup_replication"; empty for MPI's own hints, which have none.
std::string environment_name(const Entry& entry);

// Keys and values; if a key is there twice, the last one counts. Keys that do not begin with
// "dedup_" and are not in the table are not ours and are passed over.
using Source = std::vector<std::pair<std::string, std::string>>;

// An unknown dedup_ hint. The caller prints the text once for each key and process.
struct Warning {
  std::string key;
  std::string text;
};
using Warnings = std::vector<Warning>;

// The table's hints that are in the environment and not empty, under their table names.
Source environment_source();

// One for each DEDUP_ variable in `environment` ("NAME=value", ended by nullptr, as `environ`) that
// is neither a hint's nor one of variables(). In a test build those of tests are passed over.
Warnings unknown_variables(const char* const* environment);

// The hints in force: from `info`, else `hints_file`, else `environment`, else the default. Every
// value given is checked, also one that another overrides. kInfoValue: a value is not allowed; the
// message names hint, value, origin and what is allowed. What only the driver sets (dedup_last_…)
// is passed over: programs hand the info they got back to the next open.
Result<Hints> resolve(const Source& info, const Source& hints_file, const Source& environment,
                      Warnings& warnings);

// MPI_File_set_info on an open file: takes the changeable hints in `info`, keeps all others as they
// are in `current`. Checks and warns as resolve does.
Result<Hints> update(const Hints& current, const Source& info, Warnings& warnings);

// Every hint in force under its name, in canonical text, for MPI_File_get_info; without those whose
// text is empty. resolve() of it gives equal hints.
Source describe(const Hints& hints);

// Canonical text of the hints whose agreement is `scope`: equal exactly if they agree. One line
// "name=value" for each.
std::string agreement_text(const Hints& hints, Agreement scope = Agreement::kAll);

// For two agreement texts: names the first hint that differs and both values; empty if none does.
std::string first_difference(const std::string& a, const std::string& b);

// dedup_store with "%n" replaced by the node's name and "%%" by "%". The name is made safe first
// (see safe_node_name), so that it stays one path component below what the template says.
std::string expand_store(std::string_view store, std::string_view node_name);

// The name with everything but letters, digits, '.', '_' and '-' replaced by '_'; never empty, "."
// or "..".
std::string safe_node_name(std::string_view name);

}  // namespace dedup::hints
