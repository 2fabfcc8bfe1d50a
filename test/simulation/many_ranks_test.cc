// What ranks of several nodes do together: what of it any of them has to send and receive.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/protocol/base_recipe.h"
#include "engine/protocol/leave.h"
#include "engine/protocol/search.h"
#include "test/simulation/chunks.h"
#include "test/simulation/handles.h"
#include "test/simulation/rank_fibers.h"
#include "tools/dedupctl/catalog.h"

namespace dedup::simulation {
namespace {

using service::Opcode;

constexpr NodeIndex kAll = 6;

class ManyRanks : public testing::Test {
 protected:
  ManyRanks() { begin({0, 1, 2, 3, 4, 5}); }

  // A job on these nodes, in place of the one before; a rank on each.
  void begin(const std::vector<NodeIndex>& nodes) {
    files.clear();
    job = nullptr;
    seed_product(1);
    job = std::make_unique<Job>(cluster, 1, nodes, 1);
    job->listen = [this](NodeIndex node, Opcode opcode, std::span<const std::byte>) {
      ++counts[opcode][node];
    };
    fibers = std::make_unique<RankFibers>(static_cast<int>(nodes.size()));
    const Id128 handle = Id128::random();
    for (std::size_t r = 0; r < nodes.size(); ++r) {
      files.push_back(handle_of(*job, fibers->rank(static_cast<int>(r))));
      files.back()->handle = handle;
    }
  }

  void on_all(const std::function<Status(engine::JobFile&)>& what) {
    counts.clear();
    fibers->reset_traffic();
    fibers->run([&](int rank) {
      const Status status = what(*files[static_cast<std::size_t>(rank)]);
      EXPECT_TRUE(status.is_ok()) << rank << ": " << status.message();
    });
  }
  void open_all() {
    on_all([this](engine::JobFile& file) { return open(*job, file); });
  }
  // A chunk of each rank in each of these blocks, on its own and the next node.
  void write(std::uint64_t blocks, int what) {
    on_all([&](engine::JobFile& file) {
      const auto rank = static_cast<NodeIndex>(file.rank());
      for (std::uint64_t block = 0; block < blocks; ++block) {
        const NodeSet on =
            plan::Placement::copies_on({std::min<NodeIndex>(rank, (rank + 1) % file.nodes()),
                                        std::max<NodeIndex>(rank, (rank + 1) % file.nodes())})
                .nodes();
        const Bytes bytes = bytes_of(rank, block, what);
        DEDUP_TRY(write_chunk(file, block * kBlockSpan + rank * bytes.size(), bytes, on).status());
      }
      return Status::ok();
    });
  }
  static Bytes bytes_of(NodeIndex rank, std::uint64_t block, int what) {
    Bytes bytes(64, std::byte{static_cast<unsigned char>(rank)});
    bytes[1] = std::byte{static_cast<unsigned char>(block)};
    bytes[2] = std::byte{static_cast<unsigned char>(what)};
    return bytes;
  }
  // A file with a generation, on all nodes.
  void make_file() {
    open_all();
    write(2 * kAll, 1);
    on_all(commit);
  }

