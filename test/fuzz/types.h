/* Random datatypes, and where the bytes of a datatype are. */
#pragma once

#include <mpi.h>

#include "random.h"

/* Where the data bytes of a view are in the file. */
struct places {
  long long disp, size, extent; /* of the filetype, in bytes */
  long long* at;                /* data byte i of the filetype is at byte at[i] */
};

MPI_Datatype draw_basic(struct random* r);

/* Bytes in increasing places from 0 on, gaps in between, a multiple of the basic type's extent. Not
 * committed. */
MPI_Datatype draw_type(struct random* r, MPI_Datatype basic, int depth);

/* For memory, committed; element 0 begins at 0. Its pieces may also be in another order. */
MPI_Datatype draw_memory_type(struct random* r, MPI_Datatype basic);

/* Takes `type`'s place; committed. */
MPI_Datatype resized(MPI_Datatype type, MPI_Aint extent);

long long size_of_type(MPI_Datatype type);

/* From 0 to behind the last byte, without a resized extent. */
long long end_of_type(MPI_Datatype type);
long long extent_of_type(MPI_Datatype type);

/* Found out with MPI_Pack, which knows nothing of files. */
struct places find_places(long long disp, MPI_Datatype filetype);

long long place_of(const struct places* view, long long data_byte);

/* How many of the data bytes [start, start + bytes) are before `end` in the file. */
long long bytes_before(const struct places* view, long long start, long long bytes, long long end);
