// A committed generation of a node's store that a process reads which is not one of the job's
// ranks.
#pragma once

#include <memory>

#include "base/status.h"
#include "base/types.h"
#include "service/file_chunks.h"
#include "service/readable_file.h"
#include "store/store.h"

namespace dedup::service {

// Not removed as long as the object lives, whatever is committed meanwhile. One thread.
class HeldGeneration {
 public:
  // kNotFound if the store does not have it, kFileInUse if it is just being removed.
  static Result<HeldGeneration> of(std::shared_ptr<store::Store> store, const Id128& identity,
                                   const Id128& attempt) {
    DEDUP_ASSIGN(auto lock, store->lock_generation(identity, attempt));
    return HeldGeneration(std::move(store), identity, attempt, std::move(lock));
  }

  ReadableFile readable() { return {*store_, identity_, *chunks_}; }

 private:
  HeldGeneration(std::shared_ptr<store::Store> store, const Id128& identity, const Id128& attempt,
                 std::unique_ptr<store::Store::Lock> lock)
      : store_(std::move(store)),
        identity_(identity),
        lock_(std::move(lock)),
        chunks_(std::make_unique<FileChunks>(*store_, identity, attempt)) {}

  std::shared_ptr<store::Store> store_;
  Id128 identity_;
  std::unique_ptr<store::Store::Lock> lock_;
  std::unique_ptr<FileChunks> chunks_;
};

}  // namespace dedup::service
