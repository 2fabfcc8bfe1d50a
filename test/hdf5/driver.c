/* Programs that name the driver themselves, or know nothing of it:
 *
 *   driver serial-create|serial-check|serial-leave-open|delete FILE     no call of MPI, a file
 * alone driver failing FILE      opens what is not there; prints what HDF5's error stack says of it
 *   driver jobs DIRECTORY    files of a rank alone, of all ranks and of some, open at once
 *   driver types FILE        what HDF5 passes in MPI's datatypes, collectively and independently
 *   driver unwritten FILE    what was never written, behind the end of the file
 *   driver refused FILE      what HDF5 takes for granted of a parallel driver and this one has not
 */
#include <dedup_hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../hdf5-tests/check.h"

enum { kCount = 300000 };

static int value(int seed, hsize_t i) {
  return (int)(i * 7 + (hsize_t)seed * 1000003);
}

/* Writes or compares elements [first, first + count) of a dataset, every `stride`-th of it. */
static void transfer(hid_t dataset, hid_t properties, int seed, hsize_t first, hsize_t stride,
                     hsize_t count, bool write) {
  int* data = malloc((size_t)(count + 1) * sizeof *data);
  REQUIRE(data != NULL);
  hid_t in_file = H5Dget_space(dataset), in_memory = H5Screate_simple(1, &count, NULL);
  OK(in_file);
  OK(in_memory);
  OK(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &first, &stride, &count, NULL));
  for (hsize_t i = 0; i < count; ++i) data[i] = write ? value(seed, first + i * stride) : -1;
  if (write) {
    OK(H5Dwrite(dataset, H5T_NATIVE_INT, in_memory, in_file, properties, data));
  } else {
    OK(H5Dread(dataset, H5T_NATIVE_INT, in_memory, in_file, properties, data));
  }
  for (hsize_t i = 0; i < count; ++i) REQUIRE(data[i] == value(seed, first + i * stride));
  OK(H5Sclose(in_memory));
  OK(H5Sclose(in_file));
  free(data);
}

static hid_t create_dataset(hid_t file, hsize_t chunk) {
  const hsize_t size = kCount;
  hid_t space = H5Screate_simple(1, &size, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  OK(space);
  OK(creation);
  if (chunk > 0) OK(H5Pset_chunk(creation, 1, &chunk));
  hid_t dataset =
      H5Dcreate2(file, "numbers", H5T_STD_I32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  OK(dataset);
  OK(H5Pclose(creation));
  OK(H5Sclose(space));
  return dataset;
}

/* ---- Without MPI ------------------------------------------------------------------------------
 */

/* A variable-length string: nothing that parallel HDF5 writes. */
static void put_text(hid_t object, const char* text) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  OK(H5Tset_size(type, H5T_VARIABLE));
  hid_t attribute = H5Acreate2(object, "text", type, space, H5P_DEFAULT, H5P_DEFAULT);
  OK(attribute);
  OK(H5Awrite(attribute, type, &text));
  OK(H5Aclose(attribute));
  OK(H5Sclose(space));
  OK(H5Tclose(type));
}

static void serial_create(const char* name, bool close) {
  hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  OK(file);
  hid_t dataset = create_dataset(file, 10000);
  transfer(dataset, H5P_DEFAULT, 5, 0, 1, kCount, true);
  put_text(dataset, "of a program that knows nothing of MPI");
  OK(H5Dclose(dataset));
  if (close) OK(H5Fclose(file));
}

static void serial_check(const char* name) {
  char* text = NULL;
  hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
  OK(file);
  hid_t dataset = H5Dopen2(file, "numbers", H5P_DEFAULT);
  OK(dataset);
  transfer(dataset, H5P_DEFAULT, 5, 0, 1, kCount, false);
  hid_t attribute = H5Aopen(dataset, "text", H5P_DEFAULT), type = H5Aget_type(attribute);
  OK(H5Aread(attribute, type, &text));
  REQUIRE(strcmp(text, "of a program that knows nothing of MPI") == 0);
  H5free_memory(text);
  OK(H5Tclose(type));
  OK(H5Aclose(attribute));
  OK(H5Dclose(dataset));
  OK(H5Fclose(file));
}

/* ---- Errors ------------------------------------------------------------------------------------
 */

static herr_t show(unsigned n, const H5E_error2_t* entry, void* data) {
  (void)n;
  (void)data;
  if (strcmp(entry->file_name, "libhdf5_dedup.so") == 0)
    printf("%s: %s\n", entry->func_name, entry->desc);
  return 0;
}

static void failing(const char* name) {
  hid_t file;
  H5E_BEGIN_TRY {
    file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
  }
  H5E_END_TRY
  REQUIRE(file < 0);
  OK(H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, show, NULL));
}

