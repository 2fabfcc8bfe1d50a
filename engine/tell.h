// What an open and a commit did, in a line each on standard error, for those who ask for it
// (dedup_log=info); and in another one why little was found, if that is so. Rank 0 speaks.
#pragma once

#include <span>

#include "engine/file_handle.h"

namespace dedup::engine {

// After a successful open. Local.
void tell_of_open(const FileHandle& file, double seconds);

// Before what this rank is to write is dumped: looks at the first of it, if it is to tell. Local.
void take_sample(FileHandle& file, std::span<const DumpRun> runs);

// After a commit, of file.last. Local. Forgets the sample.
void tell_of_commit(FileHandle& file);

}  // namespace dedup::engine
