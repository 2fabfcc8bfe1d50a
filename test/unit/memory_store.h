// Stores in memory: the second implementation of store::Store, for tests of the rooms above, which
// need nothing but the interface, and so that it stays one (store_contract_test.cc).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "store/store.h"

namespace dedup::test {

struct MemoryDisk;

// By directory. All who open one directory see the same store. One thread.
class MemoryStores {
 public:
  // As Store::open, but for what directories are and may be.
  Result<std::unique_ptr<store::Store>> open(const StorePlace& place, bool create);
  store::StoreOpener opener();
  // Of each store: what is taken may not become more. Nothing is freed by it.
  void limit_space(std::uint64_t bytes);

 private:
  std::map<std::string, std::shared_ptr<MemoryDisk>> disks_;
  std::uint64_t limit_ = std::uint64_t{1} << 40;
};

}  // namespace dedup::test
