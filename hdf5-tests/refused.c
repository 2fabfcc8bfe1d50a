/* Opens a name as HDF5 in all ways that go without the driver, and fails if one of them succeeds.
 */
#include <hdf5.h>
#include <mpi.h>

#include "check.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  REQUIRE(argc == 2);
  REQUIRE(H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0);
  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  REQUIRE(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
  const hid_t ways[] = {H5P_DEFAULT, fapl};
  for (int i = 0; i < 2; ++i) {
    REQUIRE(H5Fopen(argv[1], H5F_ACC_RDONLY, ways[i]) < 0);
    REQUIRE(H5Fopen(argv[1], H5F_ACC_RDWR, ways[i]) < 0);
  }
  H5Pclose(fapl);
  MPI_Finalize();
  return 0;
}
