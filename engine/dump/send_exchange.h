// The exchange by messages, from where the chunks are (dedup_exchange=send).
#pragma once

#include <cstddef>
#include <memory>

#include "engine/dump/exchange.h"

namespace dedup::engine {

// See Exchange::create().
std::unique_ptr<Exchange> make_send_exchange(const Topology& topology, std::size_t window,
                                             std::size_t staging);

}  // namespace dedup::engine
