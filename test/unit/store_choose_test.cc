#include "store/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dedup::store {
namespace {

Id128 id(std::uint8_t n) {
  Id128 out;
  out.bytes[15] = n;
  return out;
}

constexpr char kPath[] = "/scratch/ckpt";

// Simulated stores and jobs: a job opens the stores it is given and commits on all of them, as the
// engine does.
class Stores {
 public:
  explicit Stores(int count) : records_(static_cast<std::size_t>(count)) {}

  std::vector<StoreReport> reports(const std::vector<int>& present) const {
    std::vector<StoreReport> out;
    for (const int s : present) {
      StoreReport report;
      report.node = static_cast<NodeIndex>(out.size());
      report.store = id(static_cast<std::uint8_t>(100 + s));
      report.node_name = "n" + std::to_string(s);
      const auto& records = records_[static_cast<std::size_t>(s)];
      report.records.assign(records.begin(), records.end());
      report.deleted = deleted_;
      out.push_back(report);
    }
    return out;
  }

  // The record that a job on `present` commits on top of `base` (nullptr: a new file).
  CommitRecord next(const std::vector<int>& present, const CommitRecord* base) {
    CommitRecord record;
    if (base != nullptr) record = *base;
    record.path = kPath;
    record.replication = 3;
    if (base == nullptr) record.identity = id(++identities_);
    record.parent = record.attempt;
    record.attempt = id(++attempts_);
    ++record.number;
    record.stores.clear();
    for (const int s : present) {
      record.stores.push_back({id(static_cast<std::uint8_t>(100 + s)), "n" + std::to_string(s)});
    }
    record.lineage.push_back({id(static_cast<std::uint8_t>(50 + ++sessions_)), record.number});
    return record;
  }

  void put(const std::vector<int>& on, const CommitRecord& record) {
    for (const int s : on) records_[static_cast<std::size_t>(s)] = {record};
  }
  void mark_deleted(const Id128& identity) { deleted_.push_back(identity); }

