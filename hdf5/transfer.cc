#include "hdf5/transfer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "hdf5/error_stack.h"

namespace dedup::hdf5 {

Transfer::Flat Transfer::Flat::of(MPI_Datatype datatype) {
  dedup_pieces pieces{};
  if (dedup_get_pieces(datatype, &pieces) == 0) throw std::bad_alloc();
  const std::unique_ptr<MPI_Offset, decltype(&std::free)> offsets(pieces.offsets, &std::free);
  const std::unique_ptr<MPI_Offset, decltype(&std::free)> lengths(pieces.lengths, &std::free);
  Flat flat;
  flat.offsets.assign(pieces.offsets, pieces.offsets + pieces.count);
  flat.lengths.assign(pieces.lengths, pieces.lengths + pieces.count);
  MPI_Count number = 0;
  MPI_Count lower = 0;
  PMPI_Type_size_x(datatype, &number);
  flat.size = number;
  PMPI_Type_get_extent_x(datatype, &lower, &number);
  flat.extent = number;
  return flat;
}

void Transfer::Flat::append(MPI_Offset offset, MPI_Offset length) {
  if (!offsets.empty() && offsets.back() + lengths.back() == offset) {
    lengths.back() += length;
  } else {
    offsets.push_back(offset);
    lengths.push_back(length);
  }
  size += length;
}

dedup_flat Transfer::Flat::view() const {
  return {static_cast<MPI_Count>(offsets.size()), offsets.data(), lengths.data(), extent, size};
}

// In the order of the file. Offsets in memory count from its lowest byte.
Transfer::Transfer(std::vector<Piece> pieces) {
  std::erase_if(pieces, [](const Piece& piece) { return piece.bytes == 0; });
  std::ranges::stable_sort(pieces, std::less(), &Piece::at);
  const auto lowest = std::ranges::min_element(pieces, std::less(), &Piece::memory);
  char* const memory = lowest == pieces.end() ? nullptr : static_cast<char*>(lowest->memory);
  for (const Piece& piece : pieces) {
    const auto bytes = static_cast<MPI_Offset>(piece.bytes);
    file_.append(static_cast<MPI_Offset>(piece.at), bytes);
    memory_.append(static_cast<char*>(piece.memory) - memory, bytes);
  }
  access_.filetype = file_.view();
  access_.memtype = memory_.view();
  access_.buf = memory;
  access_.bytes = file_.size;
}

Transfer::Transfer(haddr_t at, MPI_Datatype file, void* buffer, std::size_t count,
                   MPI_Datatype memory)
    : file_(Flat::of(file)), memory_(Flat::of(memory)) {
  access_.disp = static_cast<MPI_Offset>(at);
  access_.filetype = file_.view();
  access_.memtype = memory_.view();
  access_.buf = buffer;
  access_.bytes = static_cast<MPI_Offset>(count) * memory_.size;
}

void Transfer::write(dedup_file* file, dedup_how how) const {
  dedup_error error{};
  check(dedup_write(file, &access_, how, &error), error);
}

void Transfer::read(dedup_file* file, dedup_how how) const {
  dedup_error error{};
  MPI_Offset there = 0;
  check(dedup_read(file, &access_, how, &there, &error), error);
  if (there == access_.bytes) return;
  MPI_Offset left = access_.bytes;
  for (auto* memory = static_cast<char*>(access_.buf); left > 0; memory += memory_.extent) {
    for (std::size_t i = 0; i < memory_.offsets.size() && left > 0; ++i) {
      const MPI_Offset length = std::min(left, memory_.lengths[i]);
      const MPI_Offset read = std::min(there, length);
      std::memset(memory + memory_.offsets[i] + read, 0, static_cast<std::size_t>(length - read));
      there -= read;
      left -= length;
    }
  }
}

haddr_t Transfer::end() const {
  if (access_.bytes == 0) return 0;
  const MPI_Offset last = (access_.bytes - 1) / file_.size;  // repetition
  MPI_Offset end = 0;
  for (std::size_t i = 0; i < file_.offsets.size(); ++i) {
    end = std::max(end, file_.offsets[i] + file_.lengths[i]);
  }
  return static_cast<haddr_t>(access_.disp + last * file_.extent + end);
}

}  // namespace dedup::hdf5