  Cluster cluster{Breakage::kNone};
  std::unique_ptr<Job> job;
  std::unique_ptr<RankFibers> fibers;
  std::vector<std::unique_ptr<engine::JobFile>> files;
  std::map<Opcode, std::map<NodeIndex, int>> counts;  // by the node that was asked
};

// Each shard has chunks of every node: told one by one, each node would hear from each builder.
TEST_F(ManyRanks, ACommitTellsEachNodeOnceWhatItRefersTo) {
  make_file();
  EXPECT_EQ(counts[Opcode::kReferences].size(), std::size_t{kAll});
  for (const auto& [node, requests] : counts[Opcode::kReferences]) EXPECT_EQ(requests, 1) << node;
  on_all(commit);
  EXPECT_EQ(counts[Opcode::kReferences].size(), 0U);
  write(1, 2);
  on_all(commit);
  for (const auto& [node, requests] : counts[Opcode::kReferences]) EXPECT_EQ(requests, 1) << node;
}

TEST_F(ManyRanks, ANodeThatLacksWhatIsReferredToGetsIt) {
  open_all();
  // What rank 2 writes is said to be on node 3, too, which has never had it.
  std::vector<Fingerprint> names;
  const auto placement = plan::Placement::copies_on({2, 3});
  for (std::uint64_t block = 0; block < 2 * kAll; ++block) {
    const Bytes bytes = bytes_of(2, block, 1);
    ASSERT_TRUE(write_chunk(*files[0], block * kBlockSpan, bytes, {2}).is_ok());
    const Fingerprint name = names.emplace_back(name_of(bytes));
    const auto length = static_cast<std::uint32_t>(bytes.size());
    const Block content{{{0, length, 0, length, 0, name}}, {placement}};
    const service::WriteChunks told{files[0]->identity(), {{block, content}}, false};
    ASSERT_TRUE(job->client().call(files[0]->block_home(block), told).is_ok());
  }
  on_all(commit);
  EXPECT_EQ(counts[Opcode::kReferences][3], 2);
  EXPECT_GE(counts[Opcode::kRestore][3], 1);
  const auto there = job->client().call(3, service::Locate{files[0]->identity(), names});
  ASSERT_TRUE(there.is_ok());
  for (const auto& location : there->locations) EXPECT_NE(location.length, 0U);
}

TEST_F(ManyRanks, AnErrorOfOneIsTheErrorOfAll) {
  open_all();
  write(2 * kAll, 1);
  job->intercept = [](NodeIndex node, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (node != 4 || opcode != Opcode::kReferences) return std::nullopt;
    return Result<Bytes>(Status(Code::kNoSpace, "no room for it"));
  };
  fibers->run([&](int rank) {
    const Status status = commit(*files[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(status.code(), Code::kNoSpace) << rank;
    EXPECT_EQ(status.message(), "no room for it") << rank;
  });
  job->intercept = nullptr;
  on_all(commit);
}

// Its shards are others' now.
TEST_F(ManyRanks, FewerGoOnFromWhatMoreHaveCommitted) {
  make_file();
  on_all([](engine::JobFile& file) { return engine::leave(file, engine::Leaving::kAsItIs); });
  begin({0, 1, 2, 4, 5});
  open_all();
  on_all(commit);
  EXPECT_EQ(files[0]->view()->committed->record.shards.size(), 5U);
  int lists = 0;
  for (const auto& [node, requests] : counts[Opcode::kListShard]) lists += requests;
  EXPECT_EQ(lists, int{kAll});  // each shard of the base by one rank
  for (std::uint64_t block = 0; block < 2 * kAll; ++block) {
    const engine::BaseRecipe recipe(job->client(), files[0]->identity(),
                                    *files[0]->view()->committed);
    const auto read = recipe.read({&block, 1});
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ(read->front().pieces.size(), std::size_t{kAll}) << block;
  }
}

class Searching : public ManyRanks {
 protected:
  Searching() {
    make_file();
    // All that is opened from here on is new to the job.
    on_all([](engine::JobFile& file) { return engine::leave(file, engine::Leaving::kAsItIs); });
    begin({0, 1, 2, 3, 4, 5});
  }
  service::Find request() const { return {Cluster::path(0), {}, "/%n/s"}; }
  engine::SearchResult search_all() {
    engine::SearchResult found;
    on_all([&](engine::JobFile& file) {
      DEDUP_ASSIGN(auto mine, engine::search(file.client(), file.ranks(), request()));
      if (file.rank() == 0) found = std::move(mine);
      return Status::ok();
    });
    return found;
  }
  static std::string store(NodeIndex node) { return Cluster::disk(node) + "/s"; }
  // Another generation, on these nodes alone.
  store::CommitRecord commit_on(const std::vector<NodeIndex>& nodes,
                                const store::CommitRecord& base) {
    store::CommitRecord record = base;
    record.number = base.number + 1;
    record.parent = base.attempt;
    record.attempt = Id128::random();
    record.lineage.back().last = record.number;
    for (const NodeIndex node : nodes) {
      auto opened = store::Store::open(store(node), false);
      EXPECT_TRUE(opened.is_ok());
      EXPECT_TRUE((*opened)->begin_attempt(record.identity, record.attempt).is_ok());
      EXPECT_TRUE((*opened)->prepare(record, true).is_ok());
      EXPECT_TRUE((*opened)->commit(record.identity, record.attempt, true).is_ok());
    }
    return record;
  }
  int asked_for_records() {
    int all = 0;
    for (const auto& [node, requests] : counts[Opcode::kGetRecord]) all += requests;
    return all;
  }
};

TEST_F(Searching, WhatAllHaveIsToldOnce) {
  const engine::SearchResult found = search_all();
  ASSERT_EQ(found.reports.size(), std::size_t{kAll});
  const store::CommitRecord& record = *found.reports[0].records.at(0);
  for (const store::StoreReport& report : found.reports) {
    ASSERT_EQ(report.records.size(), 1U);
    EXPECT_EQ(&*report.records[0], &record);  // not a copy
  }
  EXPECT_EQ(asked_for_records(), 0);
  // What rank 0 gets from the others: less than a record of each.
  EXPECT_LT(fibers->traffic(0).received_bytes, (kAll - 1) * record.encode().size());
}

TEST_F(Searching, EachOtherRecordIsAskedForOnce) {
  const store::CommitRecord first = *search_all().reports[0].records.at(0);
  const store::CommitRecord second = commit_on({2, 3, 5}, first);
  const engine::SearchResult found = search_all();
  EXPECT_EQ(asked_for_records(), 1);
  EXPECT_EQ(counts[Opcode::kGetRecord][2], 1);
  for (const NodeIndex node : {2, 3, 5}) EXPECT_EQ(*found.reports[node].records.at(0), second);
  for (const NodeIndex node : {0, 1, 4}) EXPECT_EQ(*found.reports[node].records.at(0), first);
}

TEST_F(Searching, ANodeWhoseRecordHasGoneIsAskedAgain) {
  const store::CommitRecord first = *search_all().reports[0].records.at(0);
  const store::CommitRecord second = commit_on({2, 3}, first);
  store::CommitRecord third;
  bool has_gone = false;
  job->intercept = [&](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kGetRecord || std::exchange(has_gone, true)) return std::nullopt;
    third = commit_on({2, 3}, second);
    for (const NodeIndex node : {2, 3}) {
      auto opened = store::Store::open(store(node), false);
      EXPECT_TRUE(
          (*opened)
              ->collect(second.identity, {third.attempt}, {}, true, store::Store::Prepared::kKeep)
              .is_ok());
    }
    return std::nullopt;
  };
  const engine::SearchResult found = search_all();
  EXPECT_TRUE(has_gone);
  for (const NodeIndex node : {2, 3}) EXPECT_EQ(*found.reports[node].records.at(0), third);
  EXPECT_EQ(counts[Opcode::kFind][2], 2);
  EXPECT_EQ(counts[Opcode::kFind][0], 1);
}

TEST_F(Searching, WhereRecordsGoAllTheTimeItEnds) {
  const store::CommitRecord first = *search_all().reports[0].records.at(0);
  (void)commit_on({2, 3}, first);
  job->intercept = [](NodeIndex, Opcode opcode) -> std::optional<Result<Bytes>> {
    if (opcode != Opcode::kGetRecord) return std::nullopt;
    return Result<Bytes>(encoded(service::GetRecordReply{}));
  };
  fibers->run([&](int rank) {
    const auto& file = *files[static_cast<std::size_t>(rank)];
    const auto found = engine::search(file.client(), file.ranks(), request());
    EXPECT_EQ(found.status().code(), rank == 0 ? Code::kFileInUse : Code::kOk);
  });
}

// dedupctl, in a job with a rank on each node.
TEST_F(Searching, ACatalogHasEachRecordOnce) {
  const store::CommitRecord first = *search_all().reports[0].records.at(0);
  const store::CommitRecord second = commit_on({3, 4}, first);
  ctl::Catalog catalog;
  fibers->reset_traffic();
  fibers->run([&](int rank) {
    const auto node = static_cast<NodeIndex>(rank);
    ctl::LocalStores local;
    auto opened = store::Store::open(store(node), false);
    ASSERT_TRUE(opened.is_ok());
    local.stores.push_back({"n" + std::to_string(rank), *std::move(opened)});
    ctl::Catalog mine = ctl::make_catalog(fibers->rank(rank), local, {});
    if (rank == 0) catalog = std::move(mine);
  });
  ASSERT_TRUE(catalog.troubles.empty()) << catalog.troubles.front().message;
  ASSERT_EQ(catalog.files.size(), 1U);
  std::set<const store::CommitRecord*> records;
  ASSERT_EQ(catalog.files[0].on.size(), std::size_t{kAll});
  for (const ctl::FileOnStore& on : catalog.files[0].on) {
    ASSERT_EQ(on.survey.newest.size(), 1U);
    records.insert(&*on.survey.newest[0]);
    EXPECT_EQ(*on.survey.newest[0], on.store == 3 || on.store == 4 ? second : first);
  }
  EXPECT_EQ(records.size(), 2U);
  EXPECT_EQ(catalog.files[0].record().attempt, second.attempt);
  EXPECT_EQ(catalog.files[0].choice.adopt.size(), kAll - 2U);
}

}  // namespace
}  // namespace dedup::simulation
