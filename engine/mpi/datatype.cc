#include "engine/mpi/datatype.h"

#include <algorithm>
#include <cstddef>

namespace dedup::engine {
namespace {

// ---- How a datatype was made
// ---------------------------------------------------------------------

class Contents {
 public:
  explicit Contents(MPI_Datatype datatype) { get(datatype); }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;
  ~Contents() {
    for (MPI_Datatype& type : types_) {
      if (combiner_of(type) != MPI_COMBINER_NAMED) PMPI_Type_free(&type);
    }
  }

  int combiner() const { return combiner_; }
  MPI_Datatype type(MPI_Count i = 0) const { return types_[static_cast<std::size_t>(i)]; }
  // What has no large-count form.
  int integer(MPI_Count i) const { return integers_[static_cast<std::size_t>(i)]; }
  bool is_large() const { return !large_.empty(); }
  // The i-th of the numbers that large-count functions take as MPI_Count and others as int.
  MPI_Count number(MPI_Count i) const {
    return is_large() ? large_[static_cast<std::size_t>(i)] : integer(i);
  }
  // The i-th displacement in bytes; those follow `before` other numbers in the large-count form.
  MPI_Count displacement(MPI_Count before, MPI_Count i) const {
    return is_large() ? large_[static_cast<std::size_t>(before + i)]
                      : addresses_[static_cast<std::size_t>(i)];
  }

 private:
  static int combiner_of(MPI_Datatype type) {
    int integers = 0;
    int addresses = 0;
    int types = 0;
    int combiner = MPI_COMBINER_NAMED;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner;
  }
  template <typename Count>
  void make_room(Count integers, Count addresses, Count types) {
    integers_.resize(static_cast<std::size_t>(integers));
    addresses_.resize(static_cast<std::size_t>(addresses));
    types_.resize(static_cast<std::size_t>(types));
  }
  void get(MPI_Datatype datatype);

  int combiner_ = MPI_COMBINER_NAMED;
  std::vector<int> integers_;
  std::vector<MPI_Aint> addresses_;
  std::vector<MPI_Count> large_;  // a type made by a large-count (_c) function has its numbers here
  std::vector<MPI_Datatype> types_;
};

#if MPI_VERSION >= 4
void Contents::get(MPI_Datatype datatype) {
  MPI_Count integers = 0;
  MPI_Count addresses = 0;
  MPI_Count large = 0;
  MPI_Count types = 0;
  PMPI_Type_get_envelope_c(datatype, &integers, &addresses, &large, &types, &combiner_);
  if (combiner_ == MPI_COMBINER_NAMED) return;
  make_room(integers, addresses, types);
  large_.resize(static_cast<std::size_t>(large));
  PMPI_Type_get_contents_c(datatype, integers, addresses, large, types, integers_.data(),
                           addresses_.data(), large_.data(), types_.data());
}
#else  // which has no large-count functions
void Contents::get(MPI_Datatype datatype) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner_);
  if (combiner_ == MPI_COMBINER_NAMED) return;
  make_room(integers, addresses, types);
  PMPI_Type_get_contents(datatype, integers, addresses, types, integers_.data(), addresses_.data(),
                         types_.data());
}
#endif

// ---- Flattening
// ----------------------------------------------------------------------------------

MPI_Count extent_of(MPI_Datatype datatype) {
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  PMPI_Type_get_extent_x(datatype, &lower, &extent);
  return extent;
}

// MPI_SHORT_INT and its like have a hole between the number and the int behind it, or after both.
PieceList flatten_named(MPI_Datatype datatype) {
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  PMPI_Type_size_x(datatype, &size);
  PMPI_Type_get_true_extent_x(datatype, &lower, &extent);
  PieceList list;
  if (size == extent) {
    list.append(0, size);
  } else {
    constexpr MPI_Offset kSecond = sizeof(int);
    list.append(0, size - kSecond);
    list.append(extent - kSecond, kSecond);
  }
  return list;
}

PieceList flatten_blocks(const Contents& c) {
  const MPI_Count count = c.number(0);
  const MPI_Count extent = extent_of(c.type());
  const PieceList item = PieceList::of(c.type());
  PieceList list;
  for (MPI_Count i = 0; i < count; ++i) {
    MPI_Count length = 1;
    MPI_Count offset = 0;
    switch (c.combiner()) {
      case MPI_COMBINER_VECTOR:
        length = c.number(1);
        offset = i * c.number(2) * extent;
        break;
      case MPI_COMBINER_HVECTOR:
        length = c.number(1);
        offset = i * c.displacement(2, 0);
        break;
      case MPI_COMBINER_INDEXED:
        length = c.number(1 + i);
        offset = c.number(1 + count + i) * extent;
        break;
      case MPI_COMBINER_HINDEXED:
        length = c.number(1 + i);
        offset = c.displacement(1 + count, i);
        break;
      case MPI_COMBINER_INDEXED_BLOCK:
        length = c.number(1);
        offset = c.number(2 + i) * extent;
        break;
      case MPI_COMBINER_HINDEXED_BLOCK:
        length = c.number(1);
        offset = c.displacement(2, i);
        break;
      default:
        break;
    }
    list.append_copies(item, length, offset, extent);
  }
  return list;
}

