// A new file shares what its donor has, and nothing else ties the two to each other: whatever
// happens to one of them, the other reads whole, and what neither needs is freed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "engine/protocol/delete_file.h"
#include "engine/protocol/leave.h"
#include "engine/protocol/reader.h"
#include "store/real_path.h"
#include "test/simulation/chunks.h"
#include "test/simulation/dedupctl.h"
#include "test/simulation/handles.h"
#include "test/simulation/tidy.h"

namespace dedup::simulation {
namespace {

constexpr std::size_t kSize = 500;
constexpr std::size_t kCells = 12;  // of a file, in three blocks
constexpr std::size_t kDonor = 0, kSharer = 1, kThird = 2, kFiles = 3;
constexpr int kReader = kUpkeep - 1;

// What each cell is filled with; 0: it is not written.
using Cells = std::array<std::uint8_t, kCells>;

Cells cells_from(std::uint8_t first) {
  Cells cells{};
  std::iota(cells.begin(), cells.end(), first);
  return cells;
}

class Sharing : public testing::Test {
 public:
  Sharing() { seed_product(1); }

  // --- What jobs do -----------------------------------------------------------------------------
  static std::uint64_t place(std::size_t cell) {
    return cell % 3 * kBlockSpan + 64 + cell / 3 * kSize;
  }

  // The cells that `cells` has. How many copies had to be stored for that.
  unsigned write(const engine::JobFile& file, std::size_t name, const Cells& cells) {
    unsigned stored = 0;
    if (!expected[name]) expected[name].emplace();
    for (std::size_t c = 0; c < kCells; ++c) {
      if (cells[c] == 0) continue;
      const auto first = static_cast<NodeIndex>(c % file.nodes());
      NodeSet nodes{first, static_cast<NodeIndex>((c + 1) % file.nodes())};
      std::sort(nodes.begin(), nodes.end());
      const auto written = write_chunk(file, place(c), Bytes(kSize, std::byte{cells[c]}), nodes);
      EXPECT_TRUE(written.is_ok()) << written.status().message();
      if (written.is_ok()) stored += *written;
      (*expected[name])[c] = cells[c];
    }
    return stored;
  }

  static void commit_and_leave(engine::JobFile& file) {
    const Status committed = commit(file);
    EXPECT_TRUE(committed.is_ok()) << committed.message();
    const Status left = engine::leave(file);
    EXPECT_TRUE(left.is_ok()) << left.message();
  }

  void write_file(Job& job, std::size_t name, const Cells& cells) {
    const auto file = open_file(job, name);
    write(*file, name, cells);
    commit_and_leave(*file);
  }

  // All is brought back to two copies, on the job's nodes.
  static void heal(Job& job, std::size_t name) {
    const auto file = open_file(job, name);
    file->on_loss = engine::OnLoss::kRefuse;
    commit_and_leave(*file);
  }

  void delete_file(Job& job, std::size_t name) {
    hints::Hints hints;
    hints.store = "/%n/s";
    const Status status = engine::delete_file(job.client(), Cluster::path(name), hints);
    EXPECT_TRUE(status.is_ok()) << status.message();
    expected[name].reset();
  }

  // Nothing that the job's objects do in going counts.
  void kill(std::unique_ptr<Job>& job, std::unique_ptr<engine::JobFile>& file) {
    cluster.plan_fault(store::Fault::kDead, 1);
    file.reset();
    job.reset();
    cluster.end_fault();
    cluster.set_process(0);
  }

  // --- What others do ---------------------------------------------------------------------------
  void rename(std::size_t name, std::size_t other) {
    cluster.memory().rename(Cluster::path(name).c_str(), Cluster::path(other).c_str());
    expected[other] = std::exchange(expected[name], std::nullopt);
  }
  void gc(bool unnamed) {
    cluster.set_process(kUpkeep * 16 + 1);
    ctl::Freed freed;
    const Status status = Dedupctl(kAll).gc(unnamed, freed);
    EXPECT_TRUE(status.is_ok()) << status.message();
    cluster.set_process(0);
  }
  void rm(std::size_t name) {
    cluster.set_process(kUpkeep * 16 + 1);
    const Status status = Dedupctl(kAll).rm(Cluster::path(name));
    EXPECT_TRUE(status.is_ok()) << status.message();
    expected[name].reset();
    cluster.set_process(0);
  }

