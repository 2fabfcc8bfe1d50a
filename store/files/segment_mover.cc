#include "store/files/segment_mover.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "store/files/file_store.h"
#include "store/format.h"

namespace dedup::store {
namespace {

constexpr std::size_t kStepBytes = std::size_t{4} << 20;
// So much is to be left of what a tier may have, in fifths, once segments move: the next generation
// finds room there.
constexpr std::uint64_t kFifthsLeft = 3;

Result<fs::File> take_turn(const Layout& store) {
  DEDUP_ASSIGN(fs::File file, fs::open_read(store.store_file()));
  DEDUP_ASSIGN(const bool is_mine, fs::try_lock(file, true));
  if (!is_mine) {
    return Status(Code::kFileInUse, store.root + ": another process is just moving segments");
  }
  return file;
}

bool is_same(const fs::Info& a, const fs::Info& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size && a.modified == b.modified;
}

// Whether `below` was made of `above` as it is.
bool is_copy_of(const fs::Info& below, const fs::Info& above) {
  return below.size == above.size && below.modified >= above.modified;
}

// Whether these are one segment, whatever became of its chunks: of two that have a number each has
// a salt of its own. The one below is longer where the one above was brought back from an old copy.
Result<bool> are_one(const std::string& above, const std::string& below) {
  std::array<std::array<std::byte, format::kFileHeaderSize>, 2> headers;
  DEDUP_ASSIGN(const fs::File one, fs::open_read(above));
  DEDUP_ASSIGN(const fs::File other, fs::open_read(below));
  DEDUP_TRY(fs::read_at(one, 0, headers[0]));
  DEDUP_TRY(fs::read_at(other, 0, headers[1]));
  DEDUP_ASSIGN(const fs::Info above_now, fs::info(one));
  DEDUP_ASSIGN(const fs::Info below_now, fs::info(other));
  return headers[0] == headers[1] && below_now.size <= above_now.size;
}

// What has the name already is that very file, or an older copy, from a process that died.
Status link_over(const std::string& whole, const std::string& path) {
  const Status linked = fs::link(whole, path);
  if (linked.code() != Code::kFileExists) return linked;
  DEDUP_ASSIGN(const fs::Info one, fs::info(whole));
  DEDUP_ASSIGN(const fs::Info other, fs::info(path));
  if (one.inode == other.inode) return Status::ok();
  DEDUP_TRY(fs::remove_file(path));
  return fs::link(whole, path);
}

}  // namespace

Status clear_half_moves(const std::vector<Tiers::Tier>& tiers) {
  // The first one, too: it may have been another's that was above.
  for (const Tiers::Tier& tier : tiers) {
    const std::string path = tier.layout.moving();
    DEDUP_ASSIGN(const bool is_there, fs::exists(path));
    if (!is_there) continue;
    const auto turn = take_turn(tiers.back().layout);
    if (turn.status().code() == Code::kFileInUse) return Status::ok();
    DEDUP_TRY(turn.status());
    DEDUP_TRY(fs::remove_file(path));
  }
  return Status::ok();
}

Result<std::unique_ptr<SegmentMover>> SegmentMover::create(const Store& store,
                                                           std::shared_ptr<const Tiers> tiers) {
  DEDUP_ASSIGN(fs::File turn, take_turn(tiers->layout(tiers->last())));
  return std::unique_ptr<SegmentMover>(new SegmentMover(store, std::move(tiers), std::move(turn)));
}

SegmentMover::SegmentMover(const Store& store, std::shared_ptr<const Tiers> tiers, fs::File turn)
    : store_(store), tiers_(std::move(tiers)), turn_(std::move(turn)) {}

SegmentMover::~SegmentMover() {
  // If even that fails, the next one does it.
  if (copying_) (void)fs::remove_file(tiers_->layout(copying_->to).moving());
}

// ---- What is to go ----------------------------------------------------------------------------

Result<std::vector<SegmentMover::Candidate>> SegmentMover::candidates() {
  const Layout& above = tiers_->layout(tier_);
  std::map<ino_t, Candidate> found;
  DEDUP_ASSIGN(const auto files, fs::list_if_there(above.files()));
  for (const std::string& file : files) {
    const auto identity = parse_id_name(file);
    if (!identity) continue;
    DEDUP_ASSIGN(const auto names, fs::list_if_there(above.segments(*identity)));
    std::set<std::uint64_t> committed;
    if (const auto newest = store_.newest(*identity); newest.is_ok()) {
      // One that cannot be read names nothing: what it has stays where it is.
      const auto index = store_.index(*identity, newest->attempt);
      if (index.is_ok()) {
        for (const auto& use : (*index)->segments()) committed.insert(use.segment);
      }
    }
    for (const std::string& name : names) {
      const auto number = parse_number_name(name, kSegmentSuffix);
      if (!number) continue;
      const auto about = fs::info(above.segment(*identity, *number));
      if (about.status().code() == Code::kNoSuchFile) continue;
      DEDUP_TRY(about.status());
      Candidate& candidate = found[about->inode];
      candidate.number = *number;
      candidate.about = *about;
      candidate.names.push_back(*identity);
      candidate.is_committed = candidate.is_committed || committed.contains(*number);
    }
  }
  std::vector<Candidate> all;
  for (auto& [inode, candidate] : found) {
    // Who gives it another name just now comes first.
    const bool has_all = candidate.about.links == candidate.names.size();
    if (candidate.is_committed && has_all) {
      all.push_back(std::move(candidate));
    } else {
      note_stays(candidate, candidate.is_committed ? Reason::kOpen : Reason::kNotCommitted);
    }
  }
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.about.modified, a.number) > std::tie(b.about.modified, b.number);
  });
  return all;
}

