/* The driver's start and end with those of MPI, in both forms. */
#ifndef DEDUP_ADIO_JOB_H
#define DEDUP_ADIO_JOB_H

/* Right after MPI was initialised; once more does nothing. The end hangs on MPI_COMM_SELF. */
void dedup_start_job(void);

#endif
