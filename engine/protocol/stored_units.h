// Units of stripes as they are in the nodes' stores, of an attempt at a commit
// (service/stripe_units.h).
#pragma once

#include <span>

#include "base/types.h"
#include "engine/protocol/chunk_source.h"
#include "engine/protocol/unit_source.h"
#include "service/client.h"

namespace dedup::engine {

class StoredUnits : public UnitSource {
 public:
  // Both must outlive it.
  StoredUnits(service::Client& client, const ChunkSource& source, const Id128& identity,
              const Id128& attempt)
      : client_(client), source_(source), identity_(identity), attempt_(attempt) {}

  void list(std::span<MovedUnit> units) override;
  void read(std::span<MovedUnit> units) override;

 private:
  service::Client& client_;
  const ChunkSource& source_;
  Id128 identity_;
  Id128 attempt_;
};

}  // namespace dedup::engine
