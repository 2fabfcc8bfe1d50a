/* Groups, attributes, contiguous and chunked datasets, interleaved writes, resizing and appending,
 * by any number of ranks: the file's content does not depend on it.
 *
 *   parallel create|append|check-created|check-appended FILE [collective|independent]
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum {
  kColumns = 300,
  kRows = 211,    /* of the contiguous dataset; prime, so that no number of ranks divides it */
  kOldRows = 67,  /* of the chunked dataset when it is created */
  kAllRows = 193, /* after it was appended to */
  kLong = 40000,  /* elements of the interleaved dataset */
  kShrunk = 1000, /* of them stay in the end */
  kPatched = 13,  /* rows of the contiguous dataset that are overwritten later */
  kFill = -77
};

static int rank, ranks;
static hid_t transfer;

static hid_t open_access(void) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  OK(access);
  OK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  return access;
}

static int32_t value(int stage, hsize_t row, hsize_t column) {
  return (int32_t)(row * 1000003 + column * 17 + (hsize_t)stage * 7919);
}

/* This rank's part of rows [from, to): first row and number of rows. */
static void my_rows(hsize_t from, hsize_t to, hsize_t* first, hsize_t* count) {
  hsize_t n = to - from, r = (hsize_t)rank, all = (hsize_t)ranks;
  *first = from + n * r / all;
  *count = from + n * (r + 1) / all - *first;
}

/* Writes, or reads and compares, this rank's part of rows [from, to) of a two-dimensional dataset.
 * stage < 0: compares with the fill value. */
static void transfer_rows(hid_t dataset, int stage, hsize_t from, hsize_t to, bool write) {
  hsize_t start[2] = {0, 0}, count[2] = {0, kColumns};
  my_rows(from, to, &start[0], &count[0]);
  size_t cells = (size_t)(count[0] * kColumns);
  int32_t* data = malloc((cells + 1) * sizeof *data);
  REQUIRE(data != NULL);

  hid_t in_file = H5Dget_space(dataset), in_memory = H5Screate_simple(2, count, NULL);
  OK(in_file);
  OK(in_memory);
  if (cells == 0) {
    OK(H5Sselect_none(in_file));
    OK(H5Sselect_none(in_memory));
  } else {
    OK(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, count, NULL));
  }
  for (size_t i = 0; write && i < cells; ++i) {
    data[i] = value(stage, start[0] + i / kColumns, i % kColumns);
  }
  if (write) {
    OK(H5Dwrite(dataset, H5T_NATIVE_INT32, in_memory, in_file, transfer, data));
  } else {
    OK(H5Dread(dataset, H5T_NATIVE_INT32, in_memory, in_file, transfer, data));
  }
  for (size_t i = 0; !write && i < cells; ++i) {
    int32_t wanted = stage < 0 ? kFill : value(stage, start[0] + i / kColumns, i % kColumns);
    REQUIRE(data[i] == wanted);
  }
  OK(H5Sclose(in_memory));
  OK(H5Sclose(in_file));
  free(data);
}

/* The same for a one-dimensional dataset of `size` elements: every ranks-th is this rank's. */
static void transfer_interleaved(hid_t dataset, hsize_t size, bool write) {
  hsize_t start = (hsize_t)rank, stride = (hsize_t)ranks;
  hsize_t count = start < size ? (size - start + stride - 1) / stride : 0;
  double* data = malloc((size_t)(count + 1) * sizeof *data);
  REQUIRE(data != NULL);
  hid_t in_file = H5Dget_space(dataset), in_memory = H5Screate_simple(1, &count, NULL);
  OK(in_file);
  OK(in_memory);
  OK(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &start, &stride, &count, NULL));
  for (hsize_t i = 0; write && i < count; ++i) data[i] = 0.5 * (double)(start + i * stride);
  if (write) {
    OK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, data));
  } else {
    OK(H5Dread(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, data));
  }
  for (hsize_t i = 0; !write && i < count; ++i) {
    REQUIRE(data[i] == 0.5 * (double)(start + i * stride));
  }
  OK(H5Sclose(in_memory));
  OK(H5Sclose(in_file));
  free(data);
}

