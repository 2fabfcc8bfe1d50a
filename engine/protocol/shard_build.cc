#include "engine/protocol/shard_build.h"

#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "engine/protocol/base_recipe.h"
#include "engine/protocol/rank_grid.h"
#include "plan/block.h"
#include "plan/block_changes.h"
#include "service/base_block.h"
#include "service/messages/block_home.h"
#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kBaseBlocksAtOnce = 32;
constexpr std::size_t kShardBytesAtOnce = std::size_t{1} << 20;

// Blocks that are merged while copies of a block's chunks are being made.
constexpr std::size_t kBlocksAhead = 8;

// `blocks` ascend.
bool is_among(const std::vector<service::BlockUpdate>& blocks, std::uint64_t number) {
  const auto at = std::lower_bound(
      blocks.begin(), blocks.end(), number,
      [](const service::BlockUpdate& update, std::uint64_t n) { return update.block < n; });
  return at != blocks.end() && at->block == number;
}

}  // namespace

ShardBuild::ShardBuild(JobFile& file, const Id128& attempt, Referring referring,
                       std::set<Id128> given_up)
    : file_(file),
      view_(file.view()),
      origin_(view_->origin()),
      attempt_(attempt),
      nodes_(file.nodes()),
      restores_(file),
      referrals_(file, attempt, restores_),
      referring_(referring),
      makes_stripes_(file.keeping().stripes.is_possible()),
      given_up_(std::move(given_up)) {
  // A donor's recipe is only something to compare with.
  const bool is_donor = !view_->committed && origin_ != nullptr;
  if (is_donor && origin_->record.shards.size() != nodes_) origin_ = nullptr;
  built_.record.attempt = attempt;
  built_.record.path = view_->info.path;
  built_.record.shards.resize(nodes_);
  for (NodeIndex n = 0; n < nodes_; ++n) {
    built_.record.stores.push_back({view_->info.stores[n].uuid, view_->info.stores[n].node});
    built_.store_of.push_back(n);
  }
}

Result<std::vector<std::uint64_t>> ShardBuild::origin_blocks(std::uint32_t shard) {
  if (origin_ == nullptr) return std::vector<std::uint64_t>{};
  const std::size_t shards = origin_->record.shards.size();
  if (!view_->committed) return list_donor(shard);
  if (shards == nodes_) return list_origin(shard);
  std::vector<std::uint64_t> out;
  std::copy_if(base_blocks_.begin(), base_blocks_.end(), std::back_inserter(out),
               [&](std::uint64_t block) { return block % nodes_ == shard; });
  return out;
}

// Where the base has another number of shards, each of them has blocks of many new ones: it is
// listed by one rank, which tells those that build these.
Status ShardBuild::begin() {
  if (!view_->committed || origin_->record.shards.size() == nodes_) return Status::ok();
  const Ranks& ranks = file_.ranks();
  const RankGrid grid(ranks, speakers(ranks, nodes_));
  Status status;
  if (grid.is_member()) status = list_base(grid);
  return ranks.agree(status, Waiting::kPatient);
}

// Collective over the grid, also where this rank fails.
Status ShardBuild::list_base(const RankGrid& grid) {
  std::map<int, std::vector<std::uint64_t>> by_rank;
  Status status;
  for (std::uint32_t s = 0; s < origin_->record.shards.size() && status.is_ok(); ++s) {
    if (!grid.takes(s)) continue;
    const auto blocks = list_origin(s);
    status = blocks.status();
    if (!status.is_ok()) break;
    for (const std::uint64_t block : *blocks) {
      by_rank[file_.ranks().speaker_for(file_.block_home(block % nodes_))].push_back(block);
    }
  }
  const auto posts = grid.deliver(posts_of(file_.rank(), by_rank));
  DEDUP_TRY(status);
  DEDUP_TRY(posts.status());
  for (const Post& post : *posts) {
    const auto blocks = decoded<std::vector<std::uint64_t>>(post.what);
    if (!blocks) return {Code::kInternal, "a rank sent numbers of blocks that cannot be"};
    base_blocks_.insert(base_blocks_.end(), blocks->begin(), blocks->end());
  }
  std::sort(base_blocks_.begin(), base_blocks_.end());
  return Status::ok();
}

