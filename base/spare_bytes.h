// Memory for bytes that are made and done with again and again, of sizes that come again. The
// system gives new memory page by page, as it is touched, which takes longer than putting something
// there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/codec.h"

namespace dedup {

// As many are kept as are given and not taken. One thread.
class SpareBytes {
 public:
  void give(Bytes bytes) { free_.push_back(std::move(bytes)); }

  // So many bytes, whatever they are: in the smallest memory that has room for them; where none
  // has, the largest goes, and they are in new memory.
  Bytes take(std::size_t size) {
    Bytes bytes;
    const auto best =
        std::min_element(free_.begin(), free_.end(), [size](const Bytes& a, const Bytes& b) {
          const bool fits = a.capacity() >= size;
          if (fits != (b.capacity() >= size)) return fits;
          return fits ? a.capacity() < b.capacity() : a.capacity() > b.capacity();
        });
    if (best != free_.end()) {
      if (best->capacity() >= size) bytes = std::move(*best);
      free_.erase(best);
    }
    bytes.resize(size);
    return bytes;
  }

 private:
  std::vector<Bytes> free_;
};

}  // namespace dedup
