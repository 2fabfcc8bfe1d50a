#include "engine/chunks/name_chunks.h"

namespace dedup::engine {

std::vector<ChunkRecord> NamedChunks::shared_records() const {
  std::vector<ChunkRecord> records;
  records.reserve(size() - singles_);
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (!is_single(i)) records.push_back({name(i), length(i)});
  }
  return records;
}

void NamedChunks::rename_single(std::size_t i, const Fingerprint& name) {
  rename(i, name);
  if (!single_[i]) ++singles_;
  single_[i] = true;
}

NamedChunks name_chunks(CutChunks chunks, const std::vector<std::uint8_t>& twin,
                        const SingleChunks::Known& stored, Hasher& hasher, SingleNumbers& numbers,
                        std::uint64_t& fingerprinted, FirstError& error) {
  NamedChunks named(std::move(chunks), false);
  for (std::uint32_t i = 0; i < named.size(); ++i) {
    if (stored.names[i]) {
      named.rename(i, *stored.names[i]);
    } else if (twin[i] != 0 || stored.alike[i] != 0) {
      fingerprinted += named.length(i);
      const auto strong = hasher.hash(named.data(i));
      error.note(strong.status());
      if (strong.is_ok()) named.rename(i, *strong);
    } else {
      named.rename_single(i, name_of_single(fast_part(named.name(i)), numbers.next()));
    }
  }
  return named;
}

}  // namespace dedup::engine
