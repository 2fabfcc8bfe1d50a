/* What is compared besides what operations return. */
#pragma once

#include <stdint.h>

#include "plan.h"

struct slot;

/* Afterwards all ranks see what one has written through this handle before. */
void separate(const struct slot* slot, int driver);

/* After each operation: positions and sizes. */
void observe(void);

/* The whole of a file, through new handles. */
void compare_file(int name, enum comm_kind comm, uint64_t seed);

/* The size of the open file, which all ranks see. */
long long size_of_file(const struct slot* slot, int driver);