/* ---- Ranks of several files --------------------------------------------------------------------
 */

static hid_t open_on(MPI_Comm comm, const char* name, bool create) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  OK(access);
  if (comm != MPI_COMM_NULL) OK(H5Pset_fapl_dedup(access, comm, MPI_INFO_NULL));
  hid_t file = create ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                      : H5Fopen(name, H5F_ACC_RDWR, access);
  OK(file);
  OK(H5Pclose(access));
  return file;
}

/* All of a file's ranks write, or compare, a stretch each. */
static void transfer_shares(hid_t file, MPI_Comm comm, int seed, bool write) {
  int rank, size;
  hid_t properties = H5Pcreate(H5P_DATASET_XFER);
  OK(properties);
  OK(H5Pset_dxpl_mpio(properties, H5FD_MPIO_COLLECTIVE));
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  hid_t dataset = write ? create_dataset(file, 0) : H5Dopen2(file, "numbers", H5P_DEFAULT);
  OK(dataset);
  const hsize_t share = kCount / (hsize_t)size;
  transfer(dataset, properties, seed, (hsize_t)rank * share, 1, share, write);
  OK(H5Dclose(dataset));
  OK(H5Pclose(properties));
}

static void jobs(const char* directory) {
  char own[4096], all[4096], some[4096];
  int rank;
  MPI_Comm half;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  snprintf(own, sizeof own, "%s/own%d.h5", directory, rank);
  snprintf(all, sizeof all, "%s/all.h5", directory);
  snprintf(some, sizeof some, "%s/half%d.h5", directory, rank % 2);

  /* Serial, one after the other in no order, and open until the end. */
  hid_t own_file = open_on(MPI_COMM_NULL, own, true);
  hid_t dataset = create_dataset(own_file, 0);
  transfer(dataset, H5P_DEFAULT, rank, 0, 2, kCount / 2, true);

  for (int round = 0; round < 2; ++round) {
    hid_t some_file = open_on(half, some, true);
    transfer_shares(some_file, half, 10 + rank % 2, true);
    hid_t all_file = open_on(MPI_COMM_WORLD, all, true);
    transfer_shares(all_file, MPI_COMM_WORLD, 20, true);
    OK(H5Fclose(all_file));
    transfer_shares(some_file, half, 10 + rank % 2, false);
    OK(H5Fclose(some_file));
    all_file = open_on(MPI_COMM_WORLD, all, false);
    transfer_shares(all_file, MPI_COMM_WORLD, 20, false);
    OK(H5Fclose(all_file));
  }

  transfer(dataset, H5P_DEFAULT, rank, 1, 2, kCount / 2, true);
  OK(H5Dclose(dataset));
  OK(H5Fclose(own_file));
  own_file = open_on(MPI_COMM_NULL, own, false);
  dataset = H5Dopen2(own_file, "numbers", H5P_DEFAULT);
  OK(dataset);
  transfer(dataset, H5P_DEFAULT, rank, 0, 1, kCount, false);
  OK(H5Dclose(dataset));
  OK(H5Fclose(own_file));
  MPI_Comm_free(&half);
}

/* ---- MPI's datatypes ---------------------------------------------------------------------------
 */