 private:
  std::vector<std::vector<CommitRecord>> records_;
  std::vector<Id128> deleted_;
  std::uint8_t identities_ = 0;
  std::uint8_t attempts_ = 0;
  std::uint8_t sessions_ = 0;
};

const std::vector<int> kAll = {0, 1, 2, 3, 4, 5};

TEST(ChooseGeneration, NothingThere) {
  Stores stores(6);
  const auto choice = choose_generation(kPath, stores.reports(kAll));
  ASSERT_TRUE(choice.is_ok());
  EXPECT_FALSE(choice->exists);
}

TEST(ChooseGeneration, TakesTheNewestAndFinishesItWhereItIsMissing) {
  Stores stores(6);
  const auto first = stores.next(kAll, nullptr);
  stores.put(kAll, first);
  const auto second = stores.next(kAll, &first);
  stores.put({0, 1, 2}, second);  // the job died between the renames
  const auto choice = choose_generation(kPath, stores.reports(kAll));
  ASSERT_TRUE(choice.is_ok());
  ASSERT_TRUE(choice->exists);
  EXPECT_EQ(choice->record.attempt, second.attempt);
  EXPECT_EQ(choice->adopt, (std::vector<NodeIndex>{3, 4, 5}));
  EXPECT_TRUE(choice->missing.empty());
}

TEST(ChooseGeneration, AnOlderStoreThatComesBackIsAnAncestor) {
  Stores stores(6);
  const auto first = stores.next(kAll, nullptr);
  stores.put(kAll, first);
  const std::vector<int> four = {0, 1, 2, 3};
  auto record = first;
  for (int i = 0; i < 5; ++i) record = stores.next(four, &record);
  stores.put(four, record);
  const auto choice = choose_generation(kPath, stores.reports({5, 0, 1, 2, 3, 4}));
  ASSERT_TRUE(choice.is_ok());
  EXPECT_EQ(choice->record.attempt, record.attempt);
  EXPECT_TRUE(choice->adopt.empty());  // stores 4 and 5 are not the newest generation's
}

TEST(ChooseGeneration, TwoLinesAreAConflictThatNamesBothWhateverTheirNumbers) {
  Stores stores(6);
  const auto first = stores.next(kAll, nullptr);
  const auto left = stores.next({0, 1, 2}, &first);
  const auto right = stores.next({3, 4, 5}, &first);
  const auto right_again = stores.next({3, 4, 5}, &right);
  stores.put({0, 1, 2}, left);
  stores.put({3, 4, 5}, right_again);
  const auto choice = choose_generation(kPath, stores.reports(kAll));
  ASSERT_FALSE(choice.is_ok());
  EXPECT_EQ(choice.status().code(), Code::kConflict);
  EXPECT_NE(choice.status().message().find(left.attempt.hex()), std::string::npos);
  EXPECT_NE(choice.status().message().find(right_again.attempt.hex()), std::string::npos);
}

TEST(ChooseGeneration, TwoIdentitiesAreAConflictUnlessOneWasDeleted) {
  Stores stores(6);
  const auto old_file = stores.next({0, 1, 2}, nullptr);
  const auto new_file = stores.next({3, 4, 5}, nullptr);
  stores.put({0, 1, 2}, old_file);
  stores.put({3, 4, 5}, new_file);
  EXPECT_EQ(choose_generation(kPath, stores.reports(kAll)).status().code(), Code::kConflict);
  stores.mark_deleted(old_file.identity);
  const auto choice = choose_generation(kPath, stores.reports(kAll));
  ASSERT_TRUE(choice.is_ok());
  EXPECT_EQ(choice->record.identity, new_file.identity);
  ASSERT_EQ(choice->drop.size(), 3u);
  EXPECT_EQ(choice->drop[0].node, 0);
  EXPECT_EQ(choice->drop[0].identity, old_file.identity);
}

TEST(CheckQuorum, AllButKMinusOneStoresMustBeThere) {
  Stores stores(6);
  const auto record = stores.next(kAll, nullptr);
  stores.put(kAll, record);
  for (int present = 1; present <= 6; ++present) {
    const std::vector<int> some(kAll.begin(), kAll.begin() + present);
    const auto choice = choose_generation(kPath, stores.reports(some));
    ASSERT_TRUE(choice.is_ok());
    const Status quorum = check_quorum(*choice);
    EXPECT_EQ(quorum.is_ok(), present >= 4) << present;
    if (!quorum.is_ok()) {
      EXPECT_NE(quorum.message().find("node n5"), std::string::npos) << quorum.message();
    }
  }
}

Placeholder placeholder_of(const CommitRecord& record) {
  Placeholder p;
  p.identity = record.identity;
  p.attempt = record.attempt;
  p.session = record.lineage.back().session;
  p.number = record.number;
  p.store = "/local/%n";
  for (const auto& entry : record.stores) p.nodes.push_back(entry.node);
  return p;
}

TEST(ChooseNamed, TakesWhatThePlaceholderNamesOrWhatWasMadeFromIt) {
  Stores stores(6);
  const auto first = stores.next(kAll, nullptr);
  const auto second = stores.next(kAll, &first);
  stores.put(kAll, first);
  stores.put({0, 1}, second);  // killed before the placeholder was replaced
  const auto choice = choose_named(kPath, placeholder_of(first), stores.reports(kAll));
  ASSERT_TRUE(choice.is_ok());
  EXPECT_EQ(choice->record.attempt, second.attempt);
  EXPECT_EQ(choice->adopt, (std::vector<NodeIndex>{2, 3, 4, 5}));
}

TEST(ChooseNamed, AnOlderGenerationIsNotTaken) {
  Stores stores(6);
  const auto first = stores.next(kAll, nullptr);
  const auto second = stores.next({0, 1, 2}, &first);
  stores.put(kAll, first);
  const auto choice = choose_named(kPath, placeholder_of(second), stores.reports(kAll));
  EXPECT_EQ(choice.status().code(), Code::kIo);
  const std::string& text = choice.status().message();
  EXPECT_EQ(text, std::string(kPath) +
                      ": no store of this job has generation 2 of it; it is in /local/%n of nodes "
                      "n0, n1, n2: set dedup_store to that, or remove the file to begin anew");
}

TEST(ChooseNamed, WhatLostAgainstItAndOtherIdentitiesDoNotCount) {
  Stores stores(6);
  const auto first = stores.next(kAll, nullptr);
  const auto winner = stores.next({0, 1, 2}, &first);
  auto loser = stores.next({3, 4}, &first);
  loser = stores.next({3, 4}, &loser);
  const auto other = stores.next({5}, nullptr);
  stores.put({0, 1, 2}, winner);
  stores.put({3, 4}, loser);
  stores.put({5}, other);
  const auto choice = choose_named(kPath, placeholder_of(winner), stores.reports(kAll));
  ASSERT_TRUE(choice.is_ok());
  EXPECT_EQ(choice->record.attempt, winner.attempt);
  EXPECT_TRUE(choice->adopt.empty());
}

// Whatever two jobs on disjoint stores do, they cannot both write on one generation.
TEST(CheckQuorum, DisjointJobsCannotBothWriteIfKIsAtMostHalf) {
  for (unsigned subset = 0; subset < 64; ++subset) {
    Stores stores(6);
    const auto record = stores.next(kAll, nullptr);
    stores.put(kAll, record);
    std::vector<int> left;
    std::vector<int> right;
    for (int s = 0; s < 6; ++s) ((subset >> s & 1) != 0 ? left : right).push_back(s);
    int writers = 0;
    for (const auto& some : {left, right}) {
      const auto choice = choose_generation(kPath, stores.reports(some));
      ASSERT_TRUE(choice.is_ok());
      if (choice->exists && check_quorum(*choice).is_ok()) ++writers;
    }
    EXPECT_LE(writers, 1);
  }
}

// ---- Cached -------------------------------------------------------------------------------------

class ChooseCached : public testing::Test {
 protected:
  ChooseCached() {
    record_ = stores_.next({0, 1, 2, 3}, nullptr);
    stores_.put({0, 1, 2, 3}, record_);
  }
  // Where store `noted` has noted that it is cached as `plain_`, which it is known by.
  std::vector<StoreReport> reports(const std::vector<int>& present, std::size_t noted) const {
    auto out = stores_.reports(present);
    out[noted].cached.push_back({record_.attempt, plain_});
    return out;
  }

