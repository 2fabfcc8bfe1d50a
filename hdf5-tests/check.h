/* What the C programs of the HDF5 tests share: ending the program when something is not as it
 * should be. */
#pragma once

#include <mpi.h>
#include <stdio.h>

/* Ends all ranks, naming the line, unless `condition` holds. */
#define REQUIRE(condition)                                                    \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                           \
    }                                                                         \
  } while (0)

/* For HDF5's functions, whose ids and results are negative on failure. */
#define OK(call) REQUIRE((call) >= 0)
