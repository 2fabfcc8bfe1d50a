// A file to which nobody of the job can write: it is what its committed generation is. So what this
// process has found out of it, what it consists of and where its chunks are, stays true, and nobody
// need be asked again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/lru.h"
#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/base_recipe.h"
#include "engine/protocol/writer_watch.h"
#include "plan/block.h"
#include "service/client.h"
#include "service/known_places.h"

namespace dedup::engine {

// Of one file, and of the generation that was last asked for. About 10 MiB at most. Thread-safe.
class Settled {
 public:
  // `client` must outlive it.
  Settled(service::Client& client, const Id128& identity);

  // Whether nobody can write and `attempt` is the generation that is committed. Asks no other node,
  // and its own the first time only.
  bool is(const Id128& attempt);

  // As BaseRecipe::read(), of that generation, which `recipe` is of. `blocks` ascend. More blocks
  // may follow those: who goes on in the file gets what comes next, of blocks below `end`, with it.
  Result<std::vector<std::shared_ptr<const Block>>> read(const BaseRecipe& recipe,
                                                         const Id128& attempt,
                                                         std::vector<std::uint64_t> blocks,
                                                         std::uint64_t end);
  service::KnownPlaces& places() { return places_; }

 private:
  static constexpr std::size_t kBytes = std::size_t{8} << 20;  // of blocks
  static constexpr std::uint64_t kAhead = 7;                   // blocks

  const Id128 identity_;
  const std::shared_ptr<WriterWatch> watch_;
  std::mutex mutex_;
  bool may_write_ = false;  // somebody, until all have closed the file
  std::optional<WriterWatch::Watched> watched_;
  Id128 attempt_;  // that blocks_ and places_ are of
  Lru<std::uint64_t, std::shared_ptr<const Block>> blocks_{kBytes};
  service::KnownPlaces places_;
};

}  // namespace dedup::engine