Result<std::vector<std::uint64_t>> ShardBuild::list_origin(std::uint32_t shard) const {
  auto blocks = origin().list(shard);
  if (blocks.status().code() != Code::kIo) return blocks;
  std::vector<std::uint64_t> all;
  const std::size_t shards = origin_->record.shards.size();
  for (std::uint64_t b = shard; b * kBlockSpan < origin_->record.size; b += shards) {
    all.push_back(b);
  }
  return all;
}

Result<std::vector<std::uint64_t>> ShardBuild::list_donor(std::uint32_t shard) {
  auto blocks = origin().list(shard);
  if (blocks.status().code() != Code::kIo) return blocks;
  // No node could share it. What its indexes have of it alone is dead, and nobody can say how much
  // that is.
  has_cut_off_ = true;
  return std::vector<std::uint64_t>{};
}

BaseRecipe::BaseBlock ShardBuild::lost_block(std::uint64_t number, const Status& why) {
  if (!view_->committed) {
    has_cut_off_ = true;  // as in list_donor()
    return {};
  }
  lost_blocks_[number] = why;
  const std::uint64_t end = std::min(kBlockSpan, origin_->record.size - number * kBlockSpan);
  return {{}, plan::unknown_block(static_cast<std::uint32_t>(end))};
}

Result<std::vector<BaseRecipe::BaseBlock>> ShardBuild::read_origin(
    std::span<const std::uint64_t> blocks) {
  const BaseRecipe recipe = origin();
  auto all = recipe.fetch(blocks);
  if (all.status().code() != Code::kIo) return all;
  // One by one: those that are lost are not the others' loss.
  std::vector<BaseRecipe::BaseBlock> contents;
  for (const std::uint64_t& block : blocks) {
    auto one = recipe.fetch({&block, 1});
    if (one.is_ok()) {
      contents.push_back(std::move(one->front()));
    } else if (one.status().code() == Code::kIo) {
      contents.push_back(lost_block(block, one.status()));
    } else {
      return one.status();
    }
  }
  return contents;
}

ShardBuild::Before ShardBuild::before_of(Bytes bytes, const Block& block) const {
  Before before{std::move(bytes), {}};
  if (referring_ == Referring::kToAll) return before;
  for (const plan::Placement& placement : block.placements) {
    if (placement.stripe() != nullptr) before.stripes.insert(placement.stripe()->stripe);
  }
  return before;
}

