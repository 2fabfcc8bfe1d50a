! Fortran through `use mpi`: open, a view, collective and shared writes, reading back, errors.
!
!   fortran_mpi FILE
program fortran_mpi
  use mpi
  implicit none
  integer, parameter :: n = 1000
  integer :: code, rank, ranks, file, filetype, interleaved, i, counted, class
  integer :: status(MPI_STATUS_SIZE), data(n), found(n)
  integer(kind=MPI_OFFSET_KIND) :: offset, size
  integer(kind=MPI_ADDRESS_KIND) :: lb, extent
  character(len=4096) :: name

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  call get_command_argument(1, name)

  call MPI_File_open(MPI_COMM_WORLD, trim(name), MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class, i)
  call check(class == MPI_ERR_NO_SUCH_FILE, 'a missing file is an error')

  call MPI_File_open(MPI_COMM_WORLD, trim(name), ior(MPI_MODE_CREATE, MPI_MODE_RDWR), &
                     MPI_INFO_NULL, file, code)
  call check(code == MPI_SUCCESS, 'open')
  call MPI_Type_vector(n, 1, ranks, MPI_INTEGER, filetype, code)
  lb = 0
  extent = int(n, MPI_ADDRESS_KIND) * ranks * 4
  call MPI_Type_create_resized(filetype, lb, extent, interleaved, code)
  call MPI_Type_commit(interleaved, code)
  offset = rank * 4
  call MPI_File_set_view(file, offset, MPI_INTEGER, interleaved, 'native', MPI_INFO_NULL, code)
  call check(code == MPI_SUCCESS, 'set_view')
  do i = 1, n
    data(i) = (i - 1) * ranks + rank
  end do
  call MPI_File_write_all(file, data, n, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'write_all')
  call MPI_Get_count(status, MPI_INTEGER, counted, code)
  call check(counted == n, 'count of write_all')
  offset = 0
  call MPI_File_set_view(file, offset, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, code)
  call MPI_File_sync(file, code)
  call check(code == MPI_SUCCESS, 'sync')
  call MPI_File_get_size(file, size, code)
  call check(size == int(n, MPI_OFFSET_KIND) * ranks * 4, 'size')
  offset = int(ranks - 1 - rank, MPI_OFFSET_KIND) * n
  call MPI_File_read_at_all(file, offset, found, n, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'read_at_all')
  do i = 1, n
    call check(found(i) == offset + i - 1, 'data')
  end do
  call MPI_File_seek_shared(file, size / 4, MPI_SEEK_SET, code)
  call MPI_File_write_ordered(file, data, n, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'write_ordered')
  call MPI_File_close(file, code)
  call check(code == MPI_SUCCESS, 'close')

  call MPI_File_open(MPI_COMM_SELF, trim(name), MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call check(code == MPI_SUCCESS, 'open again')
  offset = int(ranks + rank, MPI_OFFSET_KIND) * n * 4
  call MPI_File_read_at(file, offset, found, n, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'read_at')
  call check(all(found == data), 'ordered data')
  call MPI_File_close(file, code)
  call MPI_Barrier(MPI_COMM_WORLD, code)
  if (rank == 0) then
    call MPI_File_delete(trim(name), MPI_INFO_NULL, code)
    call check(code == MPI_SUCCESS, 'delete')
    print '(a)', 'Fortran passed'
  end if
  call MPI_Type_free(interleaved, code)
  call MPI_Type_free(filetype, code)
  call MPI_Finalize(code)

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    integer :: ignored
    if (.not. condition) then
      write (0, '(a,i0,2a)') 'rank ', rank, ': not so: ', what
      call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
    end if
  end subroutine check
end program fortran_mpi
