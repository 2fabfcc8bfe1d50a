// Which kept generation an open is about.
#pragma once

#include <optional>

#include "base/status.h"
#include "base/types.h"
#include "engine/protocol/job_file.h"

namespace dedup::engine {

// A generation that is kept as a file of its own (store/kept.h).
struct KeptFile {
  Id128 identity;
  Id128 file;     // of which it is a generation
  Id128 attempt;  // its attempt there
};

// Collective. If the hint dedup_generation asks for an older generation, or nothing stands at
// `file`'s path and it is a kept generation's name ("ckpt.h5@7"), which one that is, unless the
// open may make a file (`create`), which is about what stands at the path whatever the hint; `file`
// then has the path and the home of that. None: it is about what stands at the path, which becomes
// the file's own if the newest generation was asked for by its number. kNoSuchFile, naming those
// that there are.
Result<std::optional<KeptFile>> find_kept(JobFile& file, bool create);

}  // namespace dedup::engine