Status ShardBuild::for_each_block(std::uint32_t shard, const Visit& visit) {
  const NodeIndex home = file_.block_home(shard);
  DEDUP_ASSIGN(const std::vector<std::uint64_t> base, origin_blocks(shard));
  std::size_t next_base = 0;
  std::uint64_t cursor = 0;
  for (bool done = false; !done;) {
    DEDUP_ASSIGN(service::SnapshotReply page,
                 file_.client().call(home, service::Snapshot{file_.identity(), attempt_, cursor}));
    done = page.done;
    cursor = page.cursor;
    // Everything up to `limit` is merged now: what this page has, and the base between and after.
    const std::uint64_t limit = done ? UINT64_MAX : cursor;
    std::size_t next_new = 0;
    for (;;) {
      std::vector<std::uint64_t> batch;
      while (next_base < base.size() && base[next_base] < limit &&
             batch.size() < kBaseBlocksAtOnce) {
        const std::uint64_t number = base[next_base++];
        const bool stays = view_->committed ? number * kBlockSpan < page.base_limit
                                            : is_among(page.blocks, number);
        if (stays) {
          batch.push_back(number);
        } else {
          has_cut_off_ = true;
          count_changed(number);
        }
      }
      std::vector<BaseRecipe::BaseBlock> contents;
      if (!batch.empty()) {
        DEDUP_ASSIGN(contents, read_origin(batch));
      }
      for (std::size_t i = 0; i < batch.size(); ++i) {
        while (next_new < page.blocks.size() && page.blocks[next_new].block < batch[i]) {
          service::BlockUpdate& update = page.blocks[next_new++];
          DEDUP_TRY(visit(update.block, std::move(update.content), Before()));
        }
        Before before = before_of(std::move(contents[i].encoded.bytes), contents[i].block);
        Block block;
        if (view_->committed) block = std::move(contents[i].block);
        const std::uint64_t begin = batch[i] * kBlockSpan;
        if (view_->committed && page.base_limit - begin < kBlockSpan) {
          plan::truncate(block, static_cast<std::uint32_t>(page.base_limit - begin));
        }
        if (next_new < page.blocks.size() && page.blocks[next_new].block == batch[i]) {
          plan::overlay(block, page.blocks[next_new++].content);
        }
        DEDUP_TRY(visit(batch[i], std::move(block), std::move(before)));
      }
      if (next_base >= base.size() || base[next_base] >= limit) break;
    }
    while (next_new < page.blocks.size()) {
      service::BlockUpdate& update = page.blocks[next_new++];
      DEDUP_TRY(visit(update.block, std::move(update.content), Before()));
    }
  }
  return Status::ok();
}

// Where its stripe is a lost node's last trace of a chunk, the chunk is needed as a whole first.
Status ShardBuild::restore_lost(std::uint32_t shard) {
  const plan::LiveNodes& live = file_.client().live();
  lost_blocks_.clear();
  std::vector<std::shared_ptr<const Restores::Chunk>> begun;
  DEDUP_TRY(for_each_block(shard, [&](std::uint64_t, Block block, Before) {
    std::vector<plan::Placement> left;
    for (const plan::Placement& placement : block.placements) {
      left.push_back(placement.surviving(live));
    }
    for (const Piece& piece : block.pieces) {
      if (piece.is_zero() || piece.is_unknown()) continue;
      const plan::Placement& placement = left[piece.placement];
      if (placement.keeper(live) != kNoNode || placement.redundancy().is_lost()) continue;
      const NodeIndex keeper = placement.new_keeper(live);
      DEDUP_ASSIGN(begun.emplace_back(),
                   restores_.begin(piece.fingerprint, piece.chunk_length, placement,
                                   plan::Placement::copies_on({keeper}), {&keeper, 1}));
    }
    return Status::ok();
  }));
  for (const auto& chunk : begun) DEDUP_TRY(restores_.finish(*chunk));
  return Status::ok();
}

Result<store::ShardEntry> ShardBuild::build(std::uint32_t shard) {
  shard_ = shard;
  digest_.emplace(file_.identity(), attempt_, shard);
  base_ = {};
  if (origin_ != nullptr && origin_->record.shards.size() == nodes_) {
    base_ = {origin_->record.attempt, origin_->record.shards[shard].digest};
  }
  unsent_.clear();
  unsent_bytes_ = 0;
  has_begun_ = false;
  lost_blocks_.clear();
  added_.clear();
  targets_.clear();
  const plan::LiveNodes& live = file_.client().live();
  for (const NodeIndex node :
       plan::shard_keepers(file_.block_home(shard), live, file_.redundancy())) {
    targets_.push_back({node, !base_.attempt.is_zero()});
  }

  DEDUP_TRY(for_each_block(shard, [&](std::uint64_t number, Block block, Before before) {
    return add(number, std::move(block), std::move(before));
  }));
  DEDUP_TRY(finish_blocks(0));
  DEDUP_TRY(write_out(true));
  store::ShardEntry entry;
  entry.digest = digest_->digest();
  for (const Target& target : targets_) entry.stores.push_back(target.node);
  built_.record.shards[shard] = entry;
  return entry;
}

