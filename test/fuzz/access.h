/* Reads and writes. */
#pragma once

#include "files.h"
#include "plan.h"

void run_access(const struct op* op);
void run_burst(const struct op* op);

/* Whether a known fault makes it last too long, unless the write is a blocking collective one. */
int is_too_fine(const struct slot* slot, long long bytes);
