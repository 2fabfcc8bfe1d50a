// A store whose segments are in several directories: where they go, that they are found, and how
// they move.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hints/hints.h"
#include "store/files/layout.h"
#include "store/fs.h"
#include "store/store.h"
#include "test/hooks/forwarding_system.h"
#include "test/hooks/names.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store {
namespace {

using test::Random;
using test::random_bytes;
using test::random_id;

constexpr std::uint64_t kMiB = 1 << 20;

// A file system, of which a directory may be full: its segments get nothing but what was taken for
// them before. Threads may use it at once.
class FullDirectory final : public ForwardingSystem {
 public:
  using ForwardingSystem::ForwardingSystem;
  int open(const char* path, int flags, mode_t mode) override {
    const int fd = ForwardingSystem::open(path, flags, mode);
    const std::lock_guard lock(mutex_);
    if (fd >= 0 && std::string(path).starts_with(directory)) taken_[fd] = 0;
    return fd;
  }
  int close(int fd) override {
    {
      const std::lock_guard lock(mutex_);
      taken_.erase(fd);
    }
    return ForwardingSystem::close(fd);
  }
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override {
    off_t end = offset;
    for (int i = 0; i < count; ++i) end += static_cast<off_t>(parts[i].iov_len);
    {
      const std::lock_guard lock(mutex_);
      const auto taken = taken_.find(fd);
      if (is_full && taken != taken_.end() && end > taken->second) return refuse();
    }
    return ForwardingSystem::pwritev(fd, parts, count, offset);
  }
  int reserve(int fd, off_t offset, off_t bytes) override {
    {
      const std::lock_guard lock(mutex_);
      const auto taken = taken_.find(fd);
      if (is_full && taken != taken_.end()) return refuse();
      if (taken != taken_.end()) taken->second = offset + bytes;
    }
    return ForwardingSystem::reserve(fd, offset, bytes);
  }

  std::string directory = "/nowhere";
  bool is_full = false;

 private:
  static int refuse() {
    errno = ENOSPC;
    return -1;
  }

  std::mutex mutex_;
  std::map<int, off_t> taken_;  // up to where, by open file in the directory
};

struct Chunk {
  Fingerprint fingerprint;
  Bytes data;
  ChunkLocation location;
};

class StoreTiers : public testing::Test {
 protected:
  StoreTiers() { disk_.directory = fast(); }
  ~StoreTiers() override { use_system(before_); }

  std::string fast() const { return dir_ / "fast"; }
  std::string slow() const { return dir_ / "slow"; }
  StorePlace both(std::optional<std::uint64_t> limit = std::nullopt) const {
    return StorePlace(std::vector<StoreTier>{{fast(), limit}, {slow(), std::nullopt}});
  }
  std::unique_ptr<Store> open(const StorePlace& place, bool create = true) {
    auto store = Store::open(place, create);
    EXPECT_TRUE(store.is_ok()) << store.status().message();
    return store.is_ok() ? *std::move(store) : nullptr;
  }
  static Status error(const StorePlace& place, bool create = true) {
    return Store::open(place, create).status();
  }
  std::unique_ptr<Store> open_with_file(const StorePlace& place) {
    auto store = open(place);
    EXPECT_TRUE(store->create_file(identity_, "/scratch/f").is_ok());
    return store;
  }
  bool is_in(const std::string& tier, std::uint64_t number, const Id128& identity) const {
    return std::filesystem::exists(Layout{tier}.segment(identity, number));
  }
  bool is_in(const std::string& tier, std::uint64_t number) const {
    return is_in(tier, number, identity_);
  }

  // Appends until there is so much, or the segment is full.
  std::uint64_t fill(SegmentWriter& writer, std::uint64_t bytes, std::vector<Chunk>& into) {
    while (writer.size() < bytes && !writer.is_full()) {
      Chunk chunk{{}, random_bytes(random_, 60000), {}};
      chunk.fingerprint = test::content_name(chunk.data);
      const auto at = writer.append(chunk.fingerprint, chunk.data);
      if (!at.is_ok()) {
        EXPECT_EQ(at.status().code(), Code::kNoSpace) << at.status().message();
        EXPECT_TRUE(writer.is_full());
        break;
      }
      chunk.location = *at;
      into.push_back(std::move(chunk));
    }
    return writer.size();
  }
  std::vector<Chunk> put(Store& store, std::uint64_t number, std::uint64_t bytes = 100000,
                         SegmentUse use = SegmentUse::kOwn) {
    std::vector<Chunk> chunks;
    auto writer = store.create_segment(identity_, number, use);
    EXPECT_TRUE(writer.is_ok()) << writer.status().message();
    if (!writer.is_ok()) return chunks;
    fill(**writer, bytes, chunks);
    EXPECT_TRUE((*writer)->flush().is_ok());
    return chunks;
  }
  static std::string read(const Store& store, const Id128& identity,
                          const std::vector<Chunk>& chunks) {
    for (const Chunk& chunk : chunks) {
      const auto reader = store.segment(identity, chunk.location.segment);
      if (!reader.is_ok()) return reader.status().message();
      Bytes out(chunk.data.size());
      const Status status = (*reader)->read(chunk.location, chunk.fingerprint, out);
      if (!status.is_ok()) return status.message();
      if (out != chunk.data) return "other bytes";
    }
    return "";
  }
  std::string read(const Store& store, const std::vector<Chunk>& chunks) const {
    return read(store, identity_, chunks);
  }
  Id128 commit(Store& store, std::vector<Chunk> what) {
    CommitRecord record;
    record.identity = identity_;
    record.number = ++number_;
    record.attempt = random_id(random_);
    record.path = "/scratch/f";
    record.replication = 2;
    record.chunk_size = 4096;
    record.fingerprint = "sha256";
    record.stores = {{store.uuid(), "n0"}};
    record.lineage = {{session_, number_}};
    std::sort(what.begin(), what.end(),
              [](const Chunk& a, const Chunk& b) { return a.fingerprint < b.fingerprint; });
    EXPECT_TRUE(store.begin_attempt(identity_, record.attempt).is_ok());
    auto index = store.create_index(identity_, record.attempt);
    EXPECT_TRUE(index.is_ok());
    for (const Chunk& chunk : what) {
      EXPECT_TRUE((*index)->add({chunk.fingerprint, chunk.location}).is_ok());
    }
    EXPECT_TRUE((*index)->finish(true).is_ok());
    EXPECT_TRUE(store.prepare(record, true).is_ok());
    EXPECT_TRUE(store.commit(identity_, record.attempt, true).is_ok());
    return record.attempt;
  }
  static Status move_all(Store& store) {
    DEDUP_ASSIGN(const auto mover, store.move_down());
    for (;;) {
      DEDUP_ASSIGN(const Store::Mover::Moved moved, mover->step());
      if (moved.done) return Status::ok();
    }
  }