PieceList flatten_struct(const Contents& c) {
  const MPI_Count count = c.number(0);
  PieceList list;
  for (MPI_Count i = 0; i < count; ++i) {
    if (c.number(1 + i) == 0) continue;
    list.append_copies(PieceList::of(c.type(i)), c.number(1 + i), c.displacement(1 + count, i),
                       extent_of(c.type(i)));
  }
  return list;
}

// Part of one dimension of an array.
struct Run {
  MPI_Count first;
  MPI_Count count;
};

// An array, of which parts of each dimension count: row by row, then plane by plane, from the
// dimension that varies fastest. `runs(d)` are dimension d's, `size(d)` is its whole size.
template <typename Runs, typename Size>
PieceList flatten_array(MPI_Datatype element, int dimensions, int order, Runs&& runs, Size&& size) {
  MPI_Offset stride = extent_of(element);
  PieceList inner = PieceList::of(element);
  for (int i = 0; i < dimensions; ++i) {
    const int d = order == MPI_ORDER_C ? dimensions - 1 - i : i;
    PieceList outer;
    for (const Run& run : runs(d)) {
      outer.append_copies(inner, run.count, run.first * stride, stride);
    }
    inner = std::move(outer);
    stride *= size(d);
  }
  return inner;
}

PieceList flatten_subarray(const Contents& c) {
  const int dimensions = c.integer(0);
  const int before = c.is_large() ? 0 : 1;
  const int order = c.integer(c.is_large() ? 1 : 3 * dimensions + 1);
  const auto size = [&](int d) { return c.number(before + d); };
  const auto runs = [&](int d) {
    return std::vector<Run>{
        {c.number(before + 2 * dimensions + d), c.number(before + dimensions + d)}};
  };
  return flatten_array(c.type(), dimensions, order, runs, size);
}

// What of a dimension of `size` elements the process at `place` of `places` has, of an array that
// is dealt to them in blocks of `block`, in turn.
std::vector<Run> dealt(MPI_Count size, MPI_Count block, MPI_Count places, MPI_Count place) {
  std::vector<Run> runs;
  for (MPI_Count at = place * block; at < size; at += places * block) {
    runs.push_back({at, std::min(block, size - at)});
  }
  return runs;
}

// A distributed array: the integers are how many processes, which of them, how many dimensions, and
// for each dimension sizes (which are apart in the large-count form), ways to deal, their
// arguments, and numbers of processes; then the order. Processes are numbered row by row, in either
// order.
PieceList flatten_darray(const Contents& c) {
  const int dimensions = c.integer(2);
  const int rest = c.is_large() ? 3 : 3 + dimensions;
  const auto size = [&](int d) -> MPI_Count {
    return c.is_large() ? c.number(d) : c.integer(3 + d);
  };
  const auto places = [&](int d) { return c.integer(rest + 2 * dimensions + d); };
  std::vector<int> place(static_cast<std::size_t>(dimensions));
  int number = c.integer(1);
  for (int d = dimensions - 1; d >= 0; --d) {
    place[static_cast<std::size_t>(d)] = number % places(d);
    number /= places(d);
  }
  const auto runs = [&](int d) -> std::vector<Run> {
    const int way = c.integer(rest + d);
    const int argument = c.integer(rest + dimensions + d);
    if (way == MPI_DISTRIBUTE_NONE) return {{0, size(d)}};
    MPI_Count block = argument;
    if (argument == MPI_DISTRIBUTE_DFLT_DARG) {
      block = way == MPI_DISTRIBUTE_BLOCK ? (size(d) + places(d) - 1) / places(d) : 1;
    }
    return dealt(size(d), block, places(d), place[static_cast<std::size_t>(d)]);
  };
  return flatten_array(c.type(), dimensions, c.integer(rest + 3 * dimensions), runs, size);
}

}  // namespace

void PieceList::append(MPI_Offset offset, MPI_Offset length) {
  if (length == 0) return;
  if (!offsets_.empty() && offsets_.back() + lengths_.back() == offset) {
    lengths_.back() += length;
    return;
  }
  offsets_.push_back(offset);
  lengths_.push_back(length);
}

void PieceList::append_copies(const PieceList& item, MPI_Count count, MPI_Offset offset,
                              MPI_Offset stride) {
  if (item.lengths_.size() == 1 && item.lengths_[0] == stride) {
    append(offset + item.offsets_[0], count * stride);
    return;
  }
  for (MPI_Count i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < item.offsets_.size(); ++j) {
      append(offset + i * stride + item.offsets_[j], item.lengths_[j]);
    }
  }
}

PieceList PieceList::of(MPI_Datatype datatype) {
  const Contents c(datatype);
  switch (c.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return of(c.type());
    case MPI_COMBINER_CONTIGUOUS: {
      PieceList list;
      list.append_copies(of(c.type()), c.number(0), 0, extent_of(c.type()));
      return list;
    }
    case MPI_COMBINER_STRUCT:
      return flatten_struct(c);
    case MPI_COMBINER_SUBARRAY:
      return flatten_subarray(c);
    case MPI_COMBINER_DARRAY:
      return flatten_darray(c);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
      return flatten_blocks(c);
    default:  // a named one, or a Fortran 90 parametrised type: a number
      return flatten_named(datatype);
  }
}

}  // namespace dedup::engine
