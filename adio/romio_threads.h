/* ROMIO's critical section: one recursive lock for the process, as in MPICH, where the library's
 * global lock guards ROMIO too. ROMIO takes it at the start of each MPI_File function.
 *
 * Whoever is about to wait for another process, in MPI or in the engine, gives it up for that time;
 * otherwise two threads in collective calls on two files could each hold what the other's partner
 * needs. MPICH does the same, by yielding its lock inside its progress loop.
 */
#ifndef DEDUP_ADIO_ROMIO_THREADS_H
#define DEDUP_ADIO_ROMIO_THREADS_H

/* Gives the lock up, however often this thread has entered it; returns that number, for
 * dedup_cs_resume. Both do nothing if the thread has not entered. */
int dedup_cs_suspend(void);
void dedup_cs_resume(int depth);

#endif
