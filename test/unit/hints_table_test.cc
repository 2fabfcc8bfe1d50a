// The table of hints itself, what is derived from it, and where a store's template leads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <set>

#include "hints/hints.h"

namespace dedup::hints {
namespace {

// Every hint that has other values away from its default.
Hints unusual() {
  Hints hints;
  hints.store = "/local/%n/a%%b";
  hints.replication = 16;
  hints.stripe_data = 10;
  hints.stripe_parities = 4;
  hints.threshold = 1;
  hints.chunk_size = 513;
  hints.mode = Mode::kNone;
  hints.fingerprint = FingerprintKind::kSha256;
  hints.reduction = Reduction::kExact;
  hints.partners = Partners::kRing;
  hints.group = 5;
  hints.visibility = Visibility::kSync;
  hints.fsync = Fsync::kNever;
  hints.flush = Flush::kClose;
  hints.flush_wait = FlushWait::kLeave;
  hints.flushed = Flushed::kKeep;
  hints.fetch = Fetch::kOpen;
  hints.striping_unit = 12345;
  hints.flush_rate = (std::uint64_t{7} << 20) + 1;
  hints.exchange = Exchange::kPut;
  hints.buffer = (std::uint64_t{5} << 30) + 1;
  hints.heal_rate = (std::uint64_t{3} << 20) + 1;
  hints.report = "reports/run 1.jsonl";
  hints.log = Log::kInfo;
  hints.base = "/scratch/base.h5";
  hints.keep = 3;
  hints.generation = -2;
  return hints;
}

std::string default_text(const Entry& entry) {
  return entry.name == "dedup_store" ? default_store() : std::string(entry.default_text);
}

TEST(HintsTable, NamesAreDistinctAndDocumented) {
  std::set<std::string_view> names;
  for (const Entry& entry : table()) {
    EXPECT_TRUE(entry.name.starts_with("dedup_") || entry.name == "striping_unit") << entry.name;
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.meaning.empty()) << entry.name;
    EXPECT_FALSE(entry.allowed.empty()) << entry.name;
    EXPECT_LT(entry.allowed.size(), 100u) << "must fit into an MPI error message";
    EXPECT_EQ(find(entry.name), &entry);
  }
  EXPECT_EQ(names.size(), 26u);
  EXPECT_EQ(find("dedup_unheard_of"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

TEST(HintsTable, DocumentedDefaultsAreThoseOfTheStruct) {
  for (const Entry& entry : table()) {
    Hints hints = unusual();
    ASSERT_TRUE(entry.parse(default_text(entry), hints)) << entry.name;
    EXPECT_EQ(entry.print(hints), entry.print(Hints{})) << entry.name;
  }
}

TEST(HintsTable, ParseChangesNothingWhenItFails) {
  for (const Entry& entry : table()) {
    Hints hints = unusual();
    EXPECT_FALSE(entry.parse(std::string(2000, '?'), hints)) << entry.name;
    EXPECT_EQ(hints, unusual()) << entry.name;
  }
}

TEST(HintsTable, EachRowReadsAndPrintsItsOwnFieldOnly) {
  for (const Entry& entry : table()) {
    Hints hints;
    ASSERT_TRUE(entry.parse(entry.print(unusual()), hints)) << entry.name;
    EXPECT_NE(hints, Hints{}) << entry.name;
    for (const Entry& other : table()) {
      const Hints expected = other.name == entry.name ? unusual() : Hints{};
      EXPECT_EQ(other.print(hints), other.print(expected)) << entry.name << " " << other.name;
    }
  }
}

TEST(HintsTable, RedundancyIsReadInEachForm) {
  const Entry& entry = *find("dedup_redundancy");
  const auto read = [&](std::string_view text) {
    Hints hints;
    hints.stripe_data = 77;
    const bool taken = entry.parse(text, hints);
    EXPECT_EQ(taken, hints.stripe_data != 77) << text;
    return taken ? entry.print(hints) : "";
  };
  EXPECT_EQ(read("copies"), "copies");
  EXPECT_EQ(read("xor:7"), "xor:7");
  EXPECT_EQ(read("rs:7+1"), "xor:7");
  EXPECT_EQ(read(" rs:8+2 "), "rs:8+2");
  EXPECT_EQ(read("rs:56+8"), "rs:56+8");
  EXPECT_EQ(read("xor:63"), "xor:63");
  for (const char* wrong : {"", "rs", "rs:", "rs:8", "rs:8+", "rs:+2", "rs:0+2", "rs:8+0", "rs:8+9",
                            "rs:57+8", "xor:", "xor:0", "xor:64", "xor:7+1", "copies:2", "rs:8+2+1",
                            "RS:8+2", "rs:8-2", "raid:4"}) {
    EXPECT_EQ(read(wrong), "") << wrong;
  }
}

TEST(HintsResolve, StripesSayHowManyNodesDuplicatesAreOn) {
  Warnings warnings;
  const auto replication = [&](const Source& info) {
    const auto hints = resolve(info, {}, {}, warnings);
    return hints.is_ok() ? static_cast<int>(hints->replication) : -1;
  };
  EXPECT_EQ(replication({{"dedup_redundancy", "rs:8+2"}}), 3);
  EXPECT_EQ(replication({{"dedup_redundancy", "xor:7"}}), 2);
  EXPECT_EQ(replication({{"dedup_redundancy", "rs:8+2"}, {"dedup_replication", "5"}}), 5);
  EXPECT_EQ(replication({{"dedup_redundancy", "rs:8+2"}, {"dedup_replication", "2"}}), -1);
  EXPECT_EQ(replication({{"dedup_redundancy", "copies"}}), 2);
}

TEST(HintsTable, EnvironmentNamesAreUpperCase) {
  EXPECT_EQ(environment_name(*find("dedup_chunk_size")), "DEDUP_CHUNK_SIZE");
  EXPECT_EQ(environment_name(*find("dedup_store")), "DEDUP_STORE");
  EXPECT_EQ(environment_name(*find("striping_unit")), "");
}

TEST(HintsDescribe, RoundTripsThroughResolve) {
  for (const Hints& hints : {Hints{}, unusual()}) {
    Warnings warnings;
    const auto again = resolve(describe(hints), {}, {}, warnings);
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    EXPECT_EQ(*again, hints);
    EXPECT_TRUE(warnings.empty());
  }
}

TEST(HintsDescribe, RandomHintsRoundTrip) {
  std::mt19937_64 random(20151);
  const auto between = [&](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    Hints hints;
    hints.replication = static_cast<std::uint32_t>(between(1, 16));
    hints.threshold = static_cast<std::uint32_t>(between(1, 1 << 24));
    hints.chunk_size = static_cast<std::uint32_t>(between(512, 1 << 20));
    hints.buffer = between(1 << 20, std::uint64_t{1} << 40);
    hints.heal_rate = between(0, std::uint64_t{1} << 40);
    hints.keep = static_cast<std::uint32_t>(between(1, 1024));
    hints.generation = static_cast<std::int64_t>(between(0, 2000)) - 1000;
    hints.mode = static_cast<Mode>(between(0, 2));
    hints.exchange = static_cast<Exchange>(between(0, 1));
    hints.store = "/s" + std::to_string(between(0, 1000)) + (between(0, 1) != 0 ? "/%n" : "");
    Warnings warnings;
    const auto again = resolve(describe(hints), {}, {}, warnings);
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    EXPECT_EQ(*again, hints);
  }
}

TEST(HintsDescribe, LeavesOutAnEmptyReportAndNoStripingUnitOnly) {
  EXPECT_EQ(describe(Hints{}).size(), table().size() - 2);
  EXPECT_EQ(describe(unusual()).size(), table().size());
  for (const auto& [key, value] : describe(unusual())) EXPECT_FALSE(value.empty()) << key;
}

TEST(HintsAgreement, EachHintCountsInItsOwnScopeOnly) {
  for (const Entry& entry : table()) {
    Hints hints;
    ASSERT_TRUE(entry.parse(entry.print(unusual()), hints));
    for (const Agreement scope : {Agreement::kNone, Agreement::kNode, Agreement::kAll}) {
      const std::string a = agreement_text(Hints{}, scope);
      const std::string b = agreement_text(hints, scope);
      EXPECT_EQ(a != b, entry.agreement == scope) << entry.name;
      const std::string difference = first_difference(a, b);
      EXPECT_EQ(difference.empty(), a == b) << entry.name;
      if (a == b) continue;
      EXPECT_EQ(difference, std::string(entry.name) + " is \"" + entry.print(Hints{}) +
                                "\" on one rank and \"" + entry.print(hints) + "\" on another");
    }
  }
  EXPECT_EQ(find("dedup_replication")->agreement, Agreement::kAll);
  EXPECT_EQ(find("dedup_store")->agreement, Agreement::kNode);
  EXPECT_EQ(find("dedup_report")->agreement, Agreement::kNone);
}

TEST(HintsAgreement, NamesTheFirstOfSeveralDifferences) {
  Hints other;
  other.chunk_size = 512;
  other.mode = Mode::kNone;
  EXPECT_EQ(first_difference(agreement_text(Hints{}), agreement_text(other)),
            "dedup_chunk_size is \"4096\" on one rank and \"512\" on another");
  EXPECT_EQ(first_difference("", ""), "");
  EXPECT_EQ(first_difference("", "dedup_mode=local\n"),
            "dedup_mode is \"\" on one rank and \"local\" on another");
}

TEST(HintsStore, DefaultIsTheUsersOwn) {
  EXPECT_EQ(Hints{}.store, "/tmp/dedup-" + std::to_string(getuid()));
}

TEST(HintsStore, ExpandsTheNodesName) {
  EXPECT_EQ(expand_store("/local/%n/store", "n3"), "/local/n3/store");
  EXPECT_EQ(expand_store("/%n-%n", "a"), "/a-a");
  EXPECT_EQ(expand_store("/100%%", "a"), "/100%");
  EXPECT_EQ(expand_store("/%%n", "a"), "/%n");
  EXPECT_EQ(expand_store("/plain", "a"), "/plain");
  EXPECT_EQ(expand_store("/%n", "%n"), "/_n");
}

TEST(HintsStore, ANodesNameNeverLeadsOutside) {
  EXPECT_EQ(safe_node_name("node-07.cluster_1"), "node-07.cluster_1");
  EXPECT_EQ(safe_node_name(""), "_");
  EXPECT_EQ(safe_node_name("."), "_");
  EXPECT_EQ(safe_node_name(".."), "__");
  EXPECT_EQ(safe_node_name("..."), "...");
  EXPECT_EQ(safe_node_name("../../etc"), ".._.._etc");
  EXPECT_EQ(safe_node_name("a/b"), "a_b");
  EXPECT_EQ(safe_node_name(std::string("a\0b", 3)), "a_b");
  EXPECT_EQ(safe_node_name("n\xc3\xb6"), "n__");
  EXPECT_EQ(expand_store("/local/%n/x", ".."), "/local/__/x");
  for (int c = 0; c < 256; ++c) {
    const std::string safe = safe_node_name(std::string(1, static_cast<char>(c)));
    ASSERT_EQ(safe.size(), 1u);
    const bool kept = safe[0] == static_cast<char>(c);
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '-';
    EXPECT_EQ(kept, allowed) << c;  // a lone '.' is not kept either
    EXPECT_TRUE(kept || safe == "_") << c;
  }
}

}  // namespace
}  // namespace dedup::hints
