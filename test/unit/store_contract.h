// A store of each kind that there is, for tests of what all of them promise.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/hasher.h"
#include "store/store.h"
#include "store/system.h"
#include "test/hooks/forwarding_system.h"
#include "test/hooks/names.h"
#include "test/unit/memory_store.h"
#include "test/unit/store_helpers.h"
#include "test/unit/temp_dir.h"

namespace dedup::store::contract {

using test::Random;
using test::random_bytes;
using test::random_fingerprint;
using test::random_id;

// A file system that may be full: then nothing gets space any more.
class FullSystem final : public ForwardingSystem {
 public:
  using ForwardingSystem::ForwardingSystem;
  int open(const char* path, int flags, mode_t mode) override {
    return is_full && (flags & O_CREAT) != 0 ? refuse() : ForwardingSystem::open(path, flags, mode);
  }
  ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) override {
    return is_full ? refuse() : ForwardingSystem::pwritev(fd, parts, count, offset);
  }
  int allocate(int fd, off_t offset, off_t bytes) override {
    return is_full ? refuse() : ForwardingSystem::allocate(fd, offset, bytes);
  }
  int reserve(int fd, off_t offset, off_t bytes) override {
    return is_full ? refuse() : ForwardingSystem::reserve(fd, offset, bytes);
  }
  int mkdir(const char* path, mode_t mode) override {
    return is_full ? refuse() : ForwardingSystem::mkdir(path, mode);
  }

  bool is_full = false;

 private:
  static int refuse() {
    errno = ENOSPC;
    return -1;
  }
};

struct InFiles {
  static constexpr const char* kName = "Files";
  ~InFiles() { use_system(before); }
  Result<std::unique_ptr<Store>> open(bool create) { return Store::open(place(), create); }
  StorePlace place() const { return directory / "store"; }
  void set_full(bool is_full) { disk.is_full = is_full; }
  test::TempDir directory;
  FullSystem disk{kernel()};
  System& before = use_system(disk);
};

// Own segments in one directory, everything else in another.
struct InTiers : InFiles {
  static constexpr const char* kName = "Tiers";
  Result<std::unique_ptr<Store>> open(bool create) {
    const StoreTier fast{directory / "fast", std::nullopt};
    return Store::open(StorePlace(std::vector<StoreTier>{fast, place().tiers()[0]}), create);
  }
};

struct InMemory {
  static constexpr const char* kName = "Memory";
  Result<std::unique_ptr<Store>> open(bool create) { return stores.open("/store", create); }
  void set_full(bool is_full) { stores.limit_space(is_full ? 0 : std::uint64_t{1} << 40); }
  test::MemoryStores stores;
};

struct Chunk {
  Fingerprint fingerprint;
  Bytes data;
  ChunkLocation location;
};

template <typename Kind>
class StoreContract : public testing::Test {
 protected:
  StoreContract() {
    EXPECT_EQ(kind_.open(false).status().code(), Code::kNoSuchFile);
    store_ = open();
    EXPECT_TRUE(store_->create_file(identity_, kPath).is_ok());
  }

  std::unique_ptr<Store> open() {
    auto opened = kind_.open(true);
    EXPECT_TRUE(opened.is_ok()) << opened.status().message();
    return std::move(*opened);
  }

  // Of these lengths; every other one, or all, without a header, whose numbers go on.
  std::vector<Chunk> chunks(const std::vector<std::size_t>& lengths, bool all_single = false) {
    std::vector<Chunk> out;
    for (const std::size_t length : lengths) {
      Chunk chunk{random_fingerprint(random_), random_bytes(random_, length), {}};
      if (all_single || out.size() % 2 == 1) {
        chunk.fingerprint = test::single_name(chunk.data, ++number_);
      } else {
        chunk.fingerprint = test::content_name(chunk.data);
      }
      out.push_back(std::move(chunk));
    }
    return out;
  }
  void put(Store& store, std::uint64_t segment, std::vector<Chunk>& what) {
    auto writer = store.create_segment(identity_, segment);
    ASSERT_TRUE(writer.is_ok()) << writer.status().message();
    EXPECT_EQ((*writer)->number(), segment);
    std::vector<SegmentChunk> all;
    for (const Chunk& chunk : what) all.push_back({chunk.fingerprint, chunk.data});
    std::vector<ChunkLocation> locations(all.size());
    ASSERT_TRUE((*writer)->append(all, locations).is_ok());
    ASSERT_TRUE((*writer)->write_out().is_ok());
    for (std::size_t i = 0; i < what.size(); ++i) what[i].location = locations[i];
    const auto size = store.segment_size(identity_, segment);
    ASSERT_TRUE(size.is_ok());
    EXPECT_EQ(*size, (*writer)->size());
  }
  static Status get(const Store& store, const Id128& identity, const Chunk& chunk, Bytes& out) {
    DEDUP_ASSIGN(const auto reader, store.segment(identity, chunk.location.segment));
    out.assign(chunk.data.size(), std::byte{0});
    return reader->read(chunk.location, chunk.fingerprint, out);
  }
  Status write_index(const Id128& attempt, const std::vector<Chunk>& what,
                     const IndexBase& base = {}) {
    return write_index(identity_, attempt, what, base);
  }
  Status write_index(const Id128& identity, const Id128& attempt, const std::vector<Chunk>& what,
                     const IndexBase& base) {
    std::vector<IndexEntry> entries;
    for (const Chunk& chunk : what) entries.push_back({chunk.fingerprint, chunk.location});
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.fingerprint < b.fingerprint; });
    DEDUP_ASSIGN(const auto writer, store_->create_index(identity, attempt, base));
    for (const IndexEntry& entry : entries) DEDUP_TRY(writer->add(entry));
    return writer->finish(true);
  }
  CommitRecord record(std::uint64_t number, const Id128& parent = {}) {
    CommitRecord r;
    r.identity = identity_;
    r.number = number;
    r.attempt = random_id(random_);
    r.parent = parent;
    r.path = kPath;
    r.size = 1000;
    r.replication = 2;
    r.chunk_size = 4096;
    r.fingerprint = "sha256";
    r.stores = {{store_->uuid(), "n0"}};
    r.lineage = {{session_, number}};
    return r;
  }
  // A generation of these chunks.
  CommitRecord commit(std::uint64_t number, const std::vector<Chunk>& what,
                      const Id128& parent = {}) {
    const CommitRecord r = record(number, parent);
    EXPECT_TRUE(store_->begin_attempt(identity_, r.attempt).is_ok());
    EXPECT_TRUE(write_index(r.attempt, what).is_ok());
    EXPECT_TRUE(store_->prepare(r, true).is_ok());
    EXPECT_TRUE(store_->commit(identity_, r.attempt, true).is_ok());
    return r;
  }

  static constexpr const char* kPath = "/scratch/run/ckpt.h5";
  Random random_{7};
  std::uint64_t number_ = 100;
  Kind kind_;
  std::unique_ptr<Store> store_;
  const Id128 identity_ = random_id(random_);
  const Id128 session_ = random_id(random_);
};

struct KindNames {
  template <typename Kind>
  static std::string GetName(int) {
    return Kind::kName;
  }
};
using Kinds = testing::Types<InFiles, InTiers, InMemory>;

}  // namespace dedup::store::contract
