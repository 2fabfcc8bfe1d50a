// Datatypes as lists of pieces.
#pragma once

#include <mpi.h>

#include <vector>

namespace dedup::engine {

// In the order of the data, none of them empty, neighbours joined. Offsets and lengths in bytes.
class PieceList {
 public:
  // Those of one item of a datatype.
  static PieceList of(MPI_Datatype datatype);

  const std::vector<MPI_Offset>& offsets() const { return offsets_; }
  const std::vector<MPI_Offset>& lengths() const { return lengths_; }

  void append(MPI_Offset offset, MPI_Offset length);
  // `count` copies of `item`, the first at `offset`, each `stride` behind the one before it.
  void append_copies(const PieceList& item, MPI_Count count, MPI_Offset offset, MPI_Offset stride);

 private:
  std::vector<MPI_Offset> offsets_;
  std::vector<MPI_Offset> lengths_;
};

}  // namespace dedup::engine
