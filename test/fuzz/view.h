/* Views: where in a file a handle's data is. */
#pragma once

#include "files.h"

/* The whole file as bytes, which is what a file is opened with. */
void view_bytes(struct slot* slot);
void set_view(const struct op* op);

/* The etype at which about this byte of the file is. */
long long etype_at(const struct slot* slot, long long byte);