static void types(const char* name) {
  const H5FD_mpio_collective_opt_t ways[] = {H5FD_MPIO_COLLECTIVE_IO, H5FD_MPIO_INDIVIDUAL_IO};
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int way = 0; way < 2; ++way) {
    for (hsize_t chunk = 0; chunk <= 7001; chunk += 7001) {
      hid_t properties = H5Pcreate(H5P_DATASET_XFER);
      OK(properties);
      OK(H5Pset_dxpl_mpio(properties, H5FD_MPIO_COLLECTIVE));
      OK(H5Pset_dxpl_mpio_collective_opt(properties, ways[way]));
      OK(H5Pset_selection_io(properties, H5D_SELECTION_IO_MODE_OFF));
      hid_t file = open_on(MPI_COMM_WORLD, name, true);
      hid_t dataset = create_dataset(file, chunk);
      /* Every rank's elements are scattered, and the last rank has none. */
      const hsize_t first = (hsize_t)rank % ((hsize_t)size - 1 + (size == 1)),
                    stride = 2 * (hsize_t)size;
      const hsize_t count = rank == size - 1 && size > 1 ? 0 : (kCount - first) / stride;
      transfer(dataset, properties, 30, first, stride, count, true);
      MPI_Barrier(MPI_COMM_WORLD);
      transfer(dataset, properties, 30, first, stride, count, false);
      OK(H5Dclose(dataset));
      OK(H5Fclose(file));
      OK(H5Pclose(properties));
    }
  }
}

/* ---- Behind the end ----------------------------------------------------------------------------
 */

static void unwritten(const char* name) {
  const H5D_selection_io_mode_t modes[] = {H5D_SELECTION_IO_MODE_ON, H5D_SELECTION_IO_MODE_OFF};
  const hsize_t size = kCount, stride = 3, count = kCount / 3, none = 0;
  static int data[kCount];
  hid_t file = open_on(MPI_COMM_WORLD, name, true);
  hid_t space = H5Screate_simple(1, &size, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  OK(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY));
  OK(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  hid_t dataset =
      H5Dcreate2(file, "numbers", H5T_STD_I32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  OK(dataset);
  OK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &none, &stride, &count, NULL));
  for (int i = 0; i < 2; ++i) {
    hid_t properties = H5Pcreate(H5P_DATASET_XFER);
    OK(H5Pset_dxpl_mpio(properties, H5FD_MPIO_COLLECTIVE));
    OK(H5Pset_selection_io(properties, modes[i]));
    memset(data, 1, sizeof data);
    OK(H5Dread(dataset, H5T_NATIVE_INT, space, space, properties, data));
    for (int j = 0; j < kCount; ++j) REQUIRE(data[j] == (j % 3 == 0 ? 0 : 0x01010101));
    OK(H5Pclose(properties));
  }
  OK(H5Pclose(creation));
  OK(H5Sclose(space));
  OK(H5Dclose(dataset));
  OK(H5Fclose(file));
}

/* ---- Refused -----------------------------------------------------------------------------------
 */

static void refused(const char* name) {
  void* handle;
  herr_t atomicity, of_system;
  hid_t file = open_on(MPI_COMM_WORLD, name, true);
  H5E_BEGIN_TRY {
    atomicity = H5Fset_mpi_atomicity(file, true);
    of_system = H5Fget_vfd_handle(file, H5P_DEFAULT, &handle);
  }
  H5E_END_TRY
  REQUIRE(atomicity < 0);
  REQUIRE(of_system < 0);
  OK(H5Fclose(file));
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3);
  if (strcmp(argv[1], "serial-create") == 0) {
    serial_create(argv[2], true);
  } else if (strcmp(argv[1], "serial-leave-open") == 0) {
    serial_create(argv[2], false);
  } else if (strcmp(argv[1], "serial-check") == 0) {
    serial_check(argv[2]);
  } else if (strcmp(argv[1], "delete") == 0) {
    OK(H5Fdelete(argv[2], H5P_DEFAULT));
  } else if (strcmp(argv[1], "failing") == 0) {
    failing(argv[2]);
  } else {
    MPI_Init(&argc, &argv);
    if (strcmp(argv[1], "jobs") == 0) {
      jobs(argv[2]);
    } else if (strcmp(argv[1], "types") == 0) {
      types(argv[2]);
    } else if (strcmp(argv[1], "unwritten") == 0) {
      unwritten(argv[2]);
    } else {
      REQUIRE(strcmp(argv[1], "refused") == 0);
      refused(argv[2]);
    }
    MPI_Finalize();
  }
  return 0;
}
