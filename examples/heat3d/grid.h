// The global grid, the box of it that this rank owns, and fields on that box.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace heat3d {

// Numbers of cells or positions of a cell, in the order z, y, x: x runs fastest in memory and
// files.
using Cells = std::array<int, 3>;

// What all ranks must agree on failed on this one: says so and ends the whole program.
[[noreturn]] void fail(const std::string& what);

// One double for each cell of a rank's box, and one layer of ghost cells around it.
class Field {
 public:
  explicit Field(const Cells& count) : with_ghosts_{count[0] + 2, count[1] + 2, count[2] + 2} {
    values_.assign(stride(0) * static_cast<std::size_t>(with_ghosts_[0]), 0.0);
  }

  const Cells& with_ghosts() const { return with_ghosts_; }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }

  // How far apart in memory neighbours along `axis` are.
  std::size_t stride(int axis) const {
    std::size_t cells = 1;
    for (int a = 2; a > axis; --a) cells *= static_cast<std::size_t>(with_ghosts_[a]);
    return cells;
  }
  // Where cell (z, y, x) of the box is in memory; -1 and count are ghosts.
  std::size_t at(int z, int y, int x) const {
    return static_cast<std::size_t>(z + 1) * stride(0) +
           static_cast<std::size_t>(y + 1) * stride(1) + static_cast<std::size_t>(x + 1);
  }
  double& operator()(int z, int y, int x) { return values_[at(z, y, x)]; }
  double operator()(int z, int y, int x) const { return values_[at(z, y, x)]; }

 private:
  Cells with_ghosts_;
  std::vector<double> values_;
};

enum class Split { slabs, boxes };

// Splits a grid over the ranks of `comm`, in slabs along z or in boxes. Any number of ranks will
// do: the first ones along an axis get one cell more where it does not divide evenly, and the last
// ones get none if there are more ranks than cells.
class Grid {
 public:
  Grid(MPI_Comm comm, const Cells& size, Split split);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  MPI_Comm comm() const { return comm_; }
  const Cells& size() const { return size_; }    // of the whole grid
  const Cells& begin() const { return begin_; }  // the box's first cell
  const Cells& count() const { return count_; }  // the box's extent
  bool empty() const { return count_[0] == 0 || count_[1] == 0 || count_[2] == 0; }

  // Fills the ghosts of `field` that have a cell in another rank's box; the others, outside of the
  // grid, stay as they are. Collective.
  void exchange(Field& field) const;

 private:
  struct Face {
    int neighbour;  // its rank
    MPI_Datatype inner, ghosts;
  };

  MPI_Comm comm_ = MPI_COMM_NULL;
  Cells size_, begin_{}, count_{};
  std::vector<Face> faces_;
};

}  // namespace heat3d
