#include "faults.h"

#include <string.h>

static const char* const kNames[kFaults] = {[kWrittenBackByReader] = "written-back-by-reader"};
static int left_out[kFaults];

int leave_out(const char* name) {
  for (int i = 0; i < kFaults; ++i) {
    if (strcmp(name, kNames[i]) == 0) return left_out[i] = 1;
  }
  return 0;
}

int is_left_out(enum fault fault) {
  return left_out[fault];
}
