#include "grid.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace heat3d {

void fail(const std::string& what) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "heat3d: rank %d: %s\n", rank, what.c_str());
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::abort();
}

Grid::Grid(MPI_Comm comm, const Cells& size, Split split) : size_(size) {
  int ranks = 0;
  MPI_Comm_size(comm, &ranks);
  Cells parts = {0, 0, 0};
  if (split == Split::slabs) parts = {ranks, 1, 1};
  MPI_Dims_create(ranks, 3, parts.data());
  const Cells periodic = {0, 0, 0};
  MPI_Cart_create(comm, 3, parts.data(), periodic.data(), 0, &comm_);

  int rank = 0;
  MPI_Comm_rank(comm_, &rank);
  Cells place;
  MPI_Cart_coords(comm_, rank, 3, place.data());
  for (std::size_t a = 0; a < 3; ++a) {
    const int even = size[a] / parts[a], extra = size[a] % parts[a];
    begin_[a] = place[a] * even + std::min(place[a], extra);
    count_[a] = even + (place[a] < extra ? 1 : 0);
  }
  if (empty()) return;

  const Field shape(count_);
  const auto face_type = [&](const Cells& extent, const Cells& start) {
    MPI_Datatype type;
    MPI_Type_create_subarray(3, shape.with_ghosts().data(), extent.data(), start.data(),
                             MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
  };
  for (std::size_t a = 0; a < 3; ++a) {
    int before, after;
    MPI_Cart_shift(comm_, static_cast<int>(a), 1, &before, &after);
    Cells extent = count_;
    extent[a] = 1;
    Cells inner = {1, 1, 1}, ghosts = {1, 1, 1};
    if (begin_[a] > 0) {
      ghosts[a] = 0;
      faces_.push_back({before, face_type(extent, inner), face_type(extent, ghosts)});
    }
    if (begin_[a] + count_[a] < size[a]) {
      inner[a] = count_[a];
      ghosts[a] = count_[a] + 1;
      faces_.push_back({after, face_type(extent, inner), face_type(extent, ghosts)});
    }
  }
}

Grid::~Grid() {
  for (Face& face : faces_) {
    MPI_Type_free(&face.inner);
    MPI_Type_free(&face.ghosts);
  }
  MPI_Comm_free(&comm_);
}

void Grid::exchange(Field& field) const {
  std::vector<MPI_Request> requests;
  for (const Face& face : faces_) {
    MPI_Irecv(field.data(), 1, face.ghosts, face.neighbour, 0, comm_, &requests.emplace_back());
    MPI_Isend(field.data(), 1, face.inner, face.neighbour, 0, comm_, &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace heat3d
