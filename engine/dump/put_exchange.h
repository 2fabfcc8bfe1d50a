// The exchange by MPI_Put into the receivers' memory, in rounds (dedup_exchange=put).
#pragma once

#include <cstddef>
#include <memory>

#include "engine/dump/exchange.h"

namespace dedup::engine {

// See Exchange::create().
std::unique_ptr<Exchange> make_put_exchange(const Topology& topology, std::size_t window,
                                            std::size_t staging);

}  // namespace dedup::engine
