/* PnetCDF: each rank writes its part of a variable collectively, then reads its neighbour's.
 *
 *   mpicc pnetcdf.c -lpnetcdf
 *   dedup-mpiexec -n 4 ./a.out dedup:/scratch/run/pnetcdf.nc */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>

enum { kCells = 100000 };

int main(int argc, char** argv) {
  static double cells[kCells];
  int rank, ranks, file, dimension, variable;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < kCells; ++i) cells[i] = rank + i / (double)kCells;
  MPI_Offset start = (MPI_Offset)rank * kCells;
  const MPI_Offset count = kCells;

  int wrong = ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL,
                           &file) != NC_NOERR;
  wrong += ncmpi_def_dim(file, "cell", (MPI_Offset)ranks * kCells, &dimension) != NC_NOERR;
  wrong += ncmpi_def_var(file, "temperature", NC_DOUBLE, 1, &dimension, &variable) != NC_NOERR;
  wrong += ncmpi_enddef(file) != NC_NOERR;
  wrong += ncmpi_put_vara_double_all(file, variable, &start, &count, cells) != NC_NOERR;
  /* The file is committed here: what close returns is worth a look. */
  wrong += ncmpi_close(file) != NC_NOERR;

  const int neighbour = (rank + 1) % ranks;
  start = (MPI_Offset)neighbour * kCells;
  wrong += ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file) != NC_NOERR;
  wrong += ncmpi_get_vara_double_all(file, variable, &start, &count, cells) != NC_NOERR;
  for (int i = 0; i < kCells; ++i) wrong += cells[i] != neighbour + i / (double)kCells;
  wrong += ncmpi_close(file) != NC_NOERR;

  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %d wrong\n", ranks, wrong);
  MPI_Finalize();
  return wrong != 0;
}
