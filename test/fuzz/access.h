/* Reads and writes. */
#pragma once

#include "plan.h"

void run_access(const struct op* op);
void run_burst(const struct op* op);

/* The operation whose writes differ in one byte on the second driver, to test the test; -1: none.
 */
extern int flipped_op;
