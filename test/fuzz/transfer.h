/* One MPI call that reads or writes, of any kind, on one driver. */
#pragma once

#include <mpi.h>

#include "plan.h"

struct transfer {
  int write;
  enum pointer pointer;
  enum mode mode;
  int pause; /* let all ranks start before any completes */
  MPI_Offset offset;
  int count;
  MPI_Datatype type;
};

struct outcome {
  int code;
  int bytes; /* in the status */
};

/* With `pause` all ranks of the job must take part, or call pause_only. */
struct outcome transfer(MPI_File file, const struct transfer* t, void* buffer);
void pause_only(void);
