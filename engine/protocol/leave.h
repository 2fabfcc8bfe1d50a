// Letting go of an open file.
#pragma once

#include "base/status.h"
#include "engine/protocol/job_file.h"

namespace dedup::engine {

enum class Leaving {
  kWithWriteBack,  // if some handle wanted that
  kAsItIs          // what is not written back stays in the stores
};

// Collective. What the handle did not commit is dropped, unless others have the file open; the last
// handle of the job writes the file back, or begins to, and releases the stores.
Status leave(JobFile& file, Leaving leaving = Leaving::kWithWriteBack);
// The same, by one rank that knows of a copy which has all of the generation `attempt`, by its id:
// if the file is still that, the copy is put at its path.
Status leave_with_copy(JobFile& file, const Id128& copy, const Id128& attempt);

}  // namespace dedup::engine
