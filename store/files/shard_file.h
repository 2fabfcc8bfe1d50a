// A recipe shard as a file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/types.h"
#include "store/fs.h"
#include "store/shard_content.h"

namespace dedup::store {

class ShardFileReader final : public ShardContent {
 public:
  // kCorrupt if the file is not this shard of this attempt or its digest is not `digest`.
  static Result<std::unique_ptr<ShardFileReader>> open(const std::string& path,
                                                       const Id128& identity, const Id128& attempt,
                                                       std::uint32_t shard, const Digest& digest);

 private:
  explicit ShardFileReader(fs::File file) : file_(std::move(file)) {}

  Status read_at(std::uint64_t offset, std::span<std::byte> out) const override;
  Result<std::uint64_t> size() const override;
  const std::string& name() const override { return file_.path(); }

  fs::File file_;
};

}  // namespace dedup::store
