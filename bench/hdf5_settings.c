/* Writes an HDF5 file collectively, in one of several layouts.
 *
 *   hdf5_settings FILE LAYOUT MIB_PER_RANK
 *
 * The first half of what each rank writes is the same on all ranks, the second half nobody else
 * has. LAYOUT: block; aligned, by H5Pset_alignment; datasets, of 128 KiB a rank, one after the
 * other; metadata, the same with collective metadata operations; chunks of 1 MiB, each rank's own;
 * unfilled, the same without fill values; straddling, chunks of two ranks, without fill values;
 * columns-N, ranks side by side in rows, N bytes each; independent. */
#include <hdf5.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../hdf5-tests/check.h"

static int rank, ranks;

static int is(const char* layout, const char* name) {
  return strcmp(layout, name) == 0;
}

static void fill(uint64_t* data, size_t words, uint64_t seed) {
  uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
  for (size_t i = 0; i < words; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    data[i] = state;
  }
}

/* Writes this rank's words, a block of a dataset of one or two dimensions. */
static void write_block(hid_t file, const char* name, hid_t dcpl, hid_t dxpl, int dimensions,
                        const hsize_t* all, const hsize_t* start, const hsize_t* count,
                        const uint64_t* data) {
  const hid_t space = H5Screate_simple(dimensions, all, NULL);
  const hid_t set =
      H5Dcreate2(file, name, H5T_NATIVE_UINT64, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
  const hid_t memory = H5Screate_simple(dimensions, count, NULL);
  REQUIRE(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
  REQUIRE(H5Dwrite(set, H5T_NATIVE_UINT64, memory, space, dxpl, data) >= 0);
  REQUIRE(H5Sclose(memory) >= 0 && H5Dclose(set) >= 0 && H5Sclose(space) >= 0);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(argc == 4);
  const char* layout = argv[2];
  const hsize_t words = (hsize_t)atol(argv[3]) << 17;
  uint64_t* data = malloc(words * 8);
  REQUIRE(data != NULL);
  fill(data, words / 2, 0);
  fill(data + words / 2, words / 2, (uint64_t)rank + 1);

  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  REQUIRE(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
  if (is(layout, "metadata")) {
    REQUIRE(H5Pset_coll_metadata_write(fapl, 1) >= 0);
    REQUIRE(H5Pset_all_coll_metadata_ops(fapl, 1) >= 0);
  }
  if (is(layout, "aligned")) REQUIRE(H5Pset_alignment(fapl, 65536, 65536) >= 0);
  const hid_t dxpl = H5Pcreate(H5P_DATASET_XFER);
  REQUIRE(H5Pset_dxpl_mpio(
              dxpl, is(layout, "independent") ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE) >= 0);
  const hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
  hsize_t chunk = 0;
  if (is(layout, "chunks") || is(layout, "unfilled")) chunk = 131072;
  if (is(layout, "straddling")) chunk = 100000;
  if (is(layout, "unfilled") || is(layout, "straddling")) {
    REQUIRE(H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) >= 0);
  }
  if (chunk != 0) REQUIRE(H5Pset_chunk(dcpl, 1, &chunk) >= 0);

  const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
  REQUIRE(file >= 0);
  if (strncmp(layout, "columns-", 8) == 0) {
    const hsize_t width = (hsize_t)atol(layout + 8) / 8;
    const hsize_t all[] = {words / width, width * (hsize_t)ranks};
    const hsize_t start[] = {0, width * (hsize_t)rank};
    const hsize_t count[] = {all[0], width};
    write_block(file, "data", dcpl, dxpl, 2, all, start, count, data);
  } else {
    const hsize_t each = is(layout, "datasets") || is(layout, "metadata") ? 16384 : words;
    for (hsize_t done = 0; done < words; done += each) {
      char name[32];
      snprintf(name, sizeof name, "data%llu", (unsigned long long)(done / each));
      const hsize_t all = each * (hsize_t)ranks;
      const hsize_t start = each * (hsize_t)rank;
      write_block(file, name, dcpl, dxpl, 1, &all, &start, &each, data + done);
    }
  }
  REQUIRE(H5Fclose(file) >= 0);
  H5Pclose(dcpl);
  H5Pclose(dxpl);
  H5Pclose(fapl);
  free(data);
  MPI_Finalize();
  return 0;
}
