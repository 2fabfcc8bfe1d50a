#include "checkpoint.h"

#include <hdf5.h>

#include <utility>

namespace heat3d {
namespace {

// An HDF5 id, closed at the end of its scope.
class Handle {
 public:
  Handle(hid_t id, herr_t (*closer)(hid_t), const std::string& what) : id_(id), closer_(closer) {
    if (id_ < 0) fail("cannot " + what);
  }
  ~Handle() {
    if (id_ >= 0) closer_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}

  operator hid_t() const { return id_; }

  // Closes now. What was written is only safe if this succeeds: for a file that is where data and
  // metadata reach the storage.
  void close(const std::string& what) {
    if (closer_(std::exchange(id_, -1)) < 0) fail("cannot " + what);
  }

 private:
  hid_t id_;
  herr_t (*closer_)(hid_t);
};

void check(herr_t result, const std::string& what) {
  if (result < 0) fail("cannot " + what);
}

// The properties that make all ranks of `comm` open a file together.
Handle parallel_access(MPI_Comm comm) {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "create file access properties");
  check(H5Pset_fapl_mpio(access, comm, MPI_INFO_NULL), "choose the MPI-IO driver");
  check(H5Pset_all_coll_metadata_ops(access, true), "choose collective metadata reads");
  check(H5Pset_coll_metadata_write(access, true), "choose collective metadata writes");
  return access;
}

Handle collective_transfer() {
  Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose, "create transfer properties");
  check(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE), "choose collective transfer");
  return transfer;
}

// A dataspace of `size` in which the `count` cells from `begin` on are selected.
Handle selection(const Cells& size, const Cells& begin, const Cells& count) {
  hsize_t sizes[3], begins[3], counts[3];
  bool empty = false;
  for (std::size_t a = 0; a < 3; ++a) {
    sizes[a] = static_cast<hsize_t>(size[a]);
    begins[a] = static_cast<hsize_t>(begin[a]);
    counts[a] = static_cast<hsize_t>(count[a]);
    empty = empty || count[a] == 0;
  }
  Handle space(H5Screate_simple(3, sizes, nullptr), H5Sclose, "create a dataspace");
  check(empty ? H5Sselect_none(space)
              : H5Sselect_hyperslab(space, H5S_SELECT_SET, begins, nullptr, counts, nullptr),
        "select a box of cells");
  return space;
}

template <typename T>
void write_attribute(hid_t file, const char* name, hid_t type, const T& value) {
  const std::string what = std::string("write attribute ") + name;
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, what);
  const Handle attribute(H5Acreate(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         what);
  check(H5Awrite(attribute, type, &value), what);
}

template <typename T>
void read_attribute(hid_t file, const char* name, hid_t type, T& value) {
  const std::string what = std::string("read attribute ") + name;
  const Handle attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose, what);
  check(H5Aread(attribute, type, &value), what);
}

void write_field(const Grid& grid, const Field& field, hid_t file, const std::string& name) {
  const Handle in_file = selection(grid.size(), grid.begin(), grid.count());
  const Handle in_memory = selection(field.with_ghosts(), {1, 1, 1}, grid.count());
  const Handle dataset(
      H5Dcreate(file, name.c_str(), H5T_IEEE_F64LE, in_file, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      H5Dclose, "create dataset " + name);
  check(
      H5Dwrite(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, collective_transfer(), field.data()),
      "write dataset " + name);
}

void read_field(const Grid& grid, Field& field, hid_t file, const std::string& name) {
  const Handle in_file = selection(grid.size(), grid.begin(), grid.count());
  const Handle in_memory = selection(field.with_ghosts(), {1, 1, 1}, grid.count());
  const Handle dataset(H5Dopen(file, name.c_str(), H5P_DEFAULT), H5Dclose, "open dataset " + name);
  check(
      H5Dread(dataset, H5T_NATIVE_DOUBLE, in_memory, in_file, collective_transfer(), field.data()),
      "read dataset " + name);
}

}  // namespace

