/* Writes a file's last byte once more, with one rank: a plain file is taken over into the stores.
 */
#include <mpi.h>

#include "check.h"

int main(int argc, char** argv) {
  char last;
  MPI_Offset size;
  MPI_File file;
  MPI_Init(&argc, &argv);
  REQUIRE(argc == 2);
  REQUIRE(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
          MPI_SUCCESS);
  REQUIRE(MPI_File_get_size(file, &size) == MPI_SUCCESS && size > 0);
  REQUIRE(MPI_File_read_at(file, size - 1, &last, 1, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  REQUIRE(MPI_File_write_at(file, size - 1, &last, 1, MPI_CHAR, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  REQUIRE(MPI_File_close(&file) == MPI_SUCCESS);
  MPI_Finalize();
  return 0;
}
