// What this process says on standard error: a line each, in one piece, with who says it:
//
//   dedup: warning: rank 3 on n1: /scratch/f: …
//   dedup: info: rank 0 on n0: /scratch/f: …
//   dedupctl: error: there is no file /scratch/g
//
// All functions may be called by several threads at once.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>
#include <string_view>

namespace dedup {

// What users know this program as; "dedup", until it is told.
void set_program(const std::string& name);
// Which of several processes this is; nothing, until it is told.
void set_speaker(const std::string& who);

// Something is not as the user may think.
void warn(std::string_view text);
// What was done, for those who asked to be told.
void inform(std::string_view text);
// Something failed, and whoever called may not be told, or not look.
void say_error(std::string_view text);

// Before a process ends its whole job: returns when another process that reads `fd` through a pipe,
// as a launcher does to pass it on, has read all of it, or after a second. A launcher that is told
// to end the job first drops what it has not read.
void wait_until_read(int fd = STDERR_FILENO);

// For tests: takes the lines, without their ends, instead of standard error; an empty one gives
// them back to it.
void hear_warnings(std::function<void(std::string_view line)> listener);

}  // namespace dedup
