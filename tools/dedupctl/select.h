// The files that a subcommand is about, one after the other on all ranks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/dedupctl/session.h"

namespace dedup::ctl {

// Collective. Calls visit() on all ranks for each file that options.files name, or for every
// committed one if they name none; the row is null on ranks other than 0. `path` is where the file
// is: where the user or a search found it, or where it was committed. Files that cannot be taken
// are said on standard error. The worst of all exit codes, on rank 0.
ExitCode for_each_file(
    Session& session,
    const std::function<ExitCode(const FileRow* file, const std::string& path)>& visit);

// The same for files that `names` name.
ExitCode for_each_file(
    Session& session, const std::vector<std::string>& names,
    const std::function<ExitCode(const FileRow* file, const std::string& path)>& visit);

// The code that says more: of two different ones the first that is not kFine, but whatever went
// wrong goes before kProblems.
ExitCode worse(ExitCode a, ExitCode b);

}  // namespace dedup::ctl
