// Precedence, checking and messages of hints: what resolve() and update() do with what users give.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <optional>
#include <utility>

#include "hints/hints.h"

namespace dedup::hints {
namespace {

Result<Hints> from_info(const Source& info) {
  Warnings warnings;
  auto result = resolve(info, {}, {}, warnings);
  EXPECT_TRUE(warnings.empty());
  return result;
}

Result<Hints> with(const std::string& key, const std::string& value) {
  return from_info({{key, value}});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_refused(const std::string& key, const std::string& value) {
  const auto result = with(key, value);
  ASSERT_FALSE(result.is_ok()) << key << "=" << value;
  EXPECT_EQ(result.status().code(), Code::kInfoValue);
  const std::string& message = result.status().message();
  EXPECT_TRUE(message.starts_with(key + ": value \"")) << message;
  EXPECT_TRUE(contains(message, "from MPI_Info")) << message;
  EXPECT_TRUE(contains(message, "allowed: ")) << message;
}

// The environment as it was, again, when a test ends.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* old = std::getenv(name_.c_str())) old_ = old;
    setenv(name_.c_str(), value, 1);
  }
  ~ScopedVariable() {
    if (old_) {
      setenv(name_.c_str(), old_->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> old_;
};

TEST(HintsResolve, NothingGivenIsTheDefaults) {
  const auto result = from_info({});
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(*result, Hints{});
  EXPECT_EQ(result->replication, 2u);
  EXPECT_EQ(result->threshold, 131072u);
  EXPECT_EQ(result->chunk_size, 4096u);
  EXPECT_EQ(result->buffer, 64u << 20);
}

TEST(HintsResolve, InfoGoesBeforeHintsFileGoesBeforeEnvironment) {
  const Source info = {{"dedup_replication", "3"}};
  const Source file = {{"dedup_replication", "4"}, {"dedup_mode", "local"}};
  const Source environment = {
      {"dedup_replication", "5"}, {"dedup_mode", "none"}, {"dedup_partners", "ring"}};
  Warnings warnings;
  const auto all = resolve(info, file, environment, warnings);
  ASSERT_TRUE(all.is_ok());
  EXPECT_EQ(all->replication, 3u);
  EXPECT_EQ(all->mode, Mode::kLocal);
  EXPECT_EQ(all->partners, Partners::kRing);
  const auto no_info = resolve({}, file, environment, warnings);
  ASSERT_TRUE(no_info.is_ok());
  EXPECT_EQ(no_info->replication, 4u);
  const auto environment_only = resolve({}, {}, environment, warnings);
  ASSERT_TRUE(environment_only.is_ok());
  EXPECT_EQ(environment_only->replication, 5u);
  EXPECT_EQ(environment_only->mode, Mode::kNone);
  EXPECT_TRUE(warnings.empty());
}

TEST(HintsResolve, TheLastOfEqualKeysCounts) {
  const auto result = from_info({{"dedup_replication", "3"}, {"dedup_replication", "7"}});
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(result->replication, 7u);
}

TEST(HintsResolve, OtherKeysArePassedOver) {
  const auto result = from_info({{"cb_nodes", "4"},
                                 {"striping_unit", "nonsense"},
                                 {"dedup", "x"},
                                 {"DEDUP_MODE", "wrong"},
                                 {"romio_cb_write", "enable"}});
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(*result, Hints{});
}

TEST(HintsResolve, UnknownHintsWarnAndChangeNothing) {
  Warnings warnings;
  const auto result =
      resolve({{"dedup_replicas", "3"}}, {{"dedup_", "1"}}, {{"dedup_speed", "?"}}, warnings);
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(*result, Hints{});
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_EQ(warnings[0].key, "dedup_speed");
  EXPECT_TRUE(contains(warnings[0].text, "dedup_speed (from the environment)"));
  EXPECT_EQ(warnings[1].key, "dedup_");
  EXPECT_TRUE(contains(warnings[1].text, "ROMIO's hints file"));
  EXPECT_EQ(warnings[2].key, "dedup_replicas");
  EXPECT_TRUE(contains(warnings[2].text, "dedup_replicas (from MPI_Info)"));
}

TEST(HintsResolve, WhatTheDriverSetIsTakenInSilence) {
  const auto result = from_info({{"dedup_last_stored_bytes", "123"}, {"dedup_last_anything", "x"}});
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(*result, Hints{});
}

TEST(HintsResolve, IntegersAreCheckedAtBothEnds) {
  for (const char* good : {"1", "16", " 2 ", "007", "2\n"}) {
    EXPECT_TRUE(with("dedup_replication", good).is_ok()) << good;
  }
  for (const char* bad : {"0", "17", "-1", "+3", "", " ", "two", "3x", "3 3", "0x3", "2.0", "2K",
                          "18446744073709551618", "99999999999999999999999"}) {
    expect_refused("dedup_replication", bad);
  }
  EXPECT_EQ(with("dedup_threshold", "16777216")->threshold, 1u << 24);
  EXPECT_EQ(with("dedup_threshold", "1")->threshold, 1u);
  expect_refused("dedup_threshold", "0");
  expect_refused("dedup_threshold", "16777217");
  expect_refused("dedup_threshold", "4294967297");
}

TEST(HintsResolve, ByteSizesTakeUnits) {
  const std::pair<const char*, std::uint32_t> chunk_sizes[] = {
      {"512", 512},    {"513", 513},       {"4096", 4096},      {"4K", 4096},
      {"4k", 4096},    {"4KiB", 4096},     {"4 KiB", 4096},     {"4kib", 4096},
      {"1M", 1 << 20}, {"1 MiB", 1 << 20}, {"1m", 1 << 20},     {"1048576", 1 << 20},
      {"1000", 1000},  {" 64 K ", 65536},  {"1024KiB", 1 << 20}};
  for (const auto& [text, bytes] : chunk_sizes) {
    const auto result = with("dedup_chunk_size", text);
    ASSERT_TRUE(result.is_ok()) << text;
    EXPECT_EQ(result->chunk_size, bytes) << text;
  }
  for (const char* bad : {"511", "1048577", "2M", "1G", "0", "0K", "4KB", "4Ki", "4 X", "K", "KiB",
                          "-4K", "4096.5", "4K4", "17592186044416M", "18014398509481985K"}) {
    expect_refused("dedup_chunk_size", bad);
  }
  EXPECT_EQ(with("dedup_buffer", "1M")->buffer, std::uint64_t{1} << 20);
  EXPECT_EQ(with("dedup_buffer", "64 MiB")->buffer, std::uint64_t{64} << 20);
  EXPECT_EQ(with("dedup_buffer", "3G")->buffer, std::uint64_t{3} << 30);
  EXPECT_EQ(with("dedup_buffer", "1T")->buffer, std::uint64_t{1} << 40);
  EXPECT_EQ(with("dedup_heal_rate", "0")->heal_rate, 0u);
  EXPECT_EQ(with("dedup_heal_rate", "80 MiB")->heal_rate, std::uint64_t{80} << 20);
  expect_refused("dedup_heal_rate", "2T");
  expect_refused("dedup_heal_rate", "-1");
  expect_refused("dedup_buffer", "1023K");
  expect_refused("dedup_buffer", "1025G");
  expect_refused("dedup_buffer", "2T");
}

TEST(HintsResolve, ChoicesAreExactWords) {
  EXPECT_EQ(with("dedup_mode", "collective")->mode, Mode::kCollective);
  EXPECT_EQ(with("dedup_mode", "local")->mode, Mode::kLocal);
  EXPECT_EQ(with("dedup_mode", "none")->mode, Mode::kNone);
  EXPECT_EQ(Hints{}.fingerprint, FingerprintKind::kKeyed);
  EXPECT_EQ(with("dedup_fingerprint", "sha1")->fingerprint, FingerprintKind::kSha256);
  EXPECT_EQ(with("dedup_reduction", "exact")->reduction, Reduction::kExact);
  EXPECT_EQ(with("dedup_partners", "ring")->partners, Partners::kRing);
  EXPECT_EQ(with("dedup_visibility", "sync")->visibility, Visibility::kSync);
  EXPECT_EQ(with("dedup_fsync", "never")->fsync, Fsync::kNever);
  EXPECT_EQ(with("dedup_flush", "close")->flush, Flush::kClose);
  EXPECT_EQ(with("dedup_exchange", "put")->exchange, Exchange::kPut);
  EXPECT_EQ(with("dedup_log", "info")->log, Log::kInfo);
  for (const Entry& entry : table()) {
    const std::string name(entry.name);
    if (name == "dedup_report") continue;   // any path will do
    if (name == "striping_unit") continue;  // nothing is refused
    expect_refused(name, "");
    expect_refused(name, "perhaps");
    expect_refused(name, "COLLECTIVE");
  }
}

TEST(HintsResolve, StoresAreAbsolutePathTemplates) {
  EXPECT_EQ(with("dedup_store", "/local/%n/store")->store, "/local/%n/store");
  EXPECT_EQ(with("dedup_store", "/a%%b")->store, "/a%%b");
  EXPECT_EQ(with("dedup_store", "/")->store, "/");
  for (const char* bad :
       {"", "store", "./store", "%n", "%n/store", "/tmp/%", "/tmp/%h", "/tmp/%N", "/tmp/%%%"}) {
    expect_refused("dedup_store", bad);
  }
  for (const char* good : {"/fast=8GiB:/slow", "/a:/b:/c", "/a%:b%=c", "/fast=0:/slow=1MiB"}) {
    EXPECT_EQ(with("dedup_store", good)->store, good);
  }
  for (const char* bad :
       {"/fast=:/slow", "/fast=8Gold:/slow", "/fast=-1:/slow", "/fast=1=2:/slow", "/job=1234",
        "fast:/slow", "/fast:slow", "/fast:", ":/slow", "/fast::/slow"}) {
    expect_refused("dedup_store", bad);
  }
  EXPECT_TRUE(with("dedup_store", "/" + std::string(1022, 'x')).is_ok());
  expect_refused("dedup_store", "/" + std::string(1023, 'x'));
  expect_refused("dedup_store", std::string("/a\0b", 4));
}

TEST(HintsResolve, ReportIsAPathOrNothing) {
  EXPECT_EQ(with("dedup_report", "out/report.jsonl")->report, "out/report.jsonl");
  EXPECT_EQ(with("dedup_report", "")->report, "");
  expect_refused("dedup_report", std::string(1024, 'x'));
}

TEST(HintsResolve, MessagesNameWhereTheValueCameFrom) {
  Warnings warnings;
  const auto file = resolve({}, {{"dedup_replication", "x"}}, {}, warnings);
  ASSERT_FALSE(file.is_ok());
  EXPECT_EQ(file.status().message(),
            "dedup_replication: value \"x\" from ROMIO's hints file or HDF5_DRIVER_CONFIG is not "
            "allowed; allowed: 1 to "
            "16");
  const auto environment = resolve({}, {}, {{"dedup_mode", "fast"}}, warnings);
  ASSERT_FALSE(environment.is_ok());
  EXPECT_EQ(environment.status().message(),
            "dedup_mode: value \"fast\" from the environment (DEDUP_MODE) is not allowed; allowed: "
            "collective, local or none");
}

TEST(HintsResolve, AnOverriddenBadValueIsStillAnError) {
  Warnings warnings;
  EXPECT_FALSE(resolve({{"dedup_mode", "local"}}, {}, {{"dedup_mode", "fast"}}, warnings).is_ok());
}

TEST(HintsResolve, OfMpisOwnHintsWhatMeansNothingIsPassedOver) {
  Warnings warnings;
  const auto unit = [&](const std::string& value) {
    const auto hints =
        resolve({{"striping_unit", value}, {"striping_factor", "x"}}, {}, {}, warnings);
    return hints.is_ok() ? hints->striping_unit : 77;
  };
  EXPECT_EQ(unit("1048576"), 1048576u);
  for (const char* nothing : {"", "0", "x", "-1", "1M"}) EXPECT_EQ(unit(nothing), 0u) << nothing;
  EXPECT_TRUE(warnings.empty());
  for (const auto& [key, value] : describe(Hints{})) EXPECT_NE(key, "striping_unit");
}

TEST(HintsResolve, MessagesStayShortAndPrintable) {
  const auto result = with("dedup_mode", "a\nb\x01" + std::string(5000, 'z'));
  ASSERT_FALSE(result.is_ok());
  EXPECT_LT(result.status().message().size(), 200u);
  EXPECT_TRUE(contains(result.status().message(), "\"a?b?zzz"));
  EXPECT_TRUE(contains(result.status().message(), "zzz...\""));
}

TEST(HintsEnvironment, ReadsTheTablesHintsOnly) {
  std::deque<ScopedVariable> unset;
  for (const Entry& entry : table()) {
    const std::string variable = environment_name(entry);
    if (!variable.empty()) unset.emplace_back(variable, "");
  }
  const ScopedVariable replication("DEDUP_REPLICATION", "3");
  const ScopedVariable chunk_size("DEDUP_CHUNK_SIZE", "8K");
  const ScopedVariable empty("DEDUP_MODE", "");
  const ScopedVariable node("DEDUP_NODE", "n7");
  const ScopedVariable unknown("DEDUP_SPEED", "high");
  Warnings warnings;
  const auto result = resolve({}, {}, environment_source(), warnings);
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(result->replication, 3u);
  EXPECT_EQ(result->chunk_size, 8192u);
  EXPECT_EQ(result->mode, Mode::kCollective);
  EXPECT_TRUE(warnings.empty());
}

TEST(HintsEnvironment, UnknownVariablesAreTold) {
  const char* const environment[] = {"DEDUP_REPLICATION=3", "DEDUP_REPLICATON=3", "DEDUP_NODE=n0",
                                     "DEDUP_TEST_KILL=x",   "PATH=DEDUP_X=1",     "dedup_mode=x",
                                     "DEDUP_=\033[2J",      "DEDUP_A\nB=1",       nullptr};
  const Warnings warnings = unknown_variables(environment);
  ASSERT_EQ(warnings.size(), 4u);
  EXPECT_EQ(warnings[0].key, "DEDUP_REPLICATON");
  EXPECT_TRUE(contains(warnings[0].text, "unknown variable \"DEDUP_REPLICATON\""));
  EXPECT_TRUE(contains(warnings[0].text, "dedup(7)"));
  EXPECT_EQ(warnings[1].key, "DEDUP_TEST_KILL");
  EXPECT_EQ(warnings[2].key, "DEDUP_");
  EXPECT_FALSE(contains(warnings[2].text, "\033"));
  EXPECT_TRUE(contains(warnings[3].text, "\"DEDUP_A?B\""));
  const char* const none[] = {nullptr};
  EXPECT_TRUE(unknown_variables(none).empty());
}

TEST(HintsUpdate, TakesChangeableHintsAndKeepsTheOthers) {
  Hints open;
  open.replication = 3;
  open.mode = Mode::kLocal;
  Warnings warnings;
  const auto result = update(open,
                             {{"dedup_replication", "5"},
                              {"dedup_mode", "none"},
                              {"dedup_chunk_size", "8192"},
                              {"dedup_store", "/elsewhere"},
                              {"dedup_partners", "ring"},
                              {"dedup_threshold", "99"},
                              {"dedup_report", "r"},
                              {"dedup_new", "1"},
                              {"cb_nodes", "1"}},
                             warnings);
  ASSERT_TRUE(result.is_ok());
  Hints expected = open;
  expected.partners = Partners::kRing;
  expected.threshold = 99;
  expected.report = "r";
  EXPECT_EQ(*result, expected);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].key, "dedup_new");
}

TEST(HintsUpdate, ABadValueOfAnyHintIsAnError) {
  Warnings warnings;
  const auto fixed = update({}, {{"dedup_replication", "zero"}}, warnings);
  ASSERT_FALSE(fixed.is_ok());
  EXPECT_EQ(fixed.status().code(), Code::kInfoValue);
  EXPECT_FALSE(update({}, {{"dedup_partners", "nearest"}}, warnings).is_ok());
}

}  // namespace
}  // namespace dedup::hints
