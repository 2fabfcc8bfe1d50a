/* Reads and writes. */
#pragma once

#include "plan.h"

void run_access(const struct op* op);
void run_burst(const struct op* op);
