// stat --prometheus.
#pragma once

#include "tools/dedupctl/session.h"

namespace dedup::ctl {

// Collective. As the subcommands; prints the stores' figures, or those of the files that are named.
ExitCode stat_for_prometheus(Session& session);

}  // namespace dedup::ctl
