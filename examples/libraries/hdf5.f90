! HDF5 from Fortran: each rank writes its part of a dataset collectively, then reads its neighbour's.
!
!   mpifort -I/usr/include/hdf5/mpich hdf5.f90 -L/usr/lib/$(uname -m)-linux-gnu/hdf5/mpich \
!     -lhdf5_fortran -lhdf5
!   dedup-mpiexec -n 4 ./a.out dedup:/scratch/run/fortran.h5
program libraries_hdf5
  use hdf5
  use mpi
  implicit none
  integer, parameter :: cells = 100000
  double precision :: temperature(cells)
  character(len=4096) :: name
  integer :: rank, ranks, neighbour, error, wrong, i
  integer(hid_t) :: fapl, dxpl, file, set, space, memory
  integer(hsize_t) :: start(1), part(1), all(1)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call get_command_argument(1, name)
  part = cells
  all = int(cells, hsize_t) * ranks
  temperature = [(rank + i / dble(cells), i = 1, cells)]

  call h5open_f(error)
  call h5pcreate_f(H5P_FILE_ACCESS_F, fapl, error)
  call h5pset_fapl_mpio_f(fapl, MPI_COMM_WORLD, MPI_INFO_NULL, error)
  call h5pcreate_f(H5P_DATASET_XFER_F, dxpl, error)
  call h5pset_dxpl_mpio_f(dxpl, H5FD_MPIO_COLLECTIVE_F, error)
  call h5screate_simple_f(1, part, memory, error)
  call h5screate_simple_f(1, all, space, error)
  wrong = 0

  call h5fcreate_f(trim(name), H5F_ACC_TRUNC_F, file, error, access_prp=fapl)
  call h5dcreate_f(file, 'temperature', H5T_NATIVE_DOUBLE, space, set, error)
  start = int(cells, hsize_t) * rank
  call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, start, part, error)
  call h5dwrite_f(set, H5T_NATIVE_DOUBLE, temperature, part, error, memory, space, dxpl)
  if (error /= 0) wrong = wrong + 1
  call h5dclose_f(set, error)
  ! The file is committed here.
  call h5fclose_f(file, error)
  if (error /= 0) wrong = wrong + 1

  neighbour = mod(rank + 1, ranks)
  call h5fopen_f(trim(name), H5F_ACC_RDONLY_F, file, error, access_prp=fapl)
  call h5dopen_f(file, 'temperature', set, error)
  start = int(cells, hsize_t) * neighbour
  call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, start, part, error)
  call h5dread_f(set, H5T_NATIVE_DOUBLE, temperature, part, error, memory, space, dxpl)
  if (error /= 0) wrong = wrong + 1
  wrong = wrong + count(temperature /= [(neighbour + i / dble(cells), i = 1, cells)])
  call h5dclose_f(set, error)
  call h5fclose_f(file, error)
  call h5sclose_f(space, error)
  call h5sclose_f(memory, error)
  call h5pclose_f(dxpl, error)
  call h5pclose_f(fapl, error)
  call h5close_f(error)

  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(i0, a, i0, a)', ranks, ' ranks, ', wrong, ' wrong'
  call MPI_Finalize(error)
  if (wrong /= 0) stop 1
end program
