// What writes generations. It takes the driver, and so a job: see in_job.h.
#pragma once

#include "tools/dedupctl/session.h"

namespace dedup::ctl {

// check --repair: heal, with every chunk checked first.
ExitCode repair(Session& session);

}  // namespace dedup::ctl
