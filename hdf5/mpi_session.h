// The program's MPI: the driver comes in when the first file is opened, which may be long after
// MPI_Init, or in a program that knows nothing of MPI.
#pragma once

namespace dedup::hdf5 {

// MPI can be used from here on: initialised by this call, if nobody has, and then ended with the
// process. The engine's jobs end in MPI_Finalize; files that are open then are closed before, by
// H5close(). Throws if MPI has ended or does not begin.
void be_in_mpi();

// How many files are open.
void file_opened();
void file_closed();

}  // namespace dedup::hdf5