  Random random_{11};
  test::TempDir dir_;
  FullDirectory disk_{kernel()};
  System& before_ = use_system(disk_);
  const Id128 identity_ = random_id(random_);
  const Id128 session_ = random_id(random_);
  std::uint64_t number_ = 0;
};

// ---- Where they go ------------------------------------------------------------------------------

TEST_F(StoreTiers, TakeWhatIsOwnAboveAndCopiesBelow) {
  const auto store = open_with_file(both());
  EXPECT_TRUE(store->has_tiers());
  const auto own = put(*store, 1);
  const auto copies = put(*store, 2, 100000, SegmentUse::kCopies);
  EXPECT_TRUE(is_in(fast(), 1) && !is_in(slow(), 1));
  EXPECT_TRUE(is_in(slow(), 2) && !is_in(fast(), 2));
  EXPECT_EQ(store->create_segment(identity_, 1).status().code(), Code::kFileExists);
  EXPECT_EQ(store->create_segment(identity_, 2).status().code(), Code::kFileExists);
  EXPECT_EQ(store->create_segment(random_id(random_), 3).status().code(), Code::kNoSuchFile);
  const auto other = open(both(), false);
  EXPECT_EQ(read(*other, own), "");
  EXPECT_EQ(read(*other, copies), "");
  const auto sizes = other->segments(identity_);
  ASSERT_TRUE(sizes.is_ok());
  ASSERT_EQ(sizes->size(), 2u);
  EXPECT_NE((*sizes)[0].content, (*sizes)[1].content);
  EXPECT_TRUE(other->flush_segment(identity_, 1).is_ok());
}

// A tier that is leaving stands before the others, but is none of those that copies may pass by.
TEST_F(StoreTiers, TakeCopiesBelowAlsoWhileAnotherIsLeaving) {
  open(both());
  const auto store = open_with_file(
      StorePlace(std::vector<StoreTier>{{dir_ / "new", std::nullopt}, {slow(), std::nullopt}}));
  ASSERT_TRUE((*store->tiers())[0].is_leaving);
  put(*store, 1);
  put(*store, 2, 100000, SegmentUse::kCopies);
  EXPECT_TRUE(is_in(dir_ / "new", 1));
  EXPECT_TRUE(is_in(slow(), 2) && !is_in(dir_ / "new", 2));
}

TEST_F(StoreTiers, TakeNoMoreThanTheirLimitsTogether) {
  for (const std::size_t count : {2, 1}) {
    std::vector<StoreTier> tiers{{fast(), 0}, {slow(), 3 * kMiB}};
    if (count == 1) tiers.erase(tiers.begin());
    const auto store = open_with_file(StorePlace(tiers));
    std::vector<Chunk> all;
    std::uint64_t number = count * 100;
    Status status;
    while (status.is_ok() && all.size() * 60000 < 8 * kMiB) {
      auto writer = store->create_segment(identity_, ++number);
      status = writer.status();
      if (!status.is_ok()) break;
      fill(**writer, 8 * kMiB, all);
      ASSERT_TRUE((*writer)->write_out().is_ok());
    }
    EXPECT_EQ(status.code(), Code::kNoSpace) << count;
    EXPECT_LT(*store->taken_bytes(), 5 * kMiB) << count;
    EXPECT_EQ(read(*store, all), "");
    ASSERT_TRUE(store->drop_file(identity_).is_ok());
  }
}

TEST_F(StoreTiers, GoOnBelowWhereTheLimitIsReached) {
  const auto store = open_with_file(both(10 * kMiB));
  std::vector<Chunk> all;
  std::uint64_t number = 0;
  std::uint64_t above = 0;
  while (all.size() * 60000 < 16 * kMiB) {
    auto writer = store->create_segment(identity_, ++number);
    ASSERT_TRUE(writer.is_ok());
    const std::uint64_t bytes = fill(**writer, 16 * kMiB, all);
    ASSERT_TRUE((*writer)->write_out().is_ok());
    if (is_in(fast(), number)) above += bytes;
  }
  // Up to four fifths of it, and what was written before that was seen.
  EXPECT_GT(above, 7 * kMiB);
  EXPECT_LT(above, 10 * kMiB);
  EXPECT_TRUE(is_in(slow(), number));
  EXPECT_EQ(read(*store, all), "");
  // A segment that began above is whole: nothing of it is elsewhere.
  EXPECT_TRUE(is_in(fast(), 1) && !is_in(slow(), 1));
}

TEST_F(StoreTiers, TakeNothingAboveWithALimitOfNothing) {
  const auto store = open_with_file(both(0));
  put(*store, 1);
  EXPECT_TRUE(is_in(slow(), 1));
}

// Whatever the file system said of its space: in the middle of what is buffered, or of a large
// write.
TEST_F(StoreTiers, GoOnBelowWhereTheDiskIsFull) {
  const auto store = open_with_file(both());
  std::vector<Chunk> all;
  auto writer = store->create_segment(identity_, 1);
  ASSERT_TRUE(writer.is_ok());
  fill(**writer, 3 * kMiB + 100000, all);
  disk_.is_full = true;
  fill(**writer, 8 * kMiB, all);
  EXPECT_TRUE((*writer)->is_full());
  EXPECT_LT((*writer)->size(), 5 * kMiB);
  EXPECT_TRUE((*writer)->flush().is_ok());
  auto next = store->create_segment(identity_, 2);
  ASSERT_TRUE(next.is_ok()) << next.status().message();
  EXPECT_TRUE(is_in(slow(), 2) && !is_in(fast(), 2));
  fill(**next, 2 * kMiB, all);
  EXPECT_FALSE((*next)->is_full());
  ASSERT_TRUE((*next)->write_out().is_ok());
  EXPECT_EQ(read(*store, all), "");
}

TEST_F(StoreTiers, TakeNoPartOfALargeWriteOnAFullDisk) {
  const auto store = open_with_file(both());
  std::vector<Chunk> all;
  auto writer = store->create_segment(identity_, 1);
  ASSERT_TRUE(writer.is_ok());
  fill(**writer, kMiB / 2, all);
  disk_.is_full = true;
  std::vector<Chunk> run(4);
  std::vector<SegmentChunk> chunks;
  for (Chunk& chunk : run) {
    chunk.data = random_bytes(random_, kMaxChunkSize);
    chunk.fingerprint = test::content_name(chunk.data);
    chunks.push_back({chunk.fingerprint, chunk.data});
  }
  std::vector<ChunkLocation> locations(run.size());
  const std::uint64_t before = (*writer)->size();
  EXPECT_EQ((*writer)->append(chunks, locations).code(), Code::kNoSpace);
  EXPECT_TRUE((*writer)->is_full());
  EXPECT_EQ((*writer)->size(), before);
  EXPECT_TRUE((*writer)->flush().is_ok());
  EXPECT_EQ(*store->segment_size(identity_, 1), before);
  EXPECT_EQ(read(*store, all), "");
}

TEST_F(StoreTiers, CountTheirSpaceTogether) {
  const auto store = open_with_file(both(64 * kMiB));
  put(*store, 1, 3 * kMiB);
  put(*store, 2, kMiB, SegmentUse::kCopies);
  const auto tiers = store->tiers();
  ASSERT_TRUE(tiers.is_ok());
  ASSERT_EQ(tiers->size(), 2u);
  const TierSpace& above = (*tiers)[0];
  EXPECT_EQ(above.directory, fast());
  EXPECT_EQ(above.limit, 64 * kMiB);
  EXPECT_GE(above.used, 3 * kMiB);
  EXPECT_LE(above.free, 61 * kMiB);
  EXPECT_EQ((*tiers)[1].limit, TierSpace::kNoLimit);
  EXPECT_GE(*store->taken_bytes(identity_), 4 * kMiB);
  EXPECT_GE(*store->taken_bytes(), *store->taken_bytes(identity_));
  // Both are on one file system here: it counts once.
  EXPECT_LE(*store->free_bytes(), *fs::free_bytes(dir_.path()) + 64 * kMiB);
  // But each limit counts.
  const auto limited =
      open(StorePlace(std::vector<StoreTier>{{fast(), 8 * kMiB}, {slow(), 8 * kMiB}}));
  EXPECT_GT(*limited->free_bytes(), 8 * kMiB);
  EXPECT_LT(*limited->free_bytes(), 10 * kMiB);
  const auto freed = store->drop_file(identity_);
  ASSERT_TRUE(freed.is_ok()) << freed.status().message();
  EXPECT_GE(*freed, 4 * kMiB);
  EXPECT_FALSE(is_in(fast(), 1));
  EXPECT_FALSE(std::filesystem::exists(Layout{fast()}.dropped(identity_)));
}

// ---- Directories --------------------------------------------------------------------------------

TEST_F(StoreTiers, AreRefusedInAnotherOrder) {
  open(both());
  const StorePlace turned(std::vector<StoreTier>{{slow(), {}}, {fast(), {}}});
  for (const bool create : {true, false}) {
    const Status status = error(turned, create);
    EXPECT_EQ(status.code(), Code::kAccess);
    EXPECT_NE(status.message().find("faster tier of the store at " + slow()), std::string::npos)
        << status.message();
    EXPECT_EQ(error(fast(), create).code(), Code::kAccess);
  }
  // A store that was there before, in front of a new one.
  open(dir_ / "third");
  const Status status =
      error(StorePlace(std::vector<StoreTier>{{dir_ / "third", {}}, {slow(), {}}}));
  EXPECT_NE(status.message().find("is a store of its own"), std::string::npos) << status.message();
}

TEST_F(StoreTiers, AreRefusedTwiceAndWithinEachOther) {
  EXPECT_EQ(error(StorePlace(std::vector<StoreTier>{{slow() + "/", {}}, {slow(), {}}})).code(),
            Code::kArgument);
  for (const bool inner_first : {true, false}) {
    std::vector<StoreTier> tiers{{slow() + "/fast", {}}, {slow(), {}}};
    if (!inner_first) std::swap(tiers[0], tiers[1]);
    EXPECT_EQ(error(StorePlace(tiers)).code(), Code::kArgument);
  }
  EXPECT_FALSE(std::filesystem::exists(slow()));
}

TEST_F(StoreTiers, AreOfOneStoreAlone) {
  open(both());
  const Status status =
      error(StorePlace(std::vector<StoreTier>{{fast(), {}}, {dir_ / "other", {}}}));
  EXPECT_EQ(status.code(), Code::kAccess);
  EXPECT_NE(status.message().find("%n"), std::string::npos) << status.message();
}

TEST_F(StoreTiers, MustBePrivateDirectories) {
  std::filesystem::create_directory(fast());
  std::filesystem::permissions(fast(), std::filesystem::perms::all);
  std::filesystem::create_directory(fast() + "/something");
  EXPECT_EQ(error(both()).code(), Code::kAccess);
  std::filesystem::remove(fast() + "/something");
  open(both());
  EXPECT_EQ(std::filesystem::status(fast()).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(StoreTiers, ComeToAStoreThatIsThere) {
  std::vector<Chunk> before;
  {
    const auto store = open_with_file(slow());
    EXPECT_FALSE(store->has_tiers());
    before = put(*store, 1);
  }
  const auto store = open(both());
  const auto after = put(*store, 2);
  EXPECT_TRUE(is_in(fast(), 2));
  EXPECT_EQ(read(*store, before), "");
  EXPECT_EQ(read(*store, after), "");
}

TEST_F(StoreTiers, LeaveWhenTheyAreNotNamedAnyMore) {
  std::vector<Chunk> what;
  {
    const auto store = open_with_file(both());
    what = put(*store, 1);
    commit(*store, what);
  }
  for (const bool create : {false, true}) {
    const auto store = open(slow(), create);
    EXPECT_EQ(read(*store, what), "");
    const auto tiers = store->tiers();
    ASSERT_TRUE(tiers.is_ok());
    ASSERT_EQ(tiers->size(), 2u);
    EXPECT_TRUE((*tiers)[0].is_leaving);
    EXPECT_EQ((*tiers)[0].directory, fast());
    EXPECT_TRUE(store->is_overfull());
  }
  const auto store = open(slow());
  put(*store, 2);
  EXPECT_TRUE(is_in(slow(), 2));
  ASSERT_TRUE(move_all(*store).is_ok());
  EXPECT_TRUE(is_in(slow(), 1) && !is_in(fast(), 1));
  EXPECT_FALSE(store->is_overfull());
  EXPECT_EQ(read(*store, what), "");
  std::filesystem::remove_all(fast());
  EXPECT_FALSE(open(slow())->has_tiers());
}

// As after a reboot.
TEST_F(StoreTiers, MayBeLost) {
  std::vector<Chunk> own, copies;
  Id128 attempt;
  {
    const auto store = open_with_file(both());
    own = put(*store, 1);
    copies = put(*store, 2, 100000, SegmentUse::kCopies);
    auto all = own;
    all.insert(all.end(), copies.begin(), copies.end());
    attempt = commit(*store, all);
  }
  std::filesystem::remove_all(fast());
  for (const bool create : {false, true}) {
    const auto store = open(both(), create);
    EXPECT_EQ(store->segment(identity_, 1).status().code(), Code::kNotFound);
    EXPECT_EQ(store->segment_size(identity_, 1).status().code(), Code::kNotFound);
    EXPECT_EQ(store->segments(identity_)->size(), 1u);
    EXPECT_EQ(read(*store, copies), "");
    EXPECT_EQ(store->newest(identity_)->attempt, attempt);
  }
  const auto store = open(both());
  const auto again = put(*store, 3);
  EXPECT_TRUE(is_in(fast(), 3));
  EXPECT_EQ(read(*store, again), "");
}

// While the store is open, as by who tidies up a memory file system.
TEST_F(StoreTiers, MayBeLostMeanwhile) {
  const auto store = open_with_file(both());
  put(*store, 1);
  std::filesystem::remove_all(fast());
  const auto free = store->free_bytes();
  EXPECT_TRUE(free.is_ok()) << free.status().message();
  EXPECT_FALSE(store->is_overfull());
  const auto again = put(*store, 2);
  EXPECT_TRUE(is_in(slow(), 2));
  EXPECT_EQ(read(*store, again), "");
  EXPECT_TRUE(move_all(*store).is_ok());
  EXPECT_TRUE(store->drop_file(identity_).is_ok());
}

// What a process left that died while it dropped a file, which was made again and dropped again.
TEST_F(StoreTiers, KeepNothingOfFilesThatAreGoneTwice) {
  for (const bool opens : {true, false}) {
    const auto store = open_with_file(both());
    put(*store, 1);
    std::filesystem::create_directories(Layout{fast()}.dropped(identity_) + "/segments");
    if (opens) {
      std::filesystem::remove_all(Layout{slow()}.file(identity_));
      open(both());
    } else {
      const auto dropped = store->drop_file(identity_);
      EXPECT_TRUE(dropped.is_ok()) << dropped.status().message();
    }
    EXPECT_TRUE(std::filesystem::is_empty(Layout{fast()}.files()));
  }
}

// What a process left that died while it dropped a file.
TEST_F(StoreTiers, KeepNothingOfFilesThatAreGone) {
  {
    const auto store = open_with_file(both());
    put(*store, 1);
  }
  std::filesystem::remove_all(Layout{slow()}.file(identity_));
  std::filesystem::create_directory(Layout{fast()}.dropped(random_id(random_)));
  open(both());
  EXPECT_TRUE(std::filesystem::is_empty(Layout{fast()}.files()));
}

// ---- Moving -------------------------------------------------------------------------------------

TEST_F(StoreTiers, MoveTheColdestDownUntilThereIsRoom) {
  std::vector<Chunk> all;
  {
    const auto store = open_with_file(both(20 * kMiB));
    for (std::uint64_t number = 1; number <= 5; ++number) {
      const auto more = put(*store, number, kMiB);
      all.insert(all.end(), more.begin(), more.end());
    }
    EXPECT_FALSE(store->is_overfull());
  }
  const auto store = open(both(6 * kMiB));
  EXPECT_TRUE(store->is_overfull());
  // What no generation names may be written to: it stays.
  ASSERT_TRUE(move_all(*store).is_ok());
  EXPECT_TRUE(is_in(fast(), 1));
  commit(*store, all);
  ASSERT_TRUE(move_all(*store).is_ok());
  EXPECT_FALSE(store->is_overfull());
  for (std::uint64_t number = 1; number <= 5; ++number) {
    EXPECT_EQ(is_in(fast(), number), number > 2) << number;
    EXPECT_EQ(is_in(slow(), number), number <= 2) << number;
  }
  EXPECT_FALSE(std::filesystem::exists(Layout{slow()}.moving()));
  EXPECT_EQ(read(*store, all), "");
  EXPECT_EQ(store->segments(identity_)->size(), 5u);
}

TEST_F(StoreTiers, KeepSegmentsShortThatMayMove) {
  const auto store = open_with_file(both(32 * kMiB));
  std::vector<Chunk> all;
  auto writer = store->create_segment(identity_, 1);
  ASSERT_TRUE(writer.is_ok());
  fill(**writer, 20 * kMiB, all);
  EXPECT_TRUE((*writer)->is_full());
  EXPECT_GE((*writer)->size(), 2 * kMiB);
  EXPECT_LT((*writer)->size(), 4 * kMiB);
}

TEST_F(StoreTiers, AreReadWhileSegmentsMove) {
  std::vector<Chunk> what;
  Id128 attempt;
  const auto reader = open_with_file(both());
  what = put(*reader, 1, 5 * kMiB);
  attempt = commit(*reader, what);
  auto held = *reader->segment(identity_, 1);
  const auto store = open(slow());
  const auto mover = store->move_down();
  ASSERT_TRUE(mover.is_ok());
  EXPECT_EQ(reader->move_down().status().code(), Code::kFileInUse);
  EXPECT_EQ(open(both())->move_down().status().code(), Code::kFileInUse);
  for (bool done = false; !done;) {
    const auto moved = (*mover)->step();
    ASSERT_TRUE(moved.is_ok()) << moved.status().message();
    done = moved->done;
    EXPECT_EQ(read(*reader, what), "");
    EXPECT_EQ(read(*open(both(), false), what), "");
  }
  EXPECT_FALSE(is_in(fast(), 1));
  Bytes out(what[0].data.size());
  EXPECT_TRUE(held->read(what[0].location, what[0].fingerprint, out).is_ok());
  const auto now = *reader->segment(identity_, 1);
  EXPECT_NE(now, held);
  EXPECT_EQ(now, *reader->segment(identity_, 1));
  held.reset();
  EXPECT_EQ(test::open_below(fast()), 0u);
}

// What has moved down is free above, whoever has read it there, and does nothing since.
TEST_F(StoreTiers, KeepNothingOpenThatMayMove) {
  const auto reader = open_with_file(both());
  const auto above = put(*reader, 1);
  const auto below = put(*reader, 2, 100000, SegmentUse::kCopies);
  EXPECT_EQ(read(*reader, above), "");
  EXPECT_EQ(read(*reader, below), "");
  EXPECT_EQ(test::open_below(fast()), 0u);
  EXPECT_EQ(test::open_below(Layout{slow()}.segments(identity_)), 1u);
}

TEST_F(StoreTiers, LendASegmentWhereItIsByNow) {
  use_system(before_);  // of what is not the kernel's nothing is lent
  const auto store = open_with_file(both());
  const auto what = put(*store, 1);
  commit(*store, what);
  EXPECT_EQ(store->lend_segment(identity_, 7).status().code(), Code::kNotFound);
  for (const bool is_above : {true, false}) {
    auto loan = store->lend_segment(identity_, 1);
    ASSERT_TRUE(loan.is_ok()) << loan.status().message();
    EXPECT_EQ(loan->may_move, is_above);
    const auto reader = std::move(loan->segment).open("lent");
    ASSERT_TRUE(reader.is_ok());
    Bytes out(what[0].data.size());
    EXPECT_TRUE((*reader)->read(what[0].location, what[0].fingerprint, out).is_ok());
    EXPECT_EQ(test::open_below(fast()), is_above ? 1u : 0u);
    if (is_above) {
      ASSERT_TRUE(move_all(*open(slow())).is_ok());
    }
  }
}

TEST_F(StoreTiers, MoveAllNamesOfASegment) {
  const auto store = open_with_file(both());
  const auto what = put(*store, 1, kMiB);
  const Id128 attempt = commit(*store, what);
  const Id128 other = random_id(random_);
  ASSERT_TRUE(store->create_file(other, "/scratch/g").is_ok());
  ASSERT_TRUE(store->share_generation(identity_, attempt, other).is_ok());
  EXPECT_TRUE(is_in(fast(), 1, other));
  EXPECT_TRUE((*store->segments(other))[0].is_shared);
  const auto emptied = open(slow());
  ASSERT_TRUE(move_all(*emptied).is_ok());
  EXPECT_TRUE(is_in(slow(), 1) && is_in(slow(), 1, other));
  EXPECT_FALSE(is_in(fast(), 1) || is_in(fast(), 1, other));
  EXPECT_EQ(read(*emptied, identity_, what), "");
  EXPECT_EQ(read(*emptied, other, what), "");
  const auto shared = (*emptied->segments(other))[0];
  EXPECT_TRUE(shared.is_shared);
  EXPECT_EQ(shared.content, (*emptied->segments(identity_))[0].content);
  // And from below it is shared as well.
  const Id128 third = random_id(random_);
  ASSERT_TRUE(emptied->create_file(third, "/scratch/h").is_ok());
  ASSERT_TRUE(emptied->share_generation(identity_, attempt, third).is_ok());
  EXPECT_TRUE(is_in(slow(), 1, third));
  ASSERT_TRUE(emptied->remove_segment(identity_, 1).is_ok());
  EXPECT_EQ(read(*emptied, third, what), "");
}

// What a killed process left: some names are below, and the copy of the next segment half-way.
TEST_F(StoreTiers, GoOnWithWhatWasMovedInPart) {
  std::vector<Chunk> what;
  const Id128 other = random_id(random_);
  {
    const auto store = open_with_file(both());
    what = put(*store, 1, kMiB);
    const Id128 attempt = commit(*store, what);
    ASSERT_TRUE(store->create_file(other, "/scratch/g").is_ok());
    ASSERT_TRUE(store->share_generation(identity_, attempt, other).is_ok());
  }
  std::filesystem::copy_file(Layout{fast()}.segment(identity_, 1),
                             Layout{slow()}.segment(identity_, 1));
  std::filesystem::remove(Layout{fast()}.segment(identity_, 1));
  std::filesystem::create_hard_link(Layout{fast()}.segment(other, 1),
                                    Layout{fast()}.segment(identity_, 1));
  std::filesystem::copy_file(Layout{fast()}.segment(other, 1), Layout{slow()}.moving());
  const auto store = open(slow());
  EXPECT_FALSE(std::filesystem::exists(Layout{slow()}.moving()));
  EXPECT_EQ(store->segments(identity_)->size(), 1u);
  ASSERT_TRUE(move_all(*store).is_ok());
  EXPECT_FALSE(is_in(fast(), 1) || is_in(fast(), 1, other));
  EXPECT_EQ(read(*store, identity_, what), "");
  EXPECT_EQ(read(*store, other, what), "");
  EXPECT_TRUE((*store->segments(other))[0].is_shared);
}

TEST_F(StoreTiers, LeaveASegmentThatIsWrittenToWhereItIs) {
  const auto store = open_with_file(both());
  std::vector<Chunk> what;
  auto writer = store->create_segment(identity_, 1);
  ASSERT_TRUE(writer.is_ok());
  fill(**writer, kMiB, what);
  ASSERT_TRUE((*writer)->flush().is_ok());
  commit(*store, what);
  const auto emptied = open(slow());
  ASSERT_TRUE(move_all(*emptied).is_ok());
  EXPECT_TRUE(is_in(fast(), 1));
  fill(**writer, 2 * kMiB, what);
  ASSERT_TRUE((*writer)->flush().is_ok());
  EXPECT_EQ(read(*store, what), "");
  writer->reset();
  ASSERT_TRUE(move_all(*emptied).is_ok());
  EXPECT_FALSE(is_in(fast(), 1));
  EXPECT_EQ(read(*store, what), "");
}

// An older copy, from before a chunk was made unreadable, by a process that died.
TEST_F(StoreTiers, DoNotTakeAnOldCopyForWhatIsAbove) {
  const auto store = open_with_file(both());
  const auto what = put(*store, 1);
  commit(*store, what);
  const std::string old = dir_ / "old";
  std::filesystem::copy_file(Layout{fast()}.segment(identity_, 1), old);
  ASSERT_TRUE(store->spoil_chunk(identity_, what[0].location).is_ok());
  std::filesystem::last_write_time(old,
                                   std::filesystem::last_write_time(old) - std::chrono::hours(1));
  std::filesystem::rename(old, Layout{slow()}.segment(identity_, 1));
  const auto emptied = open(slow());
  ASSERT_TRUE(move_all(*emptied).is_ok());
  EXPECT_FALSE(is_in(fast(), 1));
  Bytes out(what[0].data.size());
  const auto reader = emptied->segment(identity_, 1);
  EXPECT_EQ((*reader)->read(what[0].location, what[0].fingerprint, out).code(), Code::kCorrupt);
}

// A chunk that is made unreadable meanwhile is so wherever its segment is afterwards.
TEST_F(StoreTiers, MoveNoChunkThatWasSpoiledSince) {
  const auto store = open_with_file(both());
  const auto what = put(*store, 1, 5 * kMiB);
  commit(*store, what);
  const auto emptied = open(slow());
  {
    const auto mover = emptied->move_down();
    ASSERT_TRUE(mover.is_ok());
    ASSERT_EQ((*mover)->step()->bytes, 4 * kMiB);
    ASSERT_TRUE(store->spoil_chunk(identity_, what[0].location).is_ok());
    for (bool done = false; !done;) done = (*mover)->step()->done;
  }
  const auto is_spoiled = [&] {
    const auto reader = open(both())->segment(identity_, 1);
    Bytes out(what[0].data.size());
    return (*reader)->read(what[0].location, what[0].fingerprint, out).code() == Code::kCorrupt;
  };
  EXPECT_TRUE(is_spoiled());
  ASSERT_TRUE(move_all(*emptied).is_ok());
  EXPECT_TRUE(is_in(slow(), 1) && !is_in(fast(), 1));
  EXPECT_TRUE(is_spoiled());
}

TEST_F(StoreTiers, StayWhereTheyAreWithoutRoomBelow) {
  const auto store = open_with_file(both());
  const auto what = put(*store, 1, 3 * kMiB);
  commit(*store, what);
  const auto small =
      open(StorePlace(std::vector<StoreTier>{{fast(), 0}, {slow(), std::uint64_t{kMiB}}}));
  EXPECT_TRUE(small->is_overfull());
  ASSERT_TRUE(move_all(*small).is_ok());
  EXPECT_TRUE(is_in(fast(), 1));
  EXPECT_EQ(read(*small, what), "");
}

TEST_F(StoreTiers, MayBeThree) {
  const StorePlace three(
      std::vector<StoreTier>{{fast(), 0}, {dir_ / "middle", 20 * kMiB}, {slow(), {}}});
  std::vector<Chunk> what;
  {
    const auto store = open_with_file(both());
    what = put(*store, 1, 3 * kMiB);
    commit(*store, what);
  }
  const auto store = open(three);
  ASSERT_TRUE(move_all(*store).is_ok());
  EXPECT_TRUE(is_in(dir_ / "middle", 1));
  const auto copies = put(*store, 2, kMiB, SegmentUse::kCopies);
  EXPECT_TRUE(is_in(dir_ / "middle", 2));
  EXPECT_EQ(read(*store, what), "");
  const auto without = open(both());
  EXPECT_EQ(read(*without, what), "");
  ASSERT_TRUE(move_all(*without).is_ok());
  EXPECT_TRUE(is_in(slow(), 1));
  EXPECT_EQ(read(*without, what), "");
}

// The tier above the one to which a process that died was moving something is not named any more.
TEST_F(StoreTiers, KeepNoHalfCopyInTheFirst) {
  open(both());
  std::filesystem::copy_file(Layout{fast()}.tier_file(), Layout{fast()}.moving());
  open(both());
  EXPECT_FALSE(std::filesystem::exists(Layout{fast()}.moving()));
}

// The list is gone, or who made the tier died before it was in it: then nothing was in the tier.
TEST_F(StoreTiers, AreEnteredInTheListByWhoComesNext) {
  std::vector<Chunk> what;
  {
    const auto store = open_with_file(both());
    what = put(*store, 1);
  }
  std::filesystem::remove(Layout{slow()}.tiers_file());
  EXPECT_EQ(read(*open(both(), false), what), "");
  EXPECT_FALSE(std::filesystem::exists(Layout{slow()}.tiers_file()));
  EXPECT_EQ(read(*open(both()), what), "");
  EXPECT_TRUE((*open(slow())->tiers())[0].is_leaving);
}

TEST_F(StoreTiers, AreMadeByManyAtOnce) {
  constexpr int kOpeners = 8;
  for (const bool is_back : {false, true}) {
    // A new store; and one that has lost its faster tier.
    if (is_back) std::filesystem::remove_all(fast());
    std::vector<std::string> errors(kOpeners);
    std::vector<Id128> ids(kOpeners);
    std::vector<std::thread> openers;
    for (int i = 0; i < kOpeners; ++i) {
      openers.emplace_back([&, i] {
        const auto store = Store::open(both(), true);
        if (!store.is_ok()) {
          errors[i] = store.status().message();
        } else {
          ids[i] = (*store)->uuid();
          if ((*store)->tiers()->size() != 2) errors[i] = "not two tiers";
        }
      });
    }
    for (std::thread& opener : openers) opener.join();
    for (int i = 0; i < kOpeners; ++i) {
      EXPECT_EQ(errors[i], "");
      EXPECT_EQ(ids[i], ids[0]);
    }
    EXPECT_EQ(open(slow())->tiers()->size(), 2u);
  }
}

// A tier that was away, and in whose place was another meanwhile, has what the store misses.
TEST_F(StoreTiers, ComeBack) {
  std::vector<Chunk> before;
  {
    const auto store = open_with_file(both());
    before = put(*store, 1);
  }
  std::filesystem::rename(fast(), dir_ / "away");
  std::vector<Chunk> meanwhile;
  {
    const auto store = open(both());
    meanwhile = put(*store, 2);
    EXPECT_NE(read(*store, before), "");
    EXPECT_EQ(read(*store, meanwhile), "");
  }
  std::filesystem::remove_all(fast());
  std::filesystem::rename(dir_ / "away", fast());
  const auto store = open(both());
  EXPECT_EQ(read(*store, before), "");
  EXPECT_NE(read(*store, meanwhile), "");
  const auto after = put(*store, 3);
  EXPECT_EQ(read(*store, after), "");
}

// A tier is brought back as it was some time ago: with the beginning of a segment that has been
// written on, and has moved down since.
TEST_F(StoreTiers, MoveNoBeginningInThePlaceOfTheWhole) {
  std::vector<Chunk> what;
  {
    const auto store = open_with_file(both());
    auto writer = store->create_segment(identity_, 1);
    ASSERT_TRUE(writer.is_ok());
    fill(**writer, 200000, what);
    ASSERT_TRUE((*writer)->flush().is_ok());
    std::filesystem::copy(fast(), dir_ / "copy", std::filesystem::copy_options::recursive);
    fill(**writer, 600000, what);
    ASSERT_TRUE((*writer)->flush().is_ok());
    writer->reset();
    commit(*store, what);
  }
  ASSERT_TRUE(move_all(*open(slow())).is_ok());
  std::filesystem::remove_all(fast());
  std::filesystem::rename(dir_ / "copy", fast());
  const auto store = open(slow());
  const auto mover = store->move_down();
  ASSERT_TRUE(mover.is_ok());
  while (!(*mover)->step()->done) continue;
  const auto stays = (*mover)->stays();
  ASSERT_EQ(stays.size(), 1u);
  EXPECT_EQ(stays[0].reason, Store::Mover::Reason::kOtherBelow);
  EXPECT_EQ(stays[0].directory, fast());
  std::filesystem::remove_all(fast());
  EXPECT_EQ(read(*open(slow()), what), "");
}

TEST_F(StoreTiers, SayWhatStaysInOneThatIsLeaving) {
  using Reason = Store::Mover::Reason;
  const auto store = open_with_file(both());
  std::vector<Chunk> written;
  auto writer = store->create_segment(identity_, 1);
  ASSERT_TRUE(writer.is_ok());
  fill(**writer, kMiB, written);
  ASSERT_TRUE((*writer)->flush().is_ok());
  commit(*store, written);
  put(*store, 2);
  const auto stays_in = [&](const StorePlace& place) {
    std::map<Reason, std::uint64_t> segments;
    const auto emptied = open(place);
    const auto mover = emptied->move_down();
    EXPECT_TRUE(mover.is_ok());
    while (!(*mover)->step()->done) continue;
    for (const Store::Mover::Stays& one : (*mover)->stays()) {
      EXPECT_EQ(one.directory, fast());
      EXPECT_GT(one.bytes, 0u);
      segments[one.reason] += one.segments;
    }
    return segments;
  };
  const StorePlace small(std::vector<StoreTier>{{slow(), std::uint64_t{kMiB / 2}}});
  using Segments = std::map<Reason, std::uint64_t>;
  EXPECT_EQ(stays_in(slow()), (Segments{{Reason::kNotCommitted, 1}, {Reason::kOpen, 1}}));
  writer->reset();
  EXPECT_EQ(stays_in(small), (Segments{{Reason::kNotCommitted, 1}, {Reason::kNoRoom, 1}}));
  EXPECT_EQ(stays_in(slow()), (Segments{{Reason::kNotCommitted, 1}}));
}

TEST_F(StoreTiers, AreNotTakenForADirectoryWithColonsAndEqualsSigns) {
  for (const std::string& name : {slow() + "=8MiB", fast() + ":" + slow()}) {
    const StorePlace tiers = hints::expand_store(name, "n0");
    ASSERT_TRUE(open(tiers));
    std::filesystem::create_directories(name);
    for (const bool create : {true, false}) {
      const Status status = error(tiers, create);
      EXPECT_EQ(status.code(), Code::kAccess);
      EXPECT_NE(status.message().find(name + " is there"), std::string::npos) << status.message();
      EXPECT_NE(status.message().find("write %: and %="), std::string::npos) << status.message();
    }
    const auto one = open(hints::expand_store(StorePlace(name).text(), "n0"));
    EXPECT_EQ(one->directory(), name);
    // A plain file is in nobody's way.
    std::filesystem::remove_all(name);
    std::filesystem::create_directories(std::filesystem::path(name).parent_path());
    std::ofstream(name).put('x');
    EXPECT_TRUE(open(tiers));
  }
}

// A tier comes back that was away while a number that a job had used, which died, was given anew.
TEST_F(StoreTiers, MoveNothingInThePlaceOfAnotherSegment) {
  {
    const auto store = open_with_file(both());
    put(*store, 2, 400000);
  }
  std::filesystem::rename(fast(), dir_ / "away");
  std::vector<Chunk> what;
  {
    const auto store = open(both());
    what = put(*store, 2, 100000, SegmentUse::kCopies);
    commit(*store, what);
  }
  std::filesystem::remove_all(fast());
  std::filesystem::rename(dir_ / "away", fast());
  ASSERT_TRUE(move_all(*open(slow())).is_ok());
  EXPECT_TRUE(is_in(fast(), 2));
  std::filesystem::remove_all(fast());
  EXPECT_EQ(read(*open(slow()), what), "");
}

}  // namespace
}  // namespace dedup::store
