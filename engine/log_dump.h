// Making chunks of what ranks have in their logs.
#pragma once

#include "base/status.h"
#include "engine/file_handle.h"

namespace dedup::engine {

// Collective, in rounds of bounded memory (log_round()). Each rank's logged data is
// cut into chunks from the start of each run that is contiguous in the file; block homes replace
// log pieces by chunks only where the log still is the newest, so that the order of writes stays as
// it was. Afterwards the ranks' logs are empty. The caller holds the commit lock.
// `space`: what becomes of the logs' space.
Status dump_logs(FileHandle& file, store::LogWriter::Space space);

// Bytes of a log that one round takes.
std::uint64_t log_round(const hints::Hints& hints);

}  // namespace dedup::engine
