// Pieces of a file and of memory, as HDF5 gives them, in one call of the engine.
#pragma once

#include <H5public.h>

#include <cstddef>
#include <vector>

#include "engine/dedup.h"

namespace dedup::hdf5 {

struct Piece {
  haddr_t at = 0;  // in the file
  std::size_t bytes = 0;
  void* memory = nullptr;
};

// One call's: many pieces, or one that MPI's datatypes describe.
class Transfer {
 public:
  // In any order; they do not overlap in the file, unless they are read.
  explicit Transfer(std::vector<Piece> pieces);
  // From `at` on in the file, as `file` says; `count` of `memory` from `buffer` on.
  Transfer(haddr_t at, MPI_Datatype file, void* buffer, std::size_t count, MPI_Datatype memory);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // These throw with the engine's words.
  void write(dedup_file* file, dedup_how how) const;
  // Zeros where the file has ended.
  void read(dedup_file* file, dedup_how how) const;

  std::size_t bytes() const { return static_cast<std::size_t>(access_.bytes); }
  haddr_t end() const;  // of what it is in the file

 private:
  // The pieces of one repetition.
  struct Flat {
    std::vector<MPI_Offset> offsets;
    std::vector<MPI_Offset> lengths;
    MPI_Offset extent = 0;
    MPI_Offset size = 0;

    static Flat of(MPI_Datatype datatype);
    void append(MPI_Offset offset, MPI_Offset length);
    dedup_flat view() const;
  };

  Flat file_;
  Flat memory_;
  dedup_access access_{};
};

}  // namespace dedup::hdf5
