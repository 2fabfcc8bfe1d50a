#include "tools/dedupctl/elsewhere.h"

#include <algorithm>

namespace dedup::ctl {

std::vector<engine::HeldFile*> Elsewhere::files() {
  const auto clients = services_.all();
  // Of services that have ended nothing is to be had, and nothing to be let go.
  std::erase_if(files_, [&](const auto& one) {
    return std::ranges::find(clients, one.first) == clients.end();
  });
  std::vector<engine::HeldFile*> files;
  for (const auto& client : clients) {
    std::unique_ptr<engine::HeldFile>& file = files_[client];
    if (!file) file = std::make_unique<engine::HeldFile>(client, record_, templates_);
    files.push_back(file.get());
  }
  return files;
}

Result<NumberedBlock> Elsewhere::block(std::uint64_t number) {
  Status why(Code::kNotFound, "nobody can be asked");
  for (engine::HeldFile* const file : files()) {
    auto block = file->block(number);
    if (block.is_ok()) return NumberedBlock{number, *std::move(block)};
    why = block.status();
  }
  return why;
}

std::vector<Bytes> Elsewhere::read(const NumberedBlock& block, std::span<const Piece> pieces) {
  std::vector<Bytes> chunks(pieces.size());
  for (engine::HeldFile* const file : files()) {
    std::vector<engine::HeldFile::Wanted> wanted;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!chunks[i].empty()) continue;
      which.push_back(i);
      wanted.push_back(
          {{pieces[i].fingerprint, pieces[i].chunk_length}, &block.placement_of(pieces[i])});
    }
    if (wanted.empty()) break;
    std::vector<Bytes> read = file->read(wanted);
    for (std::size_t k = 0; k < which.size(); ++k) chunks[which[k]] = std::move(read[k]);
  }
  return chunks;
}

}  // namespace dedup::ctl