void SegmentMover::note_stays(const Candidate& segment, Reason reason) {
  if (!tiers_->is_leaving(tier_)) return;
  const std::string& directory = tiers_->layout(tier_).root;
  auto at = std::find_if(stays_.begin(), stays_.end(), [&](const Stays& one) {
    return one.directory == directory && one.reason == reason;
  });
  if (at == stays_.end()) at = stays_.insert(at, {directory, reason, 0, 0});
  ++at->segments;
  at->bytes += segment.about.allocated;
}

// Where in the order one was that is leaving is not known: what it has must not move up.
std::size_t SegmentMover::first_below() const {
  return tiers_->is_leaving(tier_) ? tiers_->last() : tier_ + 1;
}

std::optional<std::size_t> SegmentMover::tier_with_room(std::uint64_t bytes) const {
  for (std::size_t tier = first_below(); tier < tiers_->count(); ++tier) {
    if (tiers_->is_leaving(tier)) continue;
    const auto room = tiers_->room(tier);
    if (!room.is_ok()) continue;
    const std::uint64_t most = tier == tiers_->last() ? room->most : room->mark();
    if (room->used + bytes <= most) return tier;
  }
  return std::nullopt;
}

Result<std::optional<std::size_t>> SegmentMover::moved_before(const Candidate& segment) const {
  for (std::size_t tier = first_below(); tier < tiers_->count(); ++tier) {
    for (const Id128& name : segment.names) {
      const auto about = fs::info(tiers_->layout(tier).segment(name, segment.number));
      if (about.status().code() == Code::kNoSuchFile) continue;
      DEDUP_TRY(about.status());
      if (is_copy_of(*about, segment.about)) return std::optional(tier);
    }
  }
  return std::optional<std::size_t>();
}

// As where a tier is a copy of what it was some time ago: the one below may be the one that is
// wanted.
Result<bool> SegmentMover::hides_another(const Candidate& segment) const {
  for (std::size_t tier = first_below(); tier < tiers_->count(); ++tier) {
    for (const Id128& name : segment.names) {
      const auto one = are_one(tiers_->layout(tier_).segment(name, segment.number),
                               tiers_->layout(tier).segment(name, segment.number));
      if (one.status().code() == Code::kNoSuchFile) continue;
      DEDUP_TRY(one.status());
      if (!*one) return true;
    }
  }
  return false;
}

// ---- Moving -----------------------------------------------------------------------------------

Status SegmentMover::begin(const Candidate& segment, std::optional<Reason>& stays) {
  stays.reset();
  auto source = fs::open_read(tiers_->layout(tier_).segment(segment.names.front(), segment.number));
  if (source.status().code() == Code::kNoSuchFile) return Status::ok();  // just removed
  DEDUP_TRY(source.status());
  DEDUP_ASSIGN(const bool is_closed, fs::try_lock(*source, true));
  if (!is_closed) {
    stays = Reason::kOpen;
    return Status::ok();
  }
  DEDUP_ASSIGN(const bool hides, hides_another(segment));
  if (hides) {
    stays = Reason::kOtherBelow;
    return Status::ok();
  }
  DEDUP_ASSIGN(const auto before, moved_before(segment));
  if (before) return rename_all(segment, *before, false);
  const auto to = tier_with_room(segment.about.size);
  if (!to) {
    stays = Reason::kNoRoom;
    return Status::ok();
  }
  const std::string path = tiers_->layout(*to).moving();
  DEDUP_TRY(fs::remove_file(path));
  DEDUP_ASSIGN(fs::File copy, fs::create_new(path));
  copying_ = Copying{segment, *to, std::move(*source), std::move(copy), 0};
  return Status::ok();
}