  // --- What must be true ------------------------------------------------------------------------
  // Reads the file with a job on `nodes`.
  Status read(std::size_t name, const std::vector<NodeIndex>& nodes) {
    Job reader(cluster, kReader, nodes, 1);
    const auto file = handle_of(reader, reader.ranks(), name);
    file->writable = false;
    DEDUP_TRY(open(reader, *file));
    Status status;
    for (std::size_t c = 0; c < kCells && status.is_ok(); ++c) {
      const std::uint8_t value = (*expected[name])[c];
      if (value == 0) continue;
      Bytes bytes(kSize);
      status = engine::read_range(*file, place(c), bytes);
      if (status.is_ok() && bytes != Bytes(kSize, std::byte{value})) {
        status = {Code::kCorrupt, "cell " + std::to_string(c) + " is another"};
      }
    }
    const Status left = engine::leave(*file);
    return status.is_ok() ? left : status;
  }
  void expect_whole(const std::vector<NodeIndex>& nodes) {
    for (std::size_t name = 0; name < kFiles; ++name) {
      if (!expected[name]) continue;
      const Status status = read(name, nodes);
      EXPECT_TRUE(status.is_ok()) << "f" << name << ": " << status.message();
    }
  }

  static std::unique_ptr<store::Store> store_of(NodeIndex node) {
    auto store = store::Store::open(Cluster::disk(node) + "/s", false);
    return store.is_ok() ? *std::move(store) : nullptr;
  }
  static std::size_t shared_segments(NodeIndex node, const Id128& identity) {
    const auto segments = store_of(node)->segments(identity);
    EXPECT_TRUE(segments.is_ok());
    return static_cast<std::size_t>(
        std::count_if(segments->begin(), segments->end(),
                      [](const store::SegmentSize& one) { return one.is_shared; }));
  }

  // After gc the stores have the files that have a name and nothing else of them than their
  // generation needs; each chunk is what it is named after, and there twice.
  void expect_tidy() {
    gc(false);
    std::map<Id128, std::size_t> named;
    for (std::size_t name = 0; name < kFiles; ++name) {
      if (!expected[name]) continue;
      const auto state = store::look_at(Cluster::path(name));
      ASSERT_TRUE(state.is_ok()) << state.status().message();
      named[state->placeholder.identity] = name;
    }
    for (const NodeIndex node : kAll) {
      const auto store = store_of(node);
      if (!store) continue;
      const auto identities = store->identities();
      ASSERT_TRUE(identities.is_ok());
      for (const Id128& identity : *identities) {
        EXPECT_TRUE(named.contains(identity)) << identity.hex() << " has no name";
        EXPECT_EQ(untidy(*store, identity), "");
      }
    }
    for (const auto& [identity, name] : named) {
      EXPECT_EQ(copies_of(identity), 2u) << "f" << name;
    }
  }

  std::array<std::optional<Cells>, kFiles> expected;  // of each file that there is
  Cluster cluster{Breakage::kNone};
  static inline const std::vector<NodeIndex> kAll = {0, 1, 2, 3, 4, 5};

