/* Operations that neither open, close, read nor write. */
#pragma once

#include "plan.h"

void seek(const struct op* op, int shared);
void set_size(const struct op* op); /* also preallocate */
void sync_or_set_atomicity(const struct op* op);
void query(const struct op* op);
void mistake(const struct op* op);
