// Whether nodes of the job are lost.
#pragma once

#include "base/ranks.h"
#include "base/status.h"
#include "service/client.h"

namespace dedup::engine {

// Collective over `ranks`, of one job: ok if the services' processes of all nodes run; else
// kUnreachable, with the name of one that does not. A connection for each node, spread over the
// ranks.
Status check_nodes(service::Client& client, const Ranks& ranks);

}  // namespace dedup::engine
