#include "engine/heal.h"

#include <algorithm>
#include <span>

#include "base/hasher.h"
#include "base/warn.h"
#include "engine/commit.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/checked_message.h"
#include "engine/open_handle.h"
#include "engine/protocol/leave.h"
#include "service/messages/store_node.h"
#include "store/chunk_check.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kDistrustedAtOnce = 32768;

// The new generation says of itself what the old one did.
void keep_ways(const store::CommitRecord& record, unsigned replication, hints::Hints& hints) {
  hints.replication = replication != 0 ? replication : record.replication;
  hints.replication_is_given = true;
  // Who asks for copies gets them.
  hints.stripe_data = replication != 0 ? 0 : record.stripes.data;
  hints.stripe_parities = replication != 0 ? 0 : record.stripes.parities;
  hints.chunk_size = record.chunk_size;
  hints.mode = record.fingerprint == "none" ? hints::Mode::kNone : hints::Mode::kCollective;
  hints.fingerprint =
      record.fingerprint == "keyed" ? FingerprintKind::kKeyed : FingerprintKind::kSha256;
}

// This rank's part of its node's store.
Status check_own_part(FileHandle& file, Healed& healed) {
  DEDUP_ASSIGN(const auto store, store::Store::open(file.local->store_place(), false));
  const auto checked = store::check_chunks(*store, file.identity(), file.view()->base(),
                                           static_cast<unsigned>(file.topology.node_rank()),
                                           static_cast<unsigned>(file.topology.node_size()));
  // A store without an index has no chunk of the generation, as far as anybody knows; the commit
  // finds out what it should have.
  const Code code = checked.status().code();
  if (code == Code::kNotFound || code == Code::kCorrupt) return Status::ok();
  DEDUP_TRY(checked.status());
  healed.checked = checked->chunks;
  healed.bad = checked->bad.size();
  for (const std::string& text : checked->texts) warn(text);
  const std::span<const Fingerprint> bad = checked->bad;
  for (std::size_t begin = 0; begin < bad.size(); begin += kDistrustedAtOnce) {
    const auto some = bad.subspan(begin, std::min(kDistrustedAtOnce, bad.size() - begin));
    const service::Distrust request{file.identity(), {some.begin(), some.end()}};
    DEDUP_TRY(file.client().call(file.topology.my_node(), request).status());
  }
  return Status::ok();
}

Status heal_open(FileHandle& file, const HealOptions& options, Healed& healed) {
  const auto view = file.view();
  if (!view->committed) {
    return {Code::kArgument,
            file.path + ": its data is not in the stores: there is nothing to heal"};
  }
  keep_ways(view->committed->record, options.replication, file.hints);
  if (options.verify) {
    DEDUP_TRY(agree(file.comm(), check_own_part(file, healed), Waiting::kPatient));
    healed.checked = all_sum(file.comm(), healed.checked);
    healed.bad = all_sum(file.comm(), healed.bad);
  }
  file.on_loss = options.accept_loss ? OnLoss::kGiveUp : OnLoss::kRefuse;
  file.changed = true;
  DEDUP_TRY(commit(file));
  healed.generation = file.last.generation;
  healed.copies_made = file.last.copies_made;
  healed.lost_chunks = file.last.lost_chunks;
  healed.unknown_bytes = file.last.unknown_bytes;
  healed.lowest_copies = file.last.lowest_copies;
  broadcast_value(file.comm(), 0, healed);
  return Status::ok();
}

}  // namespace

Result<Healed> heal(MPI_Comm comm, const std::string& path, const HealOptions& options,
                    const Status& mine, const hints::Hints& hints) {
  hints::Hints used = hints;
  used.flush = hints::Flush::kNone;
  DEDUP_ASSIGN(const auto file,
               open_handle(comm, path, MPI_MODE_RDWR, mine, used, Purpose::kHealing));
  Healed healed;
  const Status status = heal_open(*file, options, healed);
  const Status left = leave(*file);
  DEDUP_TRY(status);
  DEDUP_TRY(left);
  return healed;
}

}  // namespace dedup::engine
