/* NetCDF-4: each rank writes its part of a variable collectively, then reads its neighbour's.
 *
 *   mpicc netcdf.c -lnetcdf      a NetCDF that was built with this MPICH's HDF5
 *   dedup-mpiexec -n 4 ./a.out dedup:/scratch/run/netcdf.nc */
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

enum { kCells = 100000 };

int main(int argc, char** argv) {
  static double cells[kCells];
  int rank, ranks, file, dimension, variable;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < kCells; ++i) cells[i] = rank + i / (double)kCells;
  size_t start = (size_t)rank * kCells;
  const size_t count = kCells;

  int wrong = nc_create_par(argv[1], NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &file) != NC_NOERR;
  wrong += nc_def_dim(file, "cell", (size_t)ranks * kCells, &dimension) != NC_NOERR;
  wrong += nc_def_var(file, "temperature", NC_DOUBLE, 1, &dimension, &variable) != NC_NOERR;
  wrong += nc_enddef(file) != NC_NOERR;
  wrong += nc_var_par_access(file, variable, NC_COLLECTIVE) != NC_NOERR;
  wrong += nc_put_vara_double(file, variable, &start, &count, cells) != NC_NOERR;
  /* The file is committed here: what close returns is worth a look. */
  wrong += nc_close(file) != NC_NOERR;

  const int neighbour = (rank + 1) % ranks;
  start = (size_t)neighbour * kCells;
  wrong += nc_open_par(argv[1], NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file) != NC_NOERR;
  wrong += nc_var_par_access(file, variable, NC_COLLECTIVE) != NC_NOERR;
  wrong += nc_get_vara_double(file, variable, &start, &count, cells) != NC_NOERR;
  for (int i = 0; i < kCells; ++i) wrong += cells[i] != neighbour + i / (double)kCells;
  wrong += nc_close(file) != NC_NOERR;

  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %d wrong\n", ranks, wrong);
  MPI_Finalize();
  return wrong != 0;
}
