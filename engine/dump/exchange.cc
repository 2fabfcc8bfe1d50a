#include "engine/dump/exchange.h"

#include <algorithm>

#include "engine/dump/put_exchange.h"
#include "engine/dump/send_exchange.h"

namespace dedup::engine {

std::unique_ptr<Exchange> Exchange::create(hints::Exchange kind, const Topology& topology,
                                           std::size_t window, std::size_t staging) {
  // Counts of MPI are int.
  window = std::min(window, std::size_t{1} << 30);
  staging = std::min(staging, std::size_t{1} << 28);
  if (kind == hints::Exchange::kSend) {
    return make_send_exchange(topology, window, staging);
  }
  return make_put_exchange(topology, window, staging);
}

}  // namespace dedup::engine
