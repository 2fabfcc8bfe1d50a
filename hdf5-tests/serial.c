/* A serial program that uses HDF5 through MPI-IO: one process, MPI_COMM_SELF, what serial programs
 * do with HDF5 (compression, strings, links, appending, deleting) and nothing parallel.
 *
 *   serial create|append|check-created|check-appended FILE
 */
#include <hdf5.h>
#include <mpi.h>
#include <string.h>

#include "check.h"

enum { kSamples = 5000, kAppended = 12345 };

static const char kTitle[] = "time series of a serial program";

static hid_t open_file(const char* name, int create, unsigned flags) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  OK(access);
  OK(H5Pset_fapl_mpio(access, MPI_COMM_SELF, MPI_INFO_NULL));
  hid_t file = create ? H5Fcreate(name, flags, H5P_DEFAULT, access) : H5Fopen(name, flags, access);
  OK(file);
  OK(H5Pclose(access));
  return file;
}

static double sample(hsize_t i) {
  return 0.25 * (double)(i % 1000) - (double)(i / 1000);
}

/* With MPI-IO, HDF5 writes compressed chunks in collective calls only, also if there is one
 * process. */
static hid_t collective(void) {
  hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
  OK(transfer);
  OK(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
  return transfer;
}

/* Appends samples [from, to) to the dataset "samples", in pieces as a time loop would. */
static void append_samples(hid_t dataset, hsize_t from, hsize_t to) {
  const hsize_t piece = 700;
  double data[700];
  hid_t transfer = collective();
  for (hsize_t at = from; at < to; at += piece) {
    const hsize_t count = to - at < piece ? to - at : piece, size = at + count;
    for (hsize_t i = 0; i < count; ++i) data[i] = sample(at + i);
    OK(H5Dset_extent(dataset, &size));
    hid_t in_file = H5Dget_space(dataset), in_memory = H5Screate_simple(1, &count, NULL);
    OK(in_file);
    OK(in_memory);
    OK(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, &at, NULL, &count, NULL));
    OK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, transfer, data));
    OK(H5Sclose(in_memory));
    OK(H5Sclose(in_file));
  }
  OK(H5Pclose(transfer));
}

static void put_title(hid_t object, const char* title) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  OK(type);
  OK(space);
  OK(H5Tset_size(type, H5T_VARIABLE));
  hid_t attribute = H5Acreate2(object, "title", type, space, H5P_DEFAULT, H5P_DEFAULT);
  OK(attribute);
  OK(H5Awrite(attribute, type, &title));
  OK(H5Aclose(attribute));
  OK(H5Sclose(space));
  OK(H5Tclose(type));
}

static void require_title(hid_t object, const char* title) {
  hid_t attribute = H5Aopen(object, "title", H5P_DEFAULT);
  OK(attribute);
  hid_t type = H5Aget_type(attribute);
  OK(type);
  char* text = NULL;
  OK(H5Aread(attribute, type, &text));
  REQUIRE(text != NULL && strcmp(text, title) == 0);
  OK(H5free_memory(text));
  OK(H5Tclose(type));
  OK(H5Aclose(attribute));
}

static void create(const char* name) {
  hid_t file = open_file(name, 1, H5F_ACC_TRUNC);
  put_title(file, kTitle);
  hid_t group = H5Gcreate2(file, "run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  OK(group);
  const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = 512;
  hid_t space = H5Screate_simple(1, &none, &unlimited), creation = H5Pcreate(H5P_DATASET_CREATE);
  OK(space);
  OK(creation);
  OK(H5Pset_chunk(creation, 1, &chunk));
  OK(H5Pset_shuffle(creation));
  OK(H5Pset_deflate(creation, 4));
  hid_t dataset =
      H5Dcreate2(group, "samples", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  OK(dataset);
  append_samples(dataset, 0, kSamples);
  OK(H5Dclose(dataset));
  OK(H5Pclose(creation));
  OK(H5Sclose(space));
  OK(H5Lcreate_soft("/run/samples", file, "latest", H5P_DEFAULT, H5P_DEFAULT));
  hid_t scratch = H5Gcreate2(group, "scratch", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  OK(scratch);
  OK(H5Gclose(scratch));
  OK(H5Gclose(group));
  OK(H5Fclose(file));
}

static void append(const char* name) {
  hid_t file = open_file(name, 0, H5F_ACC_RDWR);
  hid_t dataset = H5Dopen2(file, "latest", H5P_DEFAULT);
  OK(dataset);
  append_samples(dataset, kSamples, kAppended / 2);
  OK(H5Fflush(file, H5F_SCOPE_LOCAL));
  append_samples(dataset, kAppended / 2, kAppended);
  put_title(dataset, "appended to");
  OK(H5Dclose(dataset));
  OK(H5Ldelete(file, "run/scratch", H5P_DEFAULT));
  OK(H5Fclose(file));
}

static void check(const char* name, hsize_t samples) {
  static double data[kAppended];
  const int appended = samples == kAppended;
  hid_t file = open_file(name, 0, H5F_ACC_RDONLY);
  require_title(file, kTitle);
  hid_t dataset = H5Dopen2(file, "latest", H5P_DEFAULT);
  OK(dataset);
  hid_t space = H5Dget_space(dataset);
  OK(space);
  REQUIRE(H5Sget_simple_extent_npoints(space) == (hssize_t)samples);
  OK(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
  for (hsize_t i = 0; i < samples; ++i) REQUIRE(data[i] == sample(i));
  if (appended) require_title(dataset, "appended to");
  REQUIRE((H5Lexists(file, "run/scratch", H5P_DEFAULT) > 0) == !appended);
  OK(H5Sclose(space));
  OK(H5Dclose(dataset));
  OK(H5Fclose(file));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  REQUIRE(argc == 3);
  if (strcmp(argv[1], "create") == 0) {
    create(argv[2]);
  } else if (strcmp(argv[1], "append") == 0) {
    append(argv[2]);
  } else if (strcmp(argv[1], "check-created") == 0) {
    check(argv[2], kSamples);
  } else {
    REQUIRE(strcmp(argv[1], "check-appended") == 0);
    check(argv[2], kAppended);
  }
  MPI_Finalize();
  return 0;
}
