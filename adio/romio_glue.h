/* Stand-ins for MPICH's glue between ROMIO and the library. */
#ifndef DEDUP_ADIO_ROMIO_GLUE_H
#define DEDUP_ADIO_ROMIO_GLUE_H

#include <mpi.h> /* not adio.h: it would rename the functions of init.c */

/* Frees the MPI_File structures that this thread closed in the MPI_File function it is leaving. */
void dedup_free_closed_files(void);

/* The error handler that MPI_FILE_NULL has, which a file inherits when it is opened. The caller
 * owns a reference. */
MPI_Errhandler dedup_default_errhandler(void);

/* Ends the process, with a plain message, if the MPI library is not of the version that this ROMIO
 * is from: the library reaches into ROMIO's structures. Checked once. */
void dedup_check_mpi_version(void);

/* Collective over MPI_COMM_WORLD, in MPI_Init: ends the job, with one line, if a process has loaded
 * Open MPI, for which the program was built then. */
void dedup_check_no_other_mpi(void);

/* Frees what flatten.c keeps for all datatypes; before MPI_Finalize. */
void dedup_flatten_end(void);

#endif
