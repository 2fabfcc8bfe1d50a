// Chunks that this node's store has and that were single when they were stored: they have no strong
// fingerprint, so a new chunk is compared with them byte by byte.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/hasher.h"
#include "base/status.h"
#include "service/client.h"

namespace dedup::engine {

class SingleChunks {
 public:
  SingleChunks(service::Client& client, const Id128& identity)
      : client_(client), identity_(identity) {}

  // Of each chunk: the name under which the store has it; whether there may be an equal one under a
  // strong fingerprint, or of the same fast hash under a name that is not its own.
  struct Known {
    std::vector<std::optional<Fingerprint>> names;
    std::vector<std::uint8_t> alike;
  };

  // Asks this node's service, 1 MiB of hashes at once, and reads what has to be compared, 4 MiB at
  // once. `data(i)`: the bytes of chunk i.
  Result<Known> find(std::span<const FastHash> hashes,
                     const std::function<std::span<const std::byte>(std::size_t)>& data);

 private:
  struct Candidate {
    std::size_t chunk = 0;
    Fingerprint name;
  };
  Status compare(std::span<const Candidate> candidates,
                 const std::function<std::span<const std::byte>(std::size_t)>& data, Known& known);

  service::Client& client_;
  Id128 identity_;
};

}  // namespace dedup::engine