  Stores stores_{6};
  CommitRecord record_;
  const Stamp plain_{1, 2, 3, 4, 5};
};

TEST_F(ChooseCached, OneNoteIsEnough) {
  const Choice choice = choose_cached({9, 2, 3, 4, 5}, reports({0, 1, 2, 3}, 2));
  ASSERT_TRUE(choice.exists) << "a device has another number elsewhere";
  EXPECT_EQ(choice.record, record_);
  EXPECT_TRUE(choice.missing.empty() && choice.adopt.empty());
  EXPECT_FALSE(choose_cached(plain_, stores_.reports({0, 1, 2, 3})).exists);
}

TEST_F(ChooseCached, AFileThatHasChangedIsNotIt) {
  for (const Stamp& other :
       {Stamp{1, 9, 3, 4, 5}, Stamp{1, 2, 9, 4, 5}, Stamp{1, 2, 3, 9, 5}, Stamp{1, 2, 3, 4, 9}}) {
    EXPECT_FALSE(choose_cached(other, reports({0, 1, 2, 3}, 0)).exists);
  }
}

TEST_F(ChooseCached, AsManyStoresAsMayBeLostMayBeGone) {
  EXPECT_EQ(choose_cached(plain_, reports({0, 1}, 0)).missing.size(), 2u);
  EXPECT_FALSE(choose_cached(plain_, reports({0}, 0)).exists);
  // It is here, and has nothing of it any more.
  auto dropped = reports({0, 1, 2, 3}, 0);
  dropped[2].records.clear();
  EXPECT_FALSE(choose_cached(plain_, dropped).exists);
}

TEST_F(ChooseCached, OfSeveralThatAreThatFileItIsOneThatIsWhole) {
  // Two jobs have fetched it, each on nodes of its own.
  CommitRecord other = record_;
  other.identity = Id128::random();
  other.attempt = Id128::random();
  std::vector<StoreReport> both = reports({0, 1, 2, 3}, 0);
  both[1].records.push_back(other);
  both[1].cached.push_back({other.attempt, plain_});
  EXPECT_EQ(choose_cached(plain_, both).record.attempt, record_.attempt);
  for (std::size_t i : {0, 2, 3}) both[i].records.push_back(other);
  EXPECT_TRUE(choose_cached(plain_, both).exists);
}

TEST_F(ChooseCached, WhatNeverCountedOrWasDeletedIsNobodys) {
  // A job was killed before it could replace the plain file.
  stores_.put({1}, stores_.next({0, 1, 2, 3}, &record_));
  EXPECT_FALSE(choose_cached(plain_, reports({0, 1, 2, 3}, 0)).exists);
  stores_.put({1}, record_);
  EXPECT_TRUE(choose_cached(plain_, reports({0, 1, 2, 3}, 0)).exists);
  stores_.mark_deleted(record_.identity);
  EXPECT_FALSE(choose_cached(plain_, reports({0, 1, 2, 3}, 0)).exists);
}

}  // namespace
}  // namespace dedup::store
