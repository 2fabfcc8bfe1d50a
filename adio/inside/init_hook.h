/* MPI_Init's and MPI_Init_thread's inside, with the driver's start behind them. Included at the end
 * of the file of MPICH that defines them, by other names (add-to-mpich); also by an MPICH that is
 * then configured without the driver.
 */
#ifndef DEDUP_ADIO_INSIDE_INIT_HOOK_H
#define DEDUP_ADIO_INSIDE_INIT_HOOK_H

#undef MPIR_Init_impl
#undef MPIR_Init_thread_impl

int MPIR_Init_impl(int* argc, char*** argv);
int MPIR_Init_thread_impl(int* argc, char*** argv, int required, int* provided);

/* Not there without the driver. */
void dedup_start_job(void) __attribute__((weak));

static int dedup_start_after(int mpi_errno) {
  if (mpi_errno == MPI_SUCCESS && dedup_start_job) dedup_start_job();
  return mpi_errno;
}

int MPIR_Init_impl(int* argc, char*** argv) {
  return dedup_start_after(dedup_real_Init_impl(argc, argv));
}

int MPIR_Init_thread_impl(int* argc, char*** argv, int required, int* provided) {
  return dedup_start_after(dedup_real_Init_thread_impl(argc, argv, required, provided));
}

#endif