static void put_attribute(hid_t object, const char* name, int32_t number) {
  hid_t space = H5Screate(H5S_SCALAR), attribute;
  OK(space);
  if (H5Aexists(object, name) > 0) {
    attribute = H5Aopen(object, name, H5P_DEFAULT);
  } else {
    attribute = H5Acreate2(object, name, H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
  }
  OK(attribute);
  OK(H5Awrite(attribute, H5T_NATIVE_INT32, &number));
  OK(H5Aclose(attribute));
  OK(H5Sclose(space));
}

static int32_t get_attribute(hid_t object, const char* name) {
  int32_t number = 0;
  hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
  OK(attribute);
  OK(H5Aread(attribute, H5T_NATIVE_INT32, &number));
  OK(H5Aclose(attribute));
  return number;
}

/* A dataset of 32-bit integers, chunked and extendible if asked for. */
static hid_t create_rows(hid_t place, const char* name, hsize_t rows, bool chunked) {
  const hsize_t size[2] = {rows, kColumns}, chunk[2] = {16, 64};
  const hsize_t most[2] = {chunked ? H5S_UNLIMITED : rows, kColumns};
  const int32_t fill = kFill;
  hid_t space = H5Screate_simple(2, size, most), creation = H5Pcreate(H5P_DATASET_CREATE);
  OK(space);
  OK(creation);
  OK(H5Pset_fill_value(creation, H5T_NATIVE_INT32, &fill));
  OK(H5Pset_fill_time(creation, H5D_FILL_TIME_ALLOC));
  OK(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY));
  if (chunked) OK(H5Pset_chunk(creation, 2, chunk));
  hid_t dataset = H5Dcreate2(place, name, H5T_STD_I32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  OK(dataset);
  OK(H5Pclose(creation));
  OK(H5Sclose(space));
  return dataset;
}

static hid_t create_interleaved(hid_t place) {
  const hsize_t size = kLong, chunk = 4096;
  hid_t space = H5Screate_simple(1, &size, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
  OK(space);
  OK(creation);
  OK(H5Pset_chunk(creation, 1, &chunk));
  hid_t dataset =
      H5Dcreate2(place, "interleaved", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  OK(dataset);
  OK(H5Pclose(creation));
  OK(H5Sclose(space));
  return dataset;
}

static hid_t open_dataset(hid_t file, const char* name) {
  hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  OK(dataset);
  return dataset;
}

static void create(const char* name) {
  hid_t access = open_access();
  hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  OK(file);
  put_attribute(file, "stage", 1);
  hid_t group = H5Gcreate2(file, "grid", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  OK(group);
  put_attribute(group, "columns", kColumns);

  hid_t dataset = create_rows(group, "contiguous", kRows, false);
  transfer_rows(dataset, 1, 0, kRows, true);
  OK(H5Dclose(dataset));

  dataset = create_rows(group, "chunked", kOldRows, true);
  transfer_rows(dataset, 1, 0, kOldRows, true);
  OK(H5Dclose(dataset));

  /* Filled when it is created, then half of it written by other ranks than those that filled. */
  dataset = create_rows(group, "filled", kRows, false);
  transfer_rows(dataset, 1, 0, kRows / 2, true);
  OK(H5Dclose(dataset));

  dataset = create_interleaved(group);
  transfer_interleaved(dataset, kLong, true);
  OK(H5Dclose(dataset));

  OK(H5Gclose(group));
  OK(H5Fclose(file));
  OK(H5Pclose(access));
}

static void append(const char* name) {
  hid_t access = open_access();
  hid_t file = H5Fopen(name, H5F_ACC_RDWR, access);
  OK(file);
  put_attribute(file, "stage", 2);

  hid_t dataset = open_dataset(file, "grid/chunked");
  const hsize_t rows[2] = {kAllRows, kColumns};
  OK(H5Dset_extent(dataset, rows));
  transfer_rows(dataset, 2, kOldRows, kAllRows, true);
  OK(H5Dclose(dataset));
  OK(H5Fflush(file, H5F_SCOPE_GLOBAL));

  dataset = open_dataset(file, "grid/contiguous");
  transfer_rows(dataset, 2, 0, kPatched, true);
  transfer_rows(dataset, 2, 0, kPatched, false);
  OK(H5Dclose(dataset));

  const hsize_t shrunk = kShrunk;
  dataset = open_dataset(file, "grid/interleaved");
  OK(H5Dset_extent(dataset, &shrunk));
  OK(H5Dclose(dataset));

  hid_t group = H5Gcreate2(file, "later", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  OK(group);
  dataset = create_rows(group, "rows", kRows, true);
  transfer_rows(dataset, 3, 0, kRows, true);
  OK(H5Dclose(dataset));
  OK(H5Gclose(group));
  OK(H5Ldelete(file, "grid/filled", H5P_DEFAULT));
  OK(H5Fclose(file));
  OK(H5Pclose(access));
}

static void check(const char* name, int stage) {
  hid_t access = open_access();
  hid_t file = H5Fopen(name, H5F_ACC_RDONLY, access);
  OK(file);
  REQUIRE(get_attribute(file, "stage") == stage);
  hid_t group = H5Gopen2(file, "grid", H5P_DEFAULT);
  OK(group);
  REQUIRE(get_attribute(group, "columns") == kColumns);
  OK(H5Gclose(group));

  hid_t dataset = open_dataset(file, "grid/contiguous");
  transfer_rows(dataset, stage, 0, kPatched, false);
  transfer_rows(dataset, 1, kPatched, kRows, false);
  OK(H5Dclose(dataset));

  dataset = open_dataset(file, "grid/chunked");
  transfer_rows(dataset, 1, 0, kOldRows, false);
  if (stage == 2) transfer_rows(dataset, 2, kOldRows, kAllRows, false);
  OK(H5Dclose(dataset));

  dataset = open_dataset(file, "grid/interleaved");
  transfer_interleaved(dataset, stage == 2 ? kShrunk : kLong, false);
  OK(H5Dclose(dataset));

  if (stage == 1) {
    dataset = open_dataset(file, "grid/filled");
    transfer_rows(dataset, 1, 0, kRows / 2, false);
    transfer_rows(dataset, -1, kRows / 2, kRows, false);
  } else {
    REQUIRE(H5Lexists(file, "grid/filled", H5P_DEFAULT) == 0);
    dataset = open_dataset(file, "later/rows");
    transfer_rows(dataset, 3, 0, kRows, false);
  }
  OK(H5Dclose(dataset));
  OK(H5Fclose(file));
  OK(H5Pclose(access));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(argc == 3 || argc == 4);
  const bool independent = argc == 4 && strcmp(argv[3], "independent") == 0;
  transfer = H5Pcreate(H5P_DATASET_XFER);
  OK(transfer);
  OK(H5Pset_dxpl_mpio(transfer, independent ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE));
  if (strcmp(argv[1], "create") == 0) {
    create(argv[2]);
  } else if (strcmp(argv[1], "append") == 0) {
    append(argv[2]);
  } else if (strcmp(argv[1], "check-created") == 0) {
    check(argv[2], 1);
  } else {
    REQUIRE(strcmp(argv[1], "check-appended") == 0);
    check(argv[2], 2);
  }
  OK(H5Pclose(transfer));
  MPI_Finalize();
  return 0;
}
