#include "store/files/shard_file.h"

namespace dedup::store {

Result<std::unique_ptr<ShardFileReader>> ShardFileReader::open(const std::string& path,
                                                               const Id128& identity,
                                                               const Id128& attempt,
                                                               std::uint32_t shard,
                                                               const Digest& digest) {
  DEDUP_ASSIGN(fs::File file, fs::open_read(path));
  std::unique_ptr<ShardFileReader> reader(new ShardFileReader(std::move(file)));
  DEDUP_TRY(reader->load(identity, attempt, shard, digest));
  return reader;
}

Status ShardFileReader::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  return fs::read_at(file_, offset, out);
}

Result<std::uint64_t> ShardFileReader::size() const {
  DEDUP_ASSIGN(const fs::Info about, fs::info(file_));
  return about.size;
}

}  // namespace dedup::store
