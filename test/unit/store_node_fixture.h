// One node as a store node, and a job of one file on it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "service/messages/store_node.h"
#include "store/files/layout.h"
#include "test/unit/memory_store.h"
#include "test/unit/store_job.h"
#include "test/unit/temp_dir.h"

namespace dedup::service {

using test::TempDir;

#define ASSERT_OK(expression)                                           \
  do {                                                                  \
    const auto& assert_ok_result = (expression);                        \
    ASSERT_TRUE(assert_ok_result.is_ok()) << text_of(assert_ok_result); \
  } while (false)
#define EXPECT_CODE(expression, expected)                           \
  do {                                                              \
    const auto& expect_code_result = (expression);                  \
    EXPECT_EQ(status_of(expect_code_result).code(), Code::expected) \
        << text_of(expect_code_result);                             \
  } while (false)

inline const Status& status_of(const Status& status) {
  return status;
}
template <typename T>
const Status& status_of(const Result<T>& result) {
  return result.status();
}
template <typename T>
std::string text_of(const T& result) {
  return status_of(result).message();
}

// In a directory of its own.
class ServiceStoreNode : public testing::Test, protected StoreJob {
 protected:
  explicit ServiceStoreNode(store::StoreOpener opener = store::Store::open)
      : ServiceStoreNode(std::make_unique<TempDir>(), std::move(opener)) {}

  std::unique_ptr<TempDir> directory_;
  const TempDir& temp_ = *directory_;

  std::string directory() const { return temp_ / "store-n1"; }
  std::string file_directory() const { return directory() + "/files/" + identity_.hex(); }
  std::set<std::string> files_in(const std::string& folder) const {
    std::set<std::string> out;
    if (!std::filesystem::exists(file_directory() + "/" + folder)) return out;
    for (const auto& entry : std::filesystem::directory_iterator(file_directory() + "/" + folder)) {
      out.insert(entry.path().filename().string());
    }
    return out;
  }
  // Files of the store that this process has open, as the system names them.
  std::size_t open_files(const std::string& ending = "") const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string name = std::filesystem::read_symlink(entry.path(), gone).string();
      if (name.starts_with(directory()) && name.ends_with(ending)) ++count;
    }
    return count;
  }
  std::string segment_path(std::uint64_t number) const {
    return store::Layout{directory()}.segment(identity_, number);
  }

  void expect_held(const std::vector<Chunk>& what) {
    const auto reply = get_chunks(*node_, identity_, what);
    ASSERT_OK(reply);
    ASSERT_EQ(reply->size(), what.size());
    for (std::size_t i = 0; i < what.size(); ++i) {
      EXPECT_EQ((*reply)[i], what[i].data) << "chunk " << i;
    }
    const auto held = node_->on(look_at(identity_, names(what)));
    ASSERT_OK(held);
    EXPECT_EQ(held_of(*held), std::vector<std::uint8_t>(what.size(), 1));
  }
  void expect_absent(const std::vector<Chunk>& what) {
    const auto reply = get_chunks(*node_, identity_, what);
    ASSERT_OK(reply);
    for (const Bytes& chunk : *reply) EXPECT_TRUE(chunk.empty());
    const auto held = node_->on(look_at(identity_, names(what)));
    ASSERT_OK(held);
    EXPECT_EQ(held_of(*held), std::vector<std::uint8_t>(what.size(), 0));
    const auto located = node_->on(Locate{identity_, names(what)});
    ASSERT_OK(located);
    for (const auto& location : located->locations) EXPECT_EQ(location.length, 0u);
  }
  void damage(const std::string& path, std::uint64_t offset) {
    Bytes bytes = test::get_file(path);
    ASSERT_LT(offset, bytes.size());
    bytes[offset] ^= std::byte{1};
    test::put_file(path, bytes);
  }

 private:
  ServiceStoreNode(std::unique_ptr<TempDir> directory, store::StoreOpener opener)
      : StoreJob(*directory / "store-%n", "/scratch/run/ckpt.h5", std::move(opener)),
        directory_(std::move(directory)) {}
};

// The same where the store is in files, and where it is in memory: what a node does needs no more
// than store::Store promises. For tests that look at no file.
struct HasMemoryStores {
  test::MemoryStores memory_stores_;
};
class ServiceStoreNodeOnAny : protected HasMemoryStores,
                              public ServiceStoreNode,
                              public testing::WithParamInterface<bool> {
 protected:
  ServiceStoreNodeOnAny()
      : ServiceStoreNode(GetParam() ? memory_stores_.opener()
                                    : store::StoreOpener(store::Store::open)) {}
};

inline std::string name_of_kind(const testing::TestParamInfo<bool>& in_memory) {
  return in_memory.param ? "Memory" : "Files";
}

}  // namespace dedup::service