 private:
  // Of the chunk that has the fewest: on stores that the recipe names, and that have it.
  static unsigned copies_of(const Id128& identity) {
    std::map<Id128, std::unique_ptr<store::Store>> stores;
    std::optional<store::CommitRecord> record;
    for (const NodeIndex node : kAll) {
      auto store = store_of(node);
      if (!store) continue;
      const auto newest = store->newest(identity);
      if (newest.is_ok() && (!record || record->number < newest->number)) record = *newest;
      const Id128 uuid = store->uuid();
      stores.emplace(uuid, std::move(store));
    }
    if (!record) return 0;
    const auto at = [&](std::size_t position) -> const store::Store* {
      const auto found = stores.find(record->stores[position].uuid);
      return found == stores.end() ? nullptr : found->second.get();
    };
    unsigned least = ~0u;
    for (std::uint32_t s = 0; s < record->shards.size(); ++s) {
      unsigned shards = 0;
      for (const auto position : record->shards[s].stores) {
        const store::Store* const store = at(position);
        if (store == nullptr) continue;
        const auto shard = store->shard(identity, record->attempt, s, record->shards[s].digest);
        if (!shard.is_ok()) continue;
        ++shards;
        for (const std::uint64_t number : (*shard)->block_numbers()) {
          const auto bytes = (*shard)->read(number);
          const auto block = bytes.is_ok() ? store::decode_block(*bytes) : bytes.status();
          EXPECT_TRUE(block.is_ok()) << block.status().message();
          if (block.is_ok()) least = std::min(least, copies_in(*block, identity, *record, at));
        }
      }
      least = std::min(least, shards);
    }
    return least;
  }
  template <typename StoreAt>
  static unsigned copies_in(const Block& block, const Id128& identity,
                            const store::CommitRecord& record, const StoreAt& at) {
    unsigned least = ~0u;
    for (const Piece& piece : block.pieces) {
      unsigned copies = 0;
      for (const NodeIndex position : block.placements[piece.placement].nodes()) {
        const store::Store* const store = at(position);
        if (store == nullptr) continue;
        const auto index = store->index(identity, record.attempt);
        if (index.is_ok() && (*index)->find(piece.fingerprint).is_ok()) ++copies;
      }
      least = std::min(least, copies);
    }
    return least;
  }
};

// ---- Between the new file's open and its first commit ------------------------------------------

struct Meanwhile {
  const char* name;
  bool by_the_job;
  // `job` has the new file open, or is just opening it.
  std::function<void(Sharing&, Job& job)> happens;
};

void rewrite_donor(Sharing& all, Job& job) {
  all.write_file(job, kDonor, cells_from(101));
}
void heal_donor(Sharing&, Job& job) {
  Sharing::heal(job, kDonor);
}
void delete_donor(Sharing& all, Job& job) {
  all.delete_file(job, kDonor);
}
std::function<void(Sharing&, Job&)> by_another(void (*what)(Sharing&, Job&)) {
  return [what](Sharing& all, Job&) {
    Job another(all.cluster, 2, {2, 1, 0}, 2);
    what(all, another);
  };
}

const std::vector<Meanwhile> kMeanwhile = {
    {"Nothing", false, [](Sharing&, Job&) {}},
    {"DeletedByTheJob", true, delete_donor},
    {"DeletedByAnother", false, by_another(delete_donor)},
    {"RewrittenByTheJob", true, rewrite_donor},
    {"RewrittenByAnother", false, by_another(rewrite_donor)},
    {"HealedByTheJob", true, heal_donor},
    {"HealedByAnother", false, by_another(heal_donor)},
    {"Renamed", false, [](Sharing& all, Job&) { all.rename(kDonor, kThird); }},
    {"RemovedByDedupctl", false, [](Sharing& all, Job&) { all.rm(kDonor); }},
    {"Collected", false, [](Sharing& all, Job&) { all.gc(false); }},
    {"FreedForItHasNoName", false,
     [](Sharing& all, Job&) {
       all.cluster.memory().unlink(Cluster::path(kDonor).c_str());
       all.expected[kDonor].reset();
       all.gc(true);
     }},
};

class WhileSharing : public Sharing, public testing::WithParamInterface<Meanwhile> {};

TEST_P(WhileSharing, BothFilesStayWhole) {
  const std::vector<NodeIndex> nodes = {0, 1, 2};
  Job job(cluster, 1, nodes, 1);
  write_file(job, kDonor, cells_from(1));
  const auto file = open_file(job, kSharer);
  for (const NodeIndex node : nodes) EXPECT_EQ(shared_segments(node, file->identity()), 1u);
  GetParam().happens(*this, job);
  Cells cells = cells_from(1);
  cells[4] = 50;
  cells[5] = 51;
  // Two cells, twice each: what the donor had is here, whatever became of it.
  EXPECT_EQ(write(*file, kSharer, cells), 4u);
  commit_and_leave(*file);
  expect_whole(nodes);
  for (const NodeIndex lost : nodes) {
    std::vector<NodeIndex> rest = nodes;
    std::erase(rest, lost);
    expect_whole(rest);
  }
  expect_tidy();
}

// The new file goes on to be one like any other; and after it the donor is.
TEST_P(WhileSharing, NothingStaysWhenAllAreDeleted) {
  Job job(cluster, 1, {0, 1, 2}, 1);
  write_file(job, kDonor, cells_from(1));
  const auto file = open_file(job, kSharer);
  GetParam().happens(*this, job);
  write(*file, kSharer, cells_from(1));
  commit_and_leave(*file);
  for (const std::size_t name : {kSharer, kDonor, kThird}) {
    if (!expected[name]) continue;
    delete_file(job, name);
    expect_whole({0, 1, 2});
  }
  for (const NodeIndex node : {0, 1, 2}) {
    for (const auto& [name, size] : cluster.memory().tree(Cluster::disk(node) + "/s/files")) {
      ADD_FAILURE() << "left on n" << node << ": " << name;
    }
  }
}

// The job is killed instead of committing.
TEST_P(WhileSharing, AFileThatNobodyCommittedIsFreed) {
  auto job = std::make_unique<Job>(cluster, 1, std::vector<NodeIndex>{0, 1, 2}, 1);
  write_file(*job, kDonor, cells_from(1));
  auto file = open_file(*job, kSharer);
  GetParam().happens(*this, *job);
  write(*file, kSharer, cells_from(7));
  kill(job, file);
  expected[kSharer].reset();
  // Its empty file at the real path is no placeholder.
  cluster.memory().unlink(Cluster::path(kSharer).c_str());
  expect_whole({0, 1, 2});
  expect_tidy();
}

INSTANTIATE_TEST_SUITE_P(Donor, WhileSharing, testing::ValuesIn(kMeanwhile),
                         [](const auto& what) { return std::string(what.param.name); });

// The same when the job knows the donor already, and so many of its nodes have taken their share.
using Moment = std::tuple<Meanwhile, int>;
class WhileOpening : public Sharing, public testing::WithParamInterface<Moment> {};

TEST_P(WhileOpening, BothFilesStayWhole) {
  const auto& [meanwhile, attached] = GetParam();
  Job job(cluster, 1, {0, 1, 2}, 1);
  write_file(job, kDonor, cells_from(1));
  int left = attached;
  job.intercept = [&](NodeIndex, service::Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode == service::Opcode::kAttach && left-- == 0) {
      const int process = cluster.process();
      meanwhile.happens(*this, job);
      cluster.set_process(process);
    }
    return std::nullopt;
  };
  const auto file = open_file(job, kSharer);
  EXPECT_LT(left, 0);
  write(*file, kSharer, cells_from(5));
  commit_and_leave(*file);
  expect_whole({0, 1, 2});
  expect_whole({0, 2});
  expect_tidy();
}

std::vector<Meanwhile> by_others() {
  std::vector<Meanwhile> some = kMeanwhile;
  std::erase_if(some, [](const Meanwhile& one) { return one.by_the_job; });
  return some;
}

INSTANTIATE_TEST_SUITE_P(Donor, WhileOpening,
                         testing::Combine(testing::ValuesIn(by_others()), testing::Range(0, 3)),
                         [](const auto& moment) {
                           return std::get<0>(moment.param).name +
                                  std::to_string(std::get<1>(moment.param));
                         });

// ---- Stores ------------------------------------------------------------------------------------

TEST_F(Sharing, AStoreThatWasLostBetweenTheFilesGetsItsPartOfTheSecond) {
  {
    Job job(cluster, 1, {0, 1, 2}, 1);
    write_file(job, kDonor, cells_from(1));
  }
  cluster.wipe(1);
  Job job(cluster, 2, {0, 1, 2}, 2);
  const auto file = open_file(job, kSharer);
  EXPECT_EQ(shared_segments(0, file->identity()), 1u);
  EXPECT_EQ(shared_segments(1, file->identity()), 0u);
  // A third of all copies was on the node.
  EXPECT_EQ(write(*file, kSharer, cells_from(1)), 2 * kCells / 3);
  commit_and_leave(*file);
  expect_whole({0, 1, 2});
  heal(job, kDonor);
  expect_tidy();
  // Now either of them does without another one.
  cluster.wipe(0);
  expect_whole({1, 2});
}

TEST_F(Sharing, OtherNodesTakeOverWhatALostOneHad) {
  {
    Job job(cluster, 1, {0, 1, 2}, 1);
    write_file(job, kDonor, cells_from(1));
  }
  cluster.wipe(1);
  Job job(cluster, 2, {3, 2, 0}, 2);
  write_file(job, kSharer, cells_from(1));
  expect_whole({0, 2, 3});
  heal(job, kDonor);
  expect_tidy();
  cluster.wipe(2);
  expect_whole({0, 3});
}

TEST_F(Sharing, BothSayWhatIsMissingIfTooManyStoresAre) {
  Job job(cluster, 1, {0, 1, 2}, 1);
  write_file(job, kDonor, cells_from(1));
  write_file(job, kSharer, cells_from(1));
  cluster.wipe(0);
  cluster.wipe(1);
  for (const std::size_t name : {kDonor, kSharer}) {
    const Status status = read(name, {2});
    EXPECT_FALSE(status.is_ok());
    for (const char* const node : {"n0", "n1"}) {
      EXPECT_NE(status.message().find(node), std::string::npos) << status.message();
    }
  }
}

// The store has no part of the second file, or one that was never committed there.
class OlderStore : public Sharing, public testing::WithParamInterface<bool> {};

TEST_P(OlderStore, IsBroughtUpToDate) {
  Job job(cluster, 1, {0, 1, 2}, 1);
  write_file(job, kDonor, cells_from(1));
  if (!GetParam()) cluster.remember(1);
  const auto file = open_file(job, kSharer);
  write(*file, kSharer, cells_from(5));
  if (GetParam()) cluster.remember(1);
  commit_and_leave(*file);
  write_file(job, kDonor, cells_from(101));
  ASSERT_TRUE(cluster.bring_back(1));
  expect_whole({0, 1, 2});
  Job next(cluster, 2, {0, 1, 2}, 2);
  // What the newest of the series, the donor, has by now.
  write_file(next, kThird, cells_from(101));
  expect_whole({0, 1, 2});
  for (const std::size_t name : {kDonor, kSharer, kThird}) heal(next, name);
  expect_tidy();
  cluster.wipe(0);
  expect_whole({1, 2});
}

INSTANTIATE_TEST_SUITE_P(Sharing, OlderStore, testing::Bool(), [](const auto& begun) {
  return begun.param ? "ThatHasItUncommitted" : "ThatLacksIt";
});

TEST_F(Sharing, SegmentsThatWereSharedAndAreGoneAreStoredAnew) {
  Job job(cluster, 1, {0, 1, 2}, 1);
  write_file(job, kDonor, cells_from(1));
  const auto file = open_file(job, kSharer);
  for (const auto& segment : *store_of(1)->segments(file->identity())) {
    ASSERT_TRUE(store_of(1)->remove_segment(file->identity(), segment.segment).is_ok());
  }
  EXPECT_EQ(write(*file, kSharer, cells_from(1)), 2 * kCells / 3);
  commit_and_leave(*file);
  expect_whole({0, 1, 2});
  expect_tidy();
}

// ---- Several at once ---------------------------------------------------------------------------

// First the one that shares needs so little that it copies that, then the other one.
TEST_F(Sharing, EachCopiesWhatItNeedsOfASegmentAndLeavesTheOthers) {
  Job job(cluster, 1, {0, 1, 2}, 1);
  write_file(job, kDonor, cells_from(1));
  const auto file = open_file(job, kSharer);
  const Id128 identity = file->identity();
  write(*file, kSharer, cells_from(1));
  commit_and_leave(*file);
  EXPECT_EQ(shared_segments(0, identity), 1u);
  Cells all_but_one = cells_from(51);
  all_but_one[0] = 0;
  write_file(job, kSharer, all_but_one);
  EXPECT_EQ(shared_segments(0, identity), 0u);
  expect_whole({0, 1, 2});
  write_file(job, kDonor, all_but_one);
  expect_whole({0, 1, 2});
  expect_tidy();
}

TEST_F(Sharing, TwoJobsMakeTwoFilesFromOneDonor) {
  Job job(cluster, 1, {0, 1, 2}, 1);
  Job other(cluster, 2, {2, 3, 1}, 2);
  write_file(job, kDonor, cells_from(1));
  const auto one = open_file(job, kSharer);
  const auto two = open_file(other, kThird);
  for (const NodeIndex node : {1, 2}) {
    EXPECT_EQ(shared_segments(node, one->identity()), 1u);
    EXPECT_EQ(shared_segments(node, two->identity()), 1u);
  }
  write(*one, kSharer, cells_from(4));
  write(*two, kThird, cells_from(2));
  const Status committed = commit(*two);
  EXPECT_TRUE(committed.is_ok()) << committed.message();
  delete_file(other, kDonor);
  commit_and_leave(*one);
  expect_whole({0, 1, 2, 3});
  write(*two, kThird, cells_from(8));
  commit_and_leave(*two);
  expect_whole({0, 1, 2, 3});
  expect_tidy();
}

// The donor is open for writing all the time: what it had committed last is shared.
TEST_F(Sharing, OneJobRewritesTheDonorWhileAnotherBeginsWithIt) {
  Job job(cluster, 1, {0, 1, 2}, 1);
  Job other(cluster, 2, {0, 1, 2}, 2);
  write_file(job, kDonor, cells_from(1));
  const auto donor = open_file(job, kDonor);
  write(*donor, kDonor, cells_from(101));
  const auto file = open_file(other, kSharer);
  EXPECT_EQ(write(*file, kSharer, cells_from(1)), 0u);
  Status status = commit(*donor);
  EXPECT_TRUE(status.is_ok()) << status.message();
  status = commit(*file);
  EXPECT_TRUE(status.is_ok()) << status.message();
  // A second generation each, of what the other has.
  write(*donor, kDonor, cells_from(1));
  write(*file, kSharer, cells_from(101));
  commit_and_leave(*donor);
  commit_and_leave(*file);
  expect_whole({0, 1, 2});
  expect_tidy();
}

}  // namespace
}  // namespace dedup::simulation