void ShardBuild::count_changed(std::uint64_t number) {
  const bool is_wanted = view_->committed && view_->info.write_back != service::WriteBack::kNone;
  if (is_wanted) changed_.push_back(number);
}

Status ShardBuild::add(std::uint64_t number, Block block, Before before) {
  if (block.empty()) {
    count_changed(number);
    return Status::ok();
  }
  const std::uint64_t unknown = plan::unknown_bytes(block);
  const auto lost = lost_blocks_.find(number);
  if (unknown > 0 && lost != lost_blocks_.end() && file_.on_loss != OnLoss::kGiveUp) {
    return lost->second;
  }
  facts_.unknown_bytes += unknown;
  added_.push_back({number, std::move(block), std::move(before), {}});
  DEDUP_TRY(begin_repair(added_.back()));
  return finish_blocks(kBlocksAhead);
}

Status ShardBuild::begin_repair(Added& added) {
  Block& block = added.block;
  // Stores that this job does not have cannot be counted on, nor be named by the new recipe.
  const plan::LiveNodes& live = file_.client().live();
  std::vector<bool> was_lost;  // when the base was committed
  for (plan::Placement& placement : block.placements) {
    was_lost.push_back(placement.redundancy().is_lost());
    placement = placement.surviving(live);
  }
  DEDUP_TRY(confirm(added.before, block.placements));
  std::vector<bool> enough;
  for (const plan::Placement& placement : block.placements) {
    enough.push_back(is_enough(placement));
  }
  if (makes_stripes_) DEDUP_TRY(place_in_stripes(added.before, block, enough));
  for (const Piece& piece : block.pieces) {
    if (piece.is_zero() || piece.is_unknown() || enough[piece.placement]) continue;
    const auto [entry, is_new] = added.repaired.try_emplace(piece.fingerprint);
    if (!is_new) continue;
    // Healing asks every node for it once more; an application's commit does not each time.
    if (was_lost[piece.placement] && file_.on_loss == OnLoss::kGoOn) {
      entry->second.chunk = Restores::lost(piece.fingerprint);
      continue;
    }
    // The same chunk in another block, or in another rank's shard, gets its copies on the same
    // nodes: they are chosen by its name.
    const plan::Placement& placement = block.placements[piece.placement];
    // Of a stripe that was given up only the copy counts, but it may be made from that.
    const plan::Placement kept =
        is_given_up(placement) ? plan::Placement::copies_on(placement.nodes()) : placement;
    plan::Repair repair = kept.repair(live, file_.redundancy(), piece.fingerprint);
    DEDUP_ASSIGN(entry->second.chunk, restores_.begin(piece.fingerprint, piece.chunk_length,
                                                      placement, repair.after, repair.targets));
    entry->second.placement = std::move(repair.after);
  }
  return Status::ok();
}

bool ShardBuild::is_given_up(const plan::Placement& placement) const {
  return placement.stripe() != nullptr && given_up_.contains(placement.stripe()->stripe);
}

bool ShardBuild::is_enough(const plan::Placement& placement) const {
  return !is_given_up(placement) && placement.enough(file_.client().live(), file_.redundancy());
}

// An index may name a chunk as part of a stripe of which other nodes have nothing any more, since
// nothing referred to it: so no block is written with a stripe whose parts this commit has not seen
// to be there, but those that it has in the base already, where they stay.
Status ShardBuild::confirm(const Before& before, std::span<const plan::Placement> placements) {
  std::vector<plan::StripeUnit> stripes;
  for (const plan::Placement& placement : placements) {
    const plan::StripeUnit* const stripe = placement.stripe();
    if (stripe == nullptr || !is_enough(placement) || before.stripes.contains(stripe->stripe)) {
      continue;
    }
    stripes.push_back(*stripe);
  }
  if (stripes.empty()) return Status::ok();
  DEDUP_ASSIGN(const std::set<Id128> failed, referrals_.confirm(stripes));
  given_up_.insert(failed.begin(), failed.end());
  return Status::ok();
}