Cells checkpoint_size(MPI_Comm comm, const std::string& name) {
  const Handle file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, parallel_access(comm)), H5Fclose,
                    "open checkpoint " + name);
  const Handle dataset(H5Dopen(file, "temperature", H5P_DEFAULT), H5Dclose,
                       "open dataset temperature");
  const Handle space(H5Dget_space(dataset), H5Sclose, "get the size of dataset temperature");
  hsize_t size[3];
  if (H5Sget_simple_extent_ndims(space) != 3) fail(name + " is not a checkpoint of heat3d");
  check(H5Sget_simple_extent_dims(space, size, nullptr), "get the size of dataset temperature");
  return {static_cast<int>(size[0]), static_cast<int>(size[1]), static_cast<int>(size[2])};
}

void write_checkpoint(const Grid& grid, const State& state, const std::string& name) {
  const std::uint64_t sum = checksum(grid, state.temperature);
  Handle file(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, parallel_access(grid.comm())),
              H5Fclose, "create checkpoint " + name);
  write_field(grid, state.temperature, file, "temperature");
  write_field(grid, state.conductivity, file, "conductivity");
  write_field(grid, state.capacity, file, "capacity");
  write_field(grid, state.power, file, "power");
  write_attribute(file, "step", H5T_NATIVE_INT64, state.step);
  write_attribute(file, "checksum", H5T_NATIVE_UINT64, sum);
  file.close("close checkpoint " + name);
}

void read_checkpoint(const Grid& grid, State& state, const std::string& name) {
  const Handle file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, parallel_access(grid.comm())), H5Fclose,
                    "open checkpoint " + name);
  read_field(grid, state.temperature, file, "temperature");
  read_field(grid, state.conductivity, file, "conductivity");
  read_field(grid, state.capacity, file, "capacity");
  read_field(grid, state.power, file, "power");
  read_attribute(file, "step", H5T_NATIVE_INT64, state.step);
  std::uint64_t sum = 0;
  read_attribute(file, "checksum", H5T_NATIVE_UINT64, sum);
  if (sum != checksum(grid, state.temperature)) fail("wrong checksum in checkpoint " + name);
}

void write_result(const Grid& grid, const Field& temperature, const std::string& name) {
  const auto check_mpi = [&](int result, const char* what) {
    if (result == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(result, text, &length);
    fail(std::string("cannot ") + what + " " + name + ": " + text);
  };
  // A subarray must not be empty: a rank without cells writes 0 elements of one cell's type.
  const Cells one = {1, 1, 1}, first = {0, 0, 0};
  const Cells& extent = grid.empty() ? one : grid.count();
  MPI_Datatype in_file, in_memory;
  MPI_Type_create_subarray(3, grid.size().data(), extent.data(),
                           grid.empty() ? first.data() : grid.begin().data(), MPI_ORDER_C,
                           MPI_DOUBLE, &in_file);
  MPI_Type_create_subarray(3, temperature.with_ghosts().data(), extent.data(), one.data(),
                           MPI_ORDER_C, MPI_DOUBLE, &in_memory);
  MPI_Type_commit(&in_file);
  MPI_Type_commit(&in_memory);

  MPI_File file;
  check_mpi(MPI_File_open(grid.comm(), name.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                          MPI_INFO_NULL, &file),
            "create");
  check_mpi(MPI_File_set_size(file, 0), "truncate");
  check_mpi(MPI_File_set_view(file, 0, MPI_DOUBLE, in_file, "native", MPI_INFO_NULL), "write");
  check_mpi(MPI_File_write_all(file, temperature.data(), grid.empty() ? 0 : 1, in_memory,
                               MPI_STATUS_IGNORE),
            "write");
  check_mpi(MPI_File_close(&file), "close");
  MPI_Type_free(&in_file);
  MPI_Type_free(&in_memory);
}

}  // namespace heat3d
