#include "store/files/tiers.h"

#include <algorithm>
#include <map>

#include "store/fs.h"

namespace dedup::store {
namespace {

constexpr std::uint64_t kNotFull = ~std::uint64_t{0};

// The disk space of the segments in a tier; of one with several names, once.
Result<std::uint64_t> segment_bytes(const Layout& tier) {
  std::set<std::pair<dev_t, ino_t>> counted;
  std::uint64_t bytes = 0;
  DEDUP_ASSIGN(const auto files, fs::list_if_there(tier.files()));
  for (const std::string& file : files) {
    const std::string directory = tier.files() + "/" + file + "/segments";
    DEDUP_ASSIGN(const auto names, fs::list_if_there(directory));
    for (const std::string& name : names) {
      const auto about = fs::info(directory + "/" + name);
      if (about.status().code() == Code::kNoSuchFile) continue;  // just removed, or moved
      DEDUP_TRY(about.status());
      const bool is_new = about->links == 1 || counted.emplace(about->device, about->inode).second;
      if (is_new) bytes += about->allocated;
    }
  }
  return bytes;
}

}  // namespace

Tiers::Tiers(std::vector<Tier> tiers) : tiers_(std::move(tiers)), full_at_(tiers_.size()) {
  for (auto& free : full_at_) free = kNotFull;
}

// ---- Room -------------------------------------------------------------------------------------

// The last tier is only counted if that says anything: all that a store has is there.
Result<Tiers::Room> Tiers::room(std::size_t tier) const {
  const Tier& one = tiers_[tier];
  Room room;
  DEDUP_ASSIGN(const std::uint64_t free, fs::free_bytes(one.layout.root));
  if (tier != last()) {
    DEDUP_ASSIGN(room.used, segment_bytes(one.layout));
  } else if (one.limit) {
    DEDUP_ASSIGN(room.used, fs::allocated_below(one.layout.root));
  }
  room.most = room.used + free;
  if (one.limit) room.most = std::min(room.most, *one.limit);
  if (one.is_leaving) room.most = 0;
  return room;
}

Result<TierSpace> Tiers::space(std::size_t tier) const {
  const Tier& one = tiers_[tier];
  DEDUP_ASSIGN(const Room room, room(tier));
  TierSpace space;
  space.directory = one.layout.root;
  space.limit = one.limit.value_or(TierSpace::kNoLimit);
  DEDUP_ASSIGN(space.used, fs::allocated_below(one.layout.root));
  space.free = room.left();
  space.is_leaving = one.is_leaving;
  return space;
}

Result<std::uint64_t> Tiers::free_bytes() const {
  if (count() == 1) {
    DEDUP_ASSIGN(const Room room, room(0));
    return tiers_[0].limit ? room.left_to_begin() : room.left();
  }
  struct Disk {
    std::uint64_t free = 0;  // by itself
    std::uint64_t left = 0;  // by the tiers on it
  };
  std::map<dev_t, Disk> disks;
  for (std::size_t tier = count(); tier-- > 0;) {
    const auto about = fs::info(layout(tier).root);
    // A faster one may be lost at any time.
    if (tier != last() && about.status().code() == Code::kNoSuchFile) continue;
    DEDUP_TRY(about.status());
    DEDUP_ASSIGN(const Room room, room(tier));
    Disk& disk = disks[about->device];
    DEDUP_ASSIGN(disk.free, fs::free_bytes(layout(tier).root));
    disk.left += std::min(room.left_to_begin(), ~disk.left);
  }
  std::uint64_t sum = 0;
  for (const auto& [device, disk] : disks) sum += std::min({disk.free, disk.left, ~sum});
  return sum;
}

bool Tiers::is_overfull(std::size_t tier) const {
  const auto room = this->room(tier);
  return room.is_ok() && room->used > room->mark();
}

std::uint64_t Tiers::left(const Choice& choice) const {
  const auto room = this->room(choice.tier);
  if (!room.is_ok()) return 0;
  const std::uint64_t full_at = full_at_[choice.tier];
  if (full_at != kNotFull) {
    const auto free = fs::free_bytes(layout(choice.tier).root);
    if (!free.is_ok() || *free < full_at + kLeastRoom) return 0;
    full_at_[choice.tier] = kNotFull;
  }
  if (choice.fill == Fill::kWhole) return room->left();
  return room->mark() - std::min(room->mark(), room->used);
}

// So that moving one down makes some room, and not all of it. In the last tier they stay.
std::uint64_t Tiers::longest_segment(std::size_t tier) const {
  constexpr std::uint64_t kPartOfTier = 16;
  const auto room = this->room(tier);
  return tier == last() || !room.is_ok() ? ~std::uint64_t{0} : room->most / kPartOfTier;
}

void Tiers::ran_out(std::size_t tier) const {
  const auto free = fs::free_bytes(layout(tier).root);
  full_at_[tier] = free.is_ok() ? *free : 0;
}

// ---- Putting ----------------------------------------------------------------------------------

// First as far as there is to be room in each, then all that there is: the store says that it is
// full only if all of it is.
std::vector<Tiers::Choice> Tiers::choices(SegmentUse use) const {
  std::vector<Choice> order;
  for (std::size_t tier = 0; tier < count(); ++tier) {
    if (tiers_[tier].is_leaving) continue;
    order.push_back({tier, tier == last() ? Fill::kWhole : Fill::kToMark});
  }
  if (use == SegmentUse::kCopies) std::rotate(order.begin(), order.begin() + 1, order.end());
  const std::size_t once = order.size();
  for (std::size_t i = 0; i < once; ++i) {
    if (order[i].tier != last()) order.push_back({order[i].tier, Fill::kWhole});
  }
  return order;
}

Status Tiers::make_segments_directory(std::size_t tier, const Id128& identity) const {
  const Layout& one = layout(tier);
  if (tier == last()) return Status::ok();
  // One that the store has not has nothing here either.
  DEDUP_ASSIGN(const bool is_known, fs::exists(layout(last()).segments(identity)));
  if (!is_known) {
    return {Code::kNoSuchFile, layout(last()).file(identity) + ": no such file in the store"};
  }
  DEDUP_TRY(fs::make_directory(one.file(identity)).status());
  return fs::make_directory(one.segments(identity)).status();
}

std::vector<std::string> Tiers::directories_of_names(std::size_t tier,
                                                     const Id128& identity) const {
  const Layout& one = layout(tier);
  if (tier == last()) return {one.segments(identity)};
  return {one.segments(identity), one.file(identity), one.files()};
}

Result<std::unique_ptr<SegmentFileWriter>> Tiers::create_segment(
    const std::shared_ptr<const Tiers>& tiers, const Id128& identity, std::uint64_t number,
    SegmentUse use) {
  const std::size_t last = tiers->last();
  const bool has_limit = tiers->tiers_[last].limit.has_value();
  if (last == 0 && !has_limit) {
    return SegmentFileWriter::create(tiers->layout(0).segment(identity, number), identity, number);
  }
  const Status there = tiers->with_segment(
      identity, number, [](const std::string& path) { return fs::info(path).status(); });
  if (there.is_ok()) {
    return Status(Code::kFileExists, segment_text(identity, number) + " is there already");
  }
  if (there.code() != Code::kNoSuchFile) return there;
  for (const Choice& choice : tiers->choices(use)) {
    if (tiers->left(choice) < kLeastRoom) continue;
    const SegmentRoom room{[tiers, choice] { return tiers->left(choice); },
                           tiers->longest_segment(choice.tier),
                           [tiers, choice] { tiers->ran_out(choice.tier); }};
    const Status made = tiers->make_segments_directory(choice.tier, identity);
    auto writer = made.is_ok() ? SegmentFileWriter::create(
                                     tiers->layout(choice.tier).segment(identity, number), identity,
                                     number, room)
                               : Result<std::unique_ptr<SegmentFileWriter>>(made);
    if (!fs::is_out_of_room(writer.status())) return writer;
    tiers->ran_out(choice.tier);
  }
  if (has_limit) {
    return Status(Code::kNoSpace,
                  tiers->layout(last).root +
                      ": no tier of the store has room left, by the limits in dedup_store or by "
                      "its file system: set higher limits, or free something with dedupctl");
  }
  // None has room. The last one says so.
  return SegmentFileWriter::create(tiers->layout(last).segment(identity, number), identity, number);
}

}  // namespace dedup::store