// Chunks that are not kept well enough may be in stripes since they were written: their nodes know.
Status ShardBuild::place_in_stripes(const Before& before, Block& block, std::vector<bool>& enough) {
  const plan::LiveNodes& live = file_.client().live();
  struct Asked {
    service::FindPlacements request;
    std::vector<std::uint32_t> pieces;
    std::vector<std::uint32_t> placements;  // the block's numbers of those of the reply
    std::vector<std::uint32_t> of;          // as in the reply
  };
  std::map<NodeIndex, Asked> asked;
  std::vector<Asked*> of_placement(block.placements.size());
  for (std::uint32_t i = 0; i < block.pieces.size(); ++i) {
    const Piece& piece = block.pieces[i];
    if (piece.is_zero() || piece.is_unknown() || enough[piece.placement]) continue;
    Asked*& at = of_placement[piece.placement];
    if (at == nullptr) {
      const plan::Placement& left = block.placements[piece.placement];
      if (left.redundancy().is_lost()) continue;
      // One that restore_lost() has brought back is on the node that it chose.
      NodeIndex keeper = left.keeper(live);
      if (keeper == kNoNode) keeper = left.new_keeper(live);
      at = &asked[keeper];
      at->request.identity = file_.identity();
      at->request.attempt = attempt_;
    }
    at->request.fingerprints.push_back(piece.fingerprint);
    at->pieces.push_back(i);
  }
  std::vector<service::Client::Pending<service::FindPlacements>> pending;
  for (const auto& [node, one] : asked) {
    pending.push_back(file_.client().start(node, one.request));
  }
  std::map<plan::Placement, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < block.placements.size(); ++i) {
    numbers.try_emplace(block.placements[i], i);
  }
  const std::size_t known = block.placements.size();
  Status status;
  std::size_t next = 0;
  for (auto& [node, one] : asked) {
    auto reply = pending[next++].wait();
    if (!reply.is_ok() || reply->of.size() != one.pieces.size()) {
      status = reply.is_ok() ? Status(Code::kInternal, "a node answered for other chunks")
                             : reply.status();
      continue;
    }
    one.of = std::move(reply->of);
    for (const plan::Placement& placement : reply->placements) {
      const auto fresh = static_cast<std::uint32_t>(block.placements.size());
      const auto [entry, is_new] = numbers.try_emplace(placement.surviving(live), fresh);
      if (is_new) block.placements.push_back(entry->first);
      one.placements.push_back(entry->second);
    }
  }
  DEDUP_TRY(status);
  DEDUP_TRY(confirm(before, std::span(block.placements).subspan(known)));
  for (std::size_t i = known; i < block.placements.size(); ++i) {
    enough.push_back(is_enough(block.placements[i]));
  }
  for (const auto& [node, one] : asked) {
    for (std::size_t i = 0; i < one.pieces.size(); ++i) {
      const std::uint32_t placement = one.placements[one.of[i]];
      if (enough[placement]) block.pieces[one.pieces[i]].placement = placement;
    }
  }
  return Status::ok();
}

RecipeFacts ShardBuild::facts() const {
  RecipeFacts facts = facts_;
  facts.lost_chunks += referrals_.lost_chunks();
  facts.copies_made = restores_.copies_made();
  return facts;
}

Status ShardBuild::finish_blocks(std::size_t ahead) {
  const auto is_done = [](const Added& added) {
    return std::all_of(added.repaired.begin(), added.repaired.end(),
                       [](const auto& e) { return e.second.chunk->is_done(); });
  };
  while (!added_.empty() && (added_.size() > ahead || is_done(added_.front()))) {
    Added first = std::move(added_.front());
    added_.pop_front();
    DEDUP_TRY(finish_block(std::move(first)));
  }
  return Status::ok();
}

