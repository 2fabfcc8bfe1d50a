/* HDF5: each rank writes its part of a dataset collectively, then reads its neighbour's.
 *
 *   mpicc $(pkg-config --cflags hdf5-mpich) hdf5.c $(pkg-config --libs hdf5-mpich)
 *   dedup-mpiexec -n 4 ./a.out dedup:/scratch/run/hdf5.h5 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>

enum { kCells = 100000 };

/* Reads or writes the cells of one rank. */
static herr_t transfer(hid_t set, int owner, hid_t dxpl, double* cells, int write) {
  const hsize_t start = (hsize_t)owner * kCells;
  const hsize_t count = kCells;
  const hid_t space = H5Dget_space(set);
  const hid_t memory = H5Screate_simple(1, &count, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
  const herr_t error = write ? H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, dxpl, cells)
                             : H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, dxpl, cells);
  H5Sclose(memory);
  H5Sclose(space);
  return error;
}

int main(int argc, char** argv) {
  static double cells[kCells];
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < kCells; ++i) cells[i] = rank + i / (double)kCells;

  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL);
  const hid_t dxpl = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(dxpl, H5FD_MPIO_COLLECTIVE);

  hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  const hsize_t all = (hsize_t)ranks * kCells;
  const hid_t space = H5Screate_simple(1, &all, NULL);
  hid_t set = H5Dcreate2(file, "temperature", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT,
                         H5P_DEFAULT);
  int wrong = transfer(set, rank, dxpl, cells, 1) < 0;
  H5Dclose(set);
  /* The file is committed here: what close returns is worth a look. */
  wrong += H5Fclose(file) < 0;

  file = H5Fopen(argv[1], H5F_ACC_RDONLY, fapl);
  set = H5Dopen2(file, "temperature", H5P_DEFAULT);
  const int neighbour = (rank + 1) % ranks;
  wrong += transfer(set, neighbour, dxpl, cells, 0) < 0;
  for (int i = 0; i < kCells; ++i) wrong += cells[i] != neighbour + i / (double)kCells;
  H5Dclose(set);
  wrong += H5Fclose(file) < 0;
  H5Sclose(space);
  H5Pclose(dxpl);
  H5Pclose(fapl);

  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks, %d wrong\n", ranks, wrong);
  MPI_Finalize();
  return wrong != 0;
}
