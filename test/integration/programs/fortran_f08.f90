! Fortran through `use mpi_f08`: writes, reads back, sees an error.
!
!   fortran_f08 FILE
program fortran_f08
  use mpi_f08
  implicit none
  integer, parameter :: n = 777
  integer :: code, rank, ranks, i, counted, class
  type(MPI_File) :: file
  type(MPI_Status) :: status
  integer :: data(n), found(n)
  integer(kind=MPI_OFFSET_KIND) :: offset
  character(len=4096) :: name

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, name)

  call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_NO_SUCH_FILE, 'a missing file is an error')
  call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, &
                     file, code)
  call check(code == MPI_SUCCESS, 'open')
  data = [(rank * n + i, i = 1, n)]
  offset = int(rank, MPI_OFFSET_KIND) * n * 4
  call MPI_File_write_at_all(file, offset, data, n, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'write_at_all')
  call MPI_Get_count(status, MPI_INTEGER, counted)
  call check(counted == n, 'count')
  call MPI_Barrier(MPI_COMM_WORLD)
  i = mod(rank + 1, ranks)
  offset = int(i, MPI_OFFSET_KIND) * n * 4
  call MPI_File_read_at(file, offset, found, n, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'read_at')
  rank = mod(rank + 1, ranks)
  call check(all(found == [(rank * n + i, i = 1, n)]), 'data')
  call MPI_File_close(file, code)
  call check(code == MPI_SUCCESS, 'close')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  if (rank == 0) print '(a)', 'Fortran passed'
  call MPI_Finalize()

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (.not. condition) then
      write (0, '(a,i0,2a)') 'rank ', rank, ': not so: ', what
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
  end subroutine check
end program fortran_f08