// A commit goes on without what was lost since the last one; not without what it is to make last.
Status ShardBuild::check_was_there(const Added& added, const Fingerprint& fingerprint) const {
  if (file_.on_loss != OnLoss::kGoOn) return Status::ok();
  if (!added.before.bytes.empty()) {
    DEDUP_ASSIGN(const Block before,
                 service::open_base_block(store::with_checksum(added.number, added.before.bytes),
                                          origin_->store_of));
    const bool was_there = std::any_of(
        before.pieces.begin(), before.pieces.end(),
        [&](const Piece& piece) { return !piece.is_zero() && piece.fingerprint == fingerprint; });
    if (was_there) return Status::ok();
  }
  return {Code::kIo, file_.path + ": chunk " + fingerprint.hex() +
                         ", which was written since the last commit, cannot be read on any node: "
                         "write it again"};
}

Status ShardBuild::finish_block(Added added) {
  Block& block = added.block;
  for (const auto& [fingerprint, repaired] : added.repaired) {
    DEDUP_TRY(restores_.finish(*repaired.chunk));
    if (!repaired.chunk->is_lost()) continue;
    DEDUP_TRY(check_was_there(added, fingerprint));
    ++facts_.lost_chunks;
  }
  std::map<plan::Placement, std::uint32_t> numbers;
  for (Piece& piece : block.pieces) {
    const auto it = piece.is_zero() ? added.repaired.end() : added.repaired.find(piece.fingerprint);
    if (it == added.repaired.end() || it->second.chunk->is_lost()) continue;
    // If only some of its nodes have got it, the others get it when it is referred to.
    const plan::Placement& placement = it->second.placement;
    const auto [entry, is_new] =
        numbers.try_emplace(placement, static_cast<std::uint32_t>(block.placements.size()));
    if (is_new) block.placements.push_back(placement);
    piece.placement = entry->second;
  }
  count_placements(block);
  store::EncodedBlock encoded = store::with_checksum(added.number, store::encode_block(block));
  // Equal bytes mean the same with this record's stores, whatever was done to the block: if the
  // stores are not numbered as they were, or copies have come to other nodes, the bytes differ.
  const bool is_carried = !base_.attempt.is_zero() && encoded.bytes == added.before.bytes;
  if (!is_carried) count_changed(added.number);
  if (referring_ == Referring::kToAll || added.before.bytes.empty()) {
    referrals_.refer(block);
  } else {
    not_referred_to_.push_back(added.number);
    if (!is_carried) {
      DEDUP_ASSIGN(const Block before,
                   service::open_base_block(store::with_checksum(added.number, added.before.bytes),
                                            origin_->store_of));
      const plan::BlockChanges changes = plan::changes_between(before, block);
      referrals_.refer(block, changes.fresh);
      count_dropped(before, changes.gone, block, changes.fresh);
    }
  }
  DEDUP_TRY(referrals_.send_if_much());
  return write(std::move(encoded), is_carried);
}

void ShardBuild::count_placements(const Block& block) {
  std::vector<bool> is_used(block.placements.size());
  for (const Piece& piece : block.pieces) {
    if (!piece.is_zero()) is_used[piece.placement] = true;
  }
  for (std::size_t i = 0; i < is_used.size(); ++i) {
    const plan::Placement& placement = block.placements[i];
    if (!is_used[i] || placement.redundancy().is_lost()) continue;
    facts_.lowest = std::min(facts_.lowest, placement.redundancy());
    facts_.fatal_sets.insert(plan::fatal_set(placement));
  }
}

