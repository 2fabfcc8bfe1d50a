/* Erroneous calls: both drivers must refuse them alike. */
#pragma once

#include <mpi.h>

int mistakes(void);
const char* mistake_name(int mistake);

/* Makes the call on all ranks that have the file open, and returns its code. `name` is that of a
 * file, with its prefix, that need not exist. */
int make_mistake(int mistake, MPI_File file, MPI_Comm comm, const char* name);