Status SegmentMover::begin_next() {
  while (!copying_ && tier_ < tiers_->last()) {
    if (!is_listed_) {
      is_listed_ = true;
      too_much_ = 0;
      left_.clear();
      const auto room = tiers_->room(tier_);
      // A tier that was lost meanwhile has nothing to be moved.
      if (room.status().code() != Code::kNoSuchFile) {
        DEDUP_TRY(room.status());
        const std::uint64_t aim = room->most / 5 * kFifthsLeft;
        if (room->used > room->mark() && room->used > aim) too_much_ = room->used - aim;
      }
      if (too_much_ != 0) {
        DEDUP_ASSIGN(left_, candidates());
      }
    }
    if (too_much_ == 0 || left_.empty()) {
      ++tier_;
      is_listed_ = false;
      continue;
    }
    const Candidate segment = std::move(left_.back());
    left_.pop_back();
    std::optional<Reason> stays;
    DEDUP_TRY(begin(segment, stays));
    // A smaller one may fit.
    if (stays) {
      note_stays(segment, *stays);
    } else if (!copying_) {
      too_much_ -= std::min(too_much_, segment.about.allocated);
    }
  }
  return Status::ok();
}

Status SegmentMover::copy_some(Moved& moved) {
  Copying& now = *copying_;
  const std::uint64_t left = now.segment.about.size - now.done;
  Bytes buffer(static_cast<std::size_t>(std::min<std::uint64_t>(left, kStepBytes)));
  DEDUP_TRY(fs::read_at(now.source, now.done, buffer));
  DEDUP_TRY(fs::write_at(now.copy, now.done, buffer));
  fs::start_write_back(now.copy, now.done, buffer.size());
  now.done += buffer.size();
  moved.bytes = buffer.size();
  return now.done == now.segment.about.size ? finish_copy() : Status::ok();
}

Status SegmentMover::finish_copy() {
  const Copying& now = *copying_;
  DEDUP_TRY(fs::sync_data(now.copy));
  DEDUP_TRY(rename_all(now.segment, now.to, true));
  too_much_ -= std::min(too_much_, now.segment.about.allocated);
  copying_.reset();
  return Status::ok();
}

// Only what is below for certain goes above.
Status SegmentMover::rename_all(const Candidate& segment, std::size_t to, bool from_moving) {
  const Layout& above = tiers_->layout(tier_);
  const Layout& below = tiers_->layout(to);
  const auto gone = [](const Status& status) { return status.code() == Code::kNoSuchFile; };
  std::vector<Id128> names;
  std::string whole = from_moving ? below.moving() : std::string();  // a name of it that is there
  for (const Id128& name : segment.names) {
    DEDUP_ASSIGN(const bool is_wanted, fs::exists(above.segment(name, segment.number)));
    if (!is_wanted) continue;  // just removed
    const Status made = tiers_->make_segments_directory(to, name);
    if (gone(made)) continue;
    DEDUP_TRY(made);
    names.push_back(name);
    if (!whole.empty()) continue;
    const std::string path = below.segment(name, segment.number);
    const auto about = fs::info(path);
    if (!gone(about.status())) DEDUP_TRY(about.status());
    if (about.is_ok() && is_copy_of(*about, segment.about)) whole = path;
  }
  std::vector<Id128> placed;
  for (const Id128& name : names) {
    if (whole.empty()) break;  // just removed
    const std::string path = below.segment(name, segment.number);
    const Status put = path == whole ? Status::ok() : link_over(whole, path);
    if (gone(put)) continue;
    DEDUP_TRY(put);
    placed.push_back(name);
  }
  if (from_moving) DEDUP_TRY(fs::remove_file(below.moving()));
  for (const Id128& name : placed) {
    for (const std::string& directory : tiers_->directories_of_names(to, name)) {
      DEDUP_TRY(fs::sync_directory(directory));
    }
  }
  // Chunks of it may have been made unreadable since it was copied (Store::spoil_chunk): then it is
  // copied anew another time.
  bool is_as_copied = true;
  for (const Id128& name : placed) {
    const auto now = fs::info(above.segment(name, segment.number));
    if (gone(now.status())) continue;
    DEDUP_TRY(now.status());
    is_as_copied = is_as_copied && is_same(*now, segment.about);
  }
  for (const Id128& name : placed) {
    const Layout& from = is_as_copied ? above : below;
    DEDUP_TRY(fs::remove_file(from.segment(name, segment.number)));
  }
  return Status::ok();
}

Result<Store::Mover::Moved> SegmentMover::step() {
  Moved moved;
  if (!copying_) DEDUP_TRY(begin_next());
  if (!copying_) {
    moved.done = true;
    return moved;
  }
  const Status status = copy_some(moved);
  if (status.is_ok()) return moved;
  (void)fs::remove_file(tiers_->layout(copying_->to).moving());
  copying_.reset();
  return status;
}

}  // namespace dedup::store