// A chunk that is kept otherwise now is still on the nodes that both ways have.
void ShardBuild::count_dropped(const Block& before, std::span<const std::uint32_t> gone,
                               const Block& block, std::span<const std::uint32_t> fresh) {
  std::map<Fingerprint, const plan::Placement*> still;
  for (const std::uint32_t i : fresh) {
    const Piece& piece = block.pieces[i];
    still[piece.fingerprint] = &block.placements[piece.placement];
  }
  for (const std::uint32_t i : gone) {
    const Piece& piece = before.pieces[i];
    const auto kept = still.find(piece.fingerprint);
    for (const NodeIndex node : before.placements[piece.placement].nodes()) {
      const bool stays = kept != still.end() && kept->second->is_on(node);
      if (node >= nodes_ || stays) continue;
      referrals_.drop(node, store::stored_size(piece.fingerprint, piece.chunk_length));
    }
  }
}

Status ShardBuild::refer_to_what_is_left() {
  const BaseRecipe built(file_.client(), file_.identity(), built_);
  std::span<const std::uint64_t> rest = not_referred_to_;
  while (!rest.empty()) {
    const auto batch = rest.first(std::min(rest.size(), kBaseBlocksAtOnce));
    rest = rest.subspan(batch.size());
    DEDUP_ASSIGN(const std::vector<Block> blocks, built.read(batch));
    for (const Block& block : blocks) referrals_.refer(block);
    DEDUP_TRY(referrals_.send_if_much());
  }
  not_referred_to_.clear();
  return Status::ok();
}

Status ShardBuild::refer_to_rest() {
  return referrals_.finish(refer_to_what_is_left());
}

Status ShardBuild::write(store::EncodedBlock block, bool is_carried) {
  digest_->add(store::summary_of(block));
  unsent_bytes_ += block.bytes.size();
  unsent_.push_back({std::move(block), is_carried});
  return unsent_bytes_ >= kShardBytesAtOnce ? write_out(false) : Status::ok();
}

service::PutShard ShardBuild::request_of(bool carry, bool ends) const {
  service::PutShard request{file_.identity(), attempt_, shard_, base_, !has_begun_, ends, {}, {}};
  for (const Unsent& unsent : unsent_) {
    if (carry && unsent.is_carried) {
      request.carried.push_back(store::summary_of(unsent.block));
    } else {
      request.blocks.push_back(unsent.block);
    }
  }
  return request;
}

service::PutShard ShardBuild::whole(const std::vector<std::uint64_t>& numbers, bool ends) const {
  service::PutShard request{file_.identity(), attempt_, shard_, base_, false, ends, {}, {}};
  for (const Unsent& unsent : unsent_) {
    if (std::binary_search(numbers.begin(), numbers.end(), unsent.block.number)) {
      request.blocks.push_back(unsent.block);
    }
  }
  return request;
}

Status ShardBuild::write_out(bool ends) {
  using Pending = service::Client::Pending<service::PutShard>;
  std::vector<std::pair<Target*, Pending>> pending;
  for (const bool carry : {true, false}) {
    const auto is_asked = [&](const Target& target) { return target.can_carry == carry; };
    if (std::none_of(targets_.begin(), targets_.end(), is_asked)) continue;
    const service::PutShard request = request_of(carry, ends);
    for (Target& target : targets_) {
      if (is_asked(target)) {
        pending.emplace_back(&target, file_.client().start(target.node, request));
      }
    }
  }
  Status status;
  std::vector<Pending> again;
  for (auto& [target, asked] : pending) {
    const auto reply = asked.wait();
    if (!reply.is_ok()) {
      if (status.is_ok()) status = reply.status();
      continue;
    }
    target->can_carry = reply->can_carry;
    if (reply->lacking.empty()) continue;
    again.push_back(file_.client().start(target->node, whole(reply->lacking, ends)));
  }
  for (Pending& p : again) {
    const auto reply = p.wait();
    if (!reply.is_ok() && status.is_ok()) status = reply.status();
  }
  unsent_.clear();
  unsent_bytes_ = 0;
  has_begun_ = true;
  return status;
}

}  // namespace dedup::engine
