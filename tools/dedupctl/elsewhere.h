// What the stores of this host do not have of a generation, and the services of a job may give.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/piece.h"
#include "base/status.h"
#include "engine/protocol/held_file.h"
#include "store/commit_record.h"
#include "tools/dedupctl/generation.h"
#include "tools/dedupctl/known_services.h"

namespace dedup::ctl {

// Of one generation. One thread.
class Elsewhere {
 public:
  // `services` must outlive it.
  Elsewhere(const KnownServices& services, store::CommitRecord record,
            std::vector<std::string> store_templates)
      : services_(services), record_(std::move(record)), templates_(std::move(store_templates)) {}

  // Whether there is anybody to ask, now.
  bool is_there() const { return !services_.all().empty(); }
  // kNotFound if there is nobody to ask; else as HeldFile::block().
  Result<NumberedBlock> block(std::uint64_t number);
  // The whole chunks that these pieces of the block are parts of; empty if nobody gives them.
  std::vector<Bytes> read(const NumberedBlock& block, std::span<const Piece> pieces);

 private:
  // The generation as each job's nodes have it, of those that can be asked now.
  std::vector<engine::HeldFile*> files();

  const KnownServices& services_;
  store::CommitRecord record_;
  std::vector<std::string> templates_;
  std::map<std::shared_ptr<service::Client>, std::unique_ptr<engine::HeldFile>> files_;
};

// Null: nobody but the stores here is asked.
using FindElsewhere = std::function<std::unique_ptr<Elsewhere>(const store::CommitRecord&)>;

}  // namespace dedup::ctl
