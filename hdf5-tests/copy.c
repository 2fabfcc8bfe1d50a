/* Reads a file through MPI-IO and writes its bytes to a plain file: copy FROM TO, with one rank. */
#include <mpi.h>
#include <stdio.h>

#include "check.h"

int main(int argc, char** argv) {
  static char data[1 << 20];
  MPI_Init(&argc, &argv);
  REQUIRE(argc == 3);
  MPI_File from;
  REQUIRE(MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &from) ==
          MPI_SUCCESS);
  FILE* to = fopen(argv[2], "wb");
  REQUIRE(to != NULL);
  int bytes;
  do {
    MPI_Status status;
    REQUIRE(MPI_File_read(from, data, sizeof data, MPI_BYTE, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    REQUIRE(fwrite(data, 1, (size_t)bytes, to) == (size_t)bytes);
  } while (bytes > 0);
  REQUIRE(fclose(to) == 0);
  REQUIRE(MPI_File_close(&from) == MPI_SUCCESS);
  MPI_Finalize();
  return 0;
}
