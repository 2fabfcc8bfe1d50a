// A recipe shard as a file, and the files in which blocks stand that were carried over: older
// shards of the same number, hard-linked beside it, so that each generation's directory has all
// that it needs and none has to know who else uses what. A block of which most is as it was stands
// as the difference to the whole one, which is carried over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "store/files/difference.h"
#include "store/fs.h"
#include "store/shard.h"
#include "store/shard_content.h"

namespace dedup::store {

class ShardFileReader final : public ShardReader {
 public:
  // kCorrupt if the file is not this shard of this attempt or its digest is not `digest`. Donors
  // are opened when a block of theirs is read, which is kCorrupt if the donor is not there.
  static Result<std::unique_ptr<ShardFileReader>> open(const std::string& path,
                                                       const Id128& attempt, std::uint32_t shard,
                                                       const Digest& digest);

  Result<EncodedBlock> read_encoded(std::uint64_t block_number) const override;
  std::vector<std::uint64_t> block_numbers() const override;

  const ShardTable& table() const { return table_; }
  // Of the file with that number in the table: 0 is this one.
  std::string path_of(std::uint32_t donor) const;
  ShardDonor about(std::uint32_t donor) const;
  // The block that `entry` is a difference to; if it is whole, itself. kCorrupt if it is damaged.
  Result<Bytes> read_basis(const ShardTableEntry& entry) const;

 private:
  ShardFileReader(fs::File file, const Id128& attempt, std::uint32_t shard)
      : file_(std::move(file)), attempt_(attempt), shard_(shard) {}
  Status load(const Digest& digest);
  Result<const fs::File*> file_of(std::uint32_t donor) const;
  Result<Bytes> read_at(const ShardPlace& place) const;
  Status damaged(std::uint64_t block_number, std::uint32_t donor) const;

  fs::File file_;
  Id128 attempt_;
  std::uint32_t shard_;
  ShardTable table_;
  mutable std::vector<std::optional<fs::File>> donors_;
};

class ShardFileWriter final : public ShardWriter {
 public:
  // How many donors a shard has at most.
  static constexpr std::size_t kMostDonors = 8;

  // Replaces what is at `path`, which is of this attempt alone. `base`: null if there is none.
  static Result<std::unique_ptr<ShardFileWriter>> create(
      const std::string& path, const Id128& identity, const Id128& attempt, std::uint32_t shard,
      std::shared_ptr<const ShardFileReader> base);

  bool can_carry() const override { return base_ != nullptr; }
  Status add(const EncodedBlock& block) override;
  Result<bool> carry(const BlockSummary& block) override;
  Status finish() override;

 private:
  // A file in which blocks of the base stand.
  struct Source {
    bool may_be_linked = false;
    std::uint32_t donor = 0;  // its number here, once it is linked
  };

  ShardFileWriter(fs::File file, Bytes header, std::shared_ptr<const ShardFileReader> base);
  void choose_donors();
  // Links the base's file `source`, if that was not done. False: what stands in it is to be copied.
  Result<bool> link(std::uint32_t source);
  // Linked: the same place in the terms of this table.
  ShardPlace linked(const ShardPlace& place) const;
  Result<bool> add_difference(const EncodedBlock& block);
  void append(std::span<const std::byte> bytes, const BlockSummary& block,
              const std::optional<ShardBasis>& basis);
  Status write_out();

  fs::File file_;
  std::shared_ptr<const ShardFileReader> base_;
  std::vector<Source> sources_;  // by number in the base's table
  DifferenceWriter differences_;
  ShardTable table_;  // in the order in which blocks came
  Bytes unwritten_;
  std::uint64_t written_ = 0;
};

}  // namespace dedup::store
