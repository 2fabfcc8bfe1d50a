#include "store/replacement.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/codec.h"
#include "store/format.h"

namespace dedup::store {
namespace {

constexpr std::string_view kTemporary = ".dedup-tmp-";
constexpr std::string_view kCopy = ".dedup-copy-";
constexpr std::string_view kClaim = ".dedup-next-";
constexpr std::size_t kIdDigits = 32;
constexpr int kMaxClaims = 1000;
constexpr std::size_t kClaimNumber = 4;  // at most: a point and three digits
constexpr std::size_t kLongestBase = NAME_MAX - 1 - kClaim.size() - kIdDigits - kClaimNumber;
static_assert(kTemporary.size() <= kClaim.size() && kCopy.size() <= kClaim.size());
constexpr int kLooks = 5;  // at a path that others replace meanwhile
constexpr std::size_t kHole = std::size_t{64} << 10;

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

int stat_of(const std::string& path, struct stat& s) {
  return fs::retried([&] { return system().stat(path.c_str(), &s); });
}

int stat_of(const fs::File& file, struct stat& s) {
  return fs::retried([&] { return file.system().fstat(file.fd(), &s); });
}

int change_owner(const fs::File& file, uid_t owner, gid_t group) {
  return fs::retried([&] { return file.system().fchown(file.fd(), owner, group); });
}

std::string hex(std::uint64_t number) {
  return hex_string(&number, sizeof number);
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// What a link names is replaced, not the link.
std::string target_of(const std::string& path) {
  std::string target;
  const bool is_link = fs::read_link(path).is_ok();
  return is_link && system().realpath(path.c_str(), target) == 0 ? target : path;
}

// A hidden name beside `target`. One that would be too long is cut, and its checksum tells it from
// others.
std::string beside(const std::string& target, std::string_view kind, const std::string& rest) {
  std::string name = name_of(target);
  if (name.size() > kLongestBase) {
    const std::string whole =
        hex(format::checksum(std::as_bytes(std::span(name.data(), name.size()))));
    name = name.substr(0, kLongestBase - whole.size()) + whole;
  }
  return fs::directory_of(target) + "/." + name + std::string(kind) + rest;
}

// For remove_leftovers() alone, which locks what it removes. False if that came first: between two
// calls the file had a name and no lock. Where there are no locks it removes nothing.
bool keep_from_tidying(const fs::File& replacement) {
  const auto locked = fs::try_lock(replacement, true);
  if (!locked.is_ok()) return true;
  const auto held = fs::info(replacement);
  const auto named = fs::info(replacement.path());
  return *locked && held.is_ok() && named.is_ok() && named->inode == held->inode &&
         named->device == held->device;
}

// Another id: as a number, one more.
Id128 following(Id128 id) {
  for (std::size_t i = id.bytes.size(); i > 0 && ++id.bytes[i - 1] == 0;) --i;
  return id;
}

// A copy's id begins with half of its generation's, so that its name tells whose it is.
constexpr std::size_t kOfGeneration = sizeof(Id128::bytes) / 2;

// `like`: the generation, or another copy of it.
Id128 copy_id(const Id128& like) {
  Id128 id = Id128::random();
  std::copy_n(like.bytes.begin(), kOfGeneration, id.bytes.begin());
  return id;
}

// Of a plain file that is kept, the other half is its time of modification, by which it is known to
// be unchanged.
Id128 kept_id(const Id128& attempt, std::uint64_t modified) {
  Encoder e;
  e.put(modified);
  Id128 id = attempt;
  std::copy_n(e.bytes().begin(), sizeof modified,
              std::as_writable_bytes(std::span(id.bytes)).begin() + kOfGeneration);
  return id;
}

Id128 kept_id(const Id128& attempt, const Id128& kept) {
  Id128 id = kept;
  std::copy_n(attempt.bytes.begin(), kOfGeneration, id.bytes.begin());
  return id;
}

// What claims are on, as part of their names. The device has another number on every node, and
// another name for the file, or other permissions, change only the last of its times.
std::string key_of(const PathState& state) {
  if (state.kind == PathState::Kind::kPlaceholder) return state.placeholder.attempt.hex();
  Encoder e;
  for (const std::uint64_t field : {state.stamp.inode, state.stamp.size, state.stamp.modified}) {
    e.put(field);
  }
  return hex(format::checksum(e.bytes())) + hex(format::checksum(e.bytes(), 1));
}

std::string claim_on(const std::string& target, const PathState& state, int number) {
  return beside(target, kClaim, key_of(state) + "." + std::to_string(number));
}

bool can_be_claimed(const PathState& state) {
  return state.kind == PathState::Kind::kPlain || state.kind == PathState::Kind::kPlaceholder;
}

bool is_same(const PathState& a, const PathState& b) {
  return a.kind == b.kind && a.stamp.inode == b.stamp.inode && key_of(a) == key_of(b);
}

// Whether a plain file is also as it was.
bool is_as_it_was(const PathState& now, const PathState& before) {
  const bool is_plain = now.kind == PathState::Kind::kPlain;
  return is_same(now, before) && !(is_plain && now.stamp.changed != before.stamp.changed);
}

Status conflict(const std::string& path) {
  return {Code::kConflict, path +
                               ": another program or job has changed or replaced the file since it "
                               "was opened; nothing of it is overwritten"};
}

// The replacement that a claim leads to, whether that is there or not; nothing if there is no such
// claim.
Result<std::optional<std::string>> claimed_by(const std::string& claim) {
  auto name = fs::read_link(claim);
  if (name.status().code() == Code::kNoSuchFile) return std::optional<std::string>();
  DEDUP_TRY(name.status());
  if (!is_beside_a_path(*name) || name->find('/') != std::string::npos) {
    return Status(Code::kCorrupt, claim + ": leads to " + *name + ", which is no replacement");
  }
  return std::optional(fs::directory_of(claim) + "/" + *name);
}

// Makes `claim`, or finds whose it is. The replacement that it leads to.
Result<std::string> claim_for(const std::string& replacement, const std::string& claim) {
  const Status made = fs::make_link(name_of(replacement), claim);
  if (made.is_ok()) return replacement;
  // Network file systems may have lost no more than the answer.
  DEDUP_ASSIGN(const std::optional<std::string> other, claimed_by(claim));
  if (other) return *other;
  if (made.code() != Code::kAccess && made.code() != Code::kUnsupported) return made;
  return Status(Code::kUnsupported,
                claim +
                    ": the file system makes no symbolic links, without which jobs cannot be "
                    "kept from replacing each other's files; use another directory");
}

// The name that a hidden one was made for: as it was, unless that was cut.
std::string_view base_of(std::string_view name, std::string_view kind) {
  return name.substr(1, name.find(kind) - 1);
}

bool are_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

bool has_id(std::string_view text) {
  return text.size() == kIdDigits && are_digits(text, "0123456789abcdef");
}

bool is_of_kind(std::string_view name, std::string_view kind) {
  const std::size_t at = name.rfind(kind);
  return name.starts_with('.') && at != std::string_view::npos &&
         has_id(name.substr(at + kind.size()));
}

bool is_replacement(std::string_view name) {
  return is_of_kind(name, kTemporary) || is_of_kind(name, kCopy);
}

bool is_claim(std::string_view name) {
  const std::size_t at = name.rfind(kClaim);
  if (!name.starts_with('.') || at == std::string_view::npos) return false;
  const std::string_view rest = name.substr(at + kClaim.size());
  const std::size_t point = rest.find('.');
  return point != std::string_view::npos && has_id(rest.substr(0, point)) &&
         are_digits(rest.substr(point + 1), "0123456789");
}

// Whether a claim may be on what stands at its path.
bool may_mean_something(const std::string& directory, std::string_view claim) {
  const std::string_view base = base_of(claim, kClaim);
  if (base.size() == kLongestBase) return true;  // cut, perhaps: of which path?
  const auto now = look_at(directory + "/" + std::string(base));
  if (!now.is_ok()) return true;
  const std::string_view key = claim.substr(1 + base.size() + kClaim.size(), kIdDigits);
  return can_be_claimed(*now) && key == key_of(*now);
}

// Whether somebody may go on with a copy.
bool may_be_wanted(const std::string& directory, std::string_view copy) {
  const std::string_view base = base_of(copy, kCopy);
  if (base.size() == kLongestBase) return true;  // cut, perhaps: of which path?
  const auto now = look_at(directory + "/" + std::string(base));
  if (!now.is_ok()) return true;
  const std::string_view id = copy.substr(copy.size() - kIdDigits);
  return now->kind == PathState::Kind::kPlaceholder &&
         id.starts_with(now->placeholder.attempt.hex().substr(0, 2 * kOfGeneration));
}

}  // namespace

// ---- Writing -----------------------------------------------------------------------------------

Result<std::unique_ptr<Replacement>> Replacement::make(const std::string& path,
                                                       std::string_view kind, Id128 id,
                                                       mode_t permissions) {
  const std::string target = target_of(path);
  std::unique_ptr<Replacement> replacement;
  for (int i = 0; !replacement; ++i) {
    if (i == kLooks) {
      return Status(Code::kIo, path + ": files beside it are removed all the time");
    }
    if (i != 0) id = following(id);
    DEDUP_ASSIGN(fs::File file, fs::open_file(beside(target, kind, id.hex()),
                                              O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, permissions));
    replacement.reset(new Replacement(std::move(file), target, id, true));
    if (!keep_from_tidying(replacement->file_)) replacement.reset();
  }
  DEDUP_TRY(replacement->take_permissions());
  return replacement;
}

Result<std::unique_ptr<Replacement>> Replacement::begin(const std::string& path, const Id128& id,
                                                        mode_t permissions) {
  return make(path, kTemporary, id, permissions);
}

Result<std::unique_ptr<Replacement>> Replacement::begin_copy(const std::string& path,
                                                             const Id128& attempt) {
  return make(path, kCopy, copy_id(attempt), 0600);
}

Result<std::unique_ptr<Replacement>> Replacement::find(const std::string& path,
                                                       std::string_view kind, const Id128& id) {
  const std::string target = target_of(path);
  DEDUP_ASSIGN(fs::File file, fs::open_file(beside(target, kind, id.hex()), O_WRONLY | O_NOFOLLOW));
  return std::unique_ptr<Replacement>(new Replacement(std::move(file), target, id, false));
}

Result<std::unique_ptr<Replacement>> Replacement::join(const std::string& path, const Id128& id) {
  return find(path, kTemporary, id);
}

Result<std::unique_ptr<Replacement>> Replacement::join_copy(const std::string& path,
                                                            const Id128& id) {
  DEDUP_ASSIGN(auto joined, find(path, kCopy, id));
  // For take_copy() alone; where there are no locks it is not seen.
  (void)fs::try_lock(joined->file_, false);
  return joined;
}

Result<std::unique_ptr<Replacement>> Replacement::take_copy(const std::string& path,
                                                            const Id128& id) {
  DEDUP_ASSIGN(auto found, find(path, kCopy, id));
  const auto locked = fs::try_lock(found->file_, true);
  if (locked.is_ok() && !*locked) {
    return Status(Code::kFileInUse, found->file_.path() + ": somebody writes to it");
  }
  // Of all who would take it one succeeds.
  const Id128 taken = copy_id(id);
  DEDUP_TRY(fs::rename(found->file_.path(), beside(found->path_, kCopy, taken.hex())));
  found.reset();
  DEDUP_ASSIGN(auto mine, find(path, kCopy, taken));
  mine->set_mine(true);
  return mine;
}

Result<std::unique_ptr<Replacement>> Replacement::take_kept(const std::string& path,
                                                            const Id128& id) {
  const std::string target = target_of(path);
  const std::string name = beside(target, kCopy, id.hex());
  DEDUP_ASSIGN(fs::File kept, fs::open_file(name, O_RDWR | O_NOFOLLOW));
  const auto is_unchanged_yet = [&]() -> Result<bool> {
    DEDUP_ASSIGN(const Stamp now, stamp_of(kept));
    return kept_id(id, now.modified) == id;
  };
  // Whoever has it open reads on in the old file, or writes to that.
  DEDUP_ASSIGN(auto copy, begin_copy(path, id));
  const Status cloned = fs::clone(copy->file_, kept);
  if (cloned.is_ok()) {
    DEDUP_ASSIGN(const bool is_whole, is_unchanged_yet());
    (void)fs::remove_file(name);
    if (is_whole) return copy;
    return Status(Code::kFileInUse, name + ": somebody has changed it");
  }
  copy.reset();
  // Else only a file that nobody else can reach may be written to. Who has it open on other systems
  // this one cannot tell.
  DEDUP_ASSIGN(const DirectoryId directory, directory_id(target));
  if (is_between_systems(directory)) {
    return Status(Code::kFileInUse, name + ": somebody elsewhere may have it open");
  }
  DEDUP_ASSIGN(const fs::Info about, fs::info(kept));
  DEDUP_ASSIGN(const bool is_open, fs::is_open_elsewhere(kept));
  DEDUP_ASSIGN(const bool is_whole, is_unchanged_yet());
  if (about.links != 1 || is_open || !is_whole) {
    return Status(Code::kFileInUse, name + ": somebody has it open, or has changed it");
  }
  const Id128 taken = copy_id(id);
  const std::string mine = beside(target, kCopy, taken.hex());
  DEDUP_TRY(fs::rename(name, mine));
  DEDUP_ASSIGN(fs::File file, fs::open_file(mine, O_WRONLY | O_NOFOLLOW));
  return std::unique_ptr<Replacement>(new Replacement(std::move(file), target, taken, true));
}

Result<Id128> keep_as_copy(const std::string& path, const Stamp& plain, const Id128& attempt) {
  const std::string target = target_of(path);
  const Id128 id = kept_id(attempt, plain.modified);
  const std::string name = beside(target, kCopy, id.hex());
  DEDUP_TRY(fs::link(target, name));
  const auto linked = look_at(name);
  const bool is_it = linked.is_ok() && linked->kind == PathState::Kind::kPlain &&
                     linked->stamp.inode == plain.inode && linked->stamp.size == plain.size &&
                     linked->stamp.modified == plain.modified;
  // What others wrote to it may be nowhere but in memory.
  const auto kept = fs::open_read(name);
  const Status flushed = kept.is_ok() ? fs::sync(*kept) : kept.status();
  if (is_it && flushed.is_ok()) return id;
  (void)fs::remove_file(name);
  return is_it ? flushed : conflict(path);
}

Result<Id128> keep_for(const std::string& path, const Id128& id, const Id128& attempt) {
  const std::string target = target_of(path);
  const Id128 now = kept_id(attempt, id);
  DEDUP_TRY(fs::rename(beside(target, kCopy, id.hex()), beside(target, kCopy, now.hex())));
  return now;
}

Status Replacement::take_permissions() {
  struct stat old {};
  if (stat_of(path_, old) != 0) return Status::ok();
  // Only root, or somebody in that group, may give files away.
  if (change_owner(file_, old.st_uid, old.st_gid) != 0) {
    (void)change_owner(file_, static_cast<uid_t>(-1), old.st_gid);
  }
  return fs::set_permissions(file_, old.st_mode & 07777);
}

Replacement::~Replacement() {
  if (is_mine_) (void)fs::remove_file(file_.path());
}

Result<std::uint64_t> Replacement::inode() const {
  DEDUP_ASSIGN(const fs::Info about, fs::info(file_));
  return std::uint64_t{about.inode};
}

Result<Stamp> Replacement::stamp() const {
  return stamp_of(file_);
}

Result<std::uint64_t> Replacement::size() const {
  DEDUP_ASSIGN(const fs::Info about, fs::info(file_));
  return std::uint64_t{about.size};
}

Status Replacement::write(std::uint64_t offset, std::span<const std::byte> data) {
  return fs::write_at(file_, offset, data);
}

Status Replacement::write_sparse(std::uint64_t offset, std::span<const std::byte> data) {
  std::size_t begin = 0;  // of what is not zero, up to `at`
  for (std::size_t at = 0; at < data.size();) {
    const std::size_t end = std::min(data.size(), at + kHole);
    if (is_zero(data.subspan(at, end - at))) {
      if (begin < at) DEDUP_TRY(write(offset + begin, data.subspan(begin, at - begin)));
      begin = end;
    }
    at = end;
  }
  return begin == data.size() ? Status::ok() : write(offset + begin, data.subspan(begin));
}

Status Replacement::resize(std::uint64_t size) {
  return fs::truncate(file_, size);
}

Status Replacement::flush() {
  return fs::sync(file_);
}

Result<bool> Replacement::outlast_clock() const {
  constexpr std::chrono::milliseconds kPause{2};
  constexpr int kPauses = 25;
  DEDUP_ASSIGN(const fs::Info about, fs::info(file_));
  for (int i = 0; i < kPauses; ++i) {
    // Changes the file's other time, by the clock that would date a write just now.
    DEDUP_TRY(fs::set_permissions(file_, about.permissions));
    DEDUP_ASSIGN(const Stamp now, stamp_of(file_));
    if (now.changed > now.modified) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

Result<std::uint64_t> Replacement::block_size() const {
  DEDUP_ASSIGN(const fs::Info about, fs::info(file_));
  return about.block_size;
}

// ---- Putting it there --------------------------------------------------------------------------

bool Replacement::stands_there() const {
  struct stat held {};
  struct stat named {};
  return stat_of(file_, held) == 0 && stat_of(path_, named) == 0 && named.st_ino == held.st_ino &&
         named.st_dev == held.st_dev;
}

// Keeps those who would write to what stands at a path waiting, where that can be, while this
// lives.
class Replacement::Writers {
 public:
  // Whether nobody is writing now.
  bool hold(const std::string& path) {
    auto standing = fs::open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!standing.is_ok()) return true;
    const auto is_held = fs::keep_writers_waiting(*standing);
    if (is_held.is_ok() && !*is_held) return false;
    // By which it can come back.
    std::string name = beside(path, kTemporary, Id128::random().hex());
    if (is_held.is_ok() && fs::link(path, name).is_ok()) {
      standing_.emplace(std::move(*standing));
      name_ = std::move(name);
    }
    return true;
  }
  ~Writers() {
    if (standing_) (void)fs::remove_file(name_);
  }

  // If somebody waits, what he opens is at the path again, in place of what took its place.
  bool let_in(const std::string& path) {
    if (!standing_) return false;
    const auto is_waiting = fs::has_waiting_writers(*standing_);
    return is_waiting.is_ok() && *is_waiting && fs::rename(name_, path).is_ok();
  }

 private:
  std::optional<fs::File> standing_;
  std::string name_;
};

// Who opens it there need not wait for its lock, which HDF5 would not. Copies are not tidied away.
Status Replacement::take_path() {
  if (is_of_kind(name_of(file_.path()), kCopy)) (void)fs::unlock(file_);
  const Status renamed = fs::rename(file_.path(), path_);
  // Network file systems may have lost no more than the answer; or somebody else has done it.
  if (!renamed.is_ok() && !stands_there()) return renamed;
  (void)fs::unlock(file_);
  is_mine_ = false;
  return Status::ok();
}

Status Replacement::put() {
  DEDUP_TRY(take_path());
  return fs::sync_directory(fs::directory_of(path_));
}

Status Replacement::put_after(const PathState& before) {
  return put_claimed(before, nullptr);
}

Status Replacement::put_unless_written(const PathState& before) {
  constexpr std::chrono::milliseconds kPause{10};
  constexpr int kPauses = 50;
  DEDUP_ASSIGN(const DirectoryId directory, directory_id(path_));
  if (is_between_systems(directory)) return put_after(before);
  for (int i = 0; i < kPauses; ++i) {
    if (i != 0) std::this_thread::sleep_for(kPause);
    Writers writers;
    if (writers.hold(path_)) return put_claimed(before, &writers);
  }
  return {Code::kFileInUse, path_ + ": somebody has it open for writing"};
}

// Waits for nobody: of all who would replace the same, one gets through.
Status Replacement::claim_path(const PathState& before, std::vector<std::string>& claims) {
  for (;;) {
    if (claims.size() == kMaxClaims) {
      return {Code::kIo, path_ + ": " + std::to_string(kMaxClaims) +
                             " jobs were killed while they replaced it: remove " +
                             claim_on(path_, before, 0) + " and those like it"};
    }
    claims.push_back(claim_on(path_, before, static_cast<int>(claims.size())));
    DEDUP_ASSIGN(const std::string winner, claim_for(file_.path(), claims.back()));
    if (winner == file_.path()) break;
    DEDUP_ASSIGN(const bool is_there, fs::exists(winner));
    if (is_there) return conflict(path_);
    // Put there, or given up: what stands there now tells.
    DEDUP_ASSIGN(const PathState now, look_at(path_));
    if (!is_as_it_was(now, before)) return conflict(path_);
  }
  DEDUP_ASSIGN(const PathState now, look_at(path_));
  // Who settles the path meanwhile takes this job for a killed one, and puts it there.
  if (!is_as_it_was(now, before) && !stands_there()) {
    if (!is_same(now, before)) {
      (void)fs::remove_file(claims.back());
      return conflict(path_);
    }
    // What the claim is on stands there still: if it went, somebody else could make it while this
    // is being put there. So it stays, and what it leads to goes.
    DEDUP_TRY(fs::remove_file(file_.path()));
    if (!stands_there()) return conflict(path_);
  }
  return Status::ok();
}

Status Replacement::put_claimed(const PathState& before, Writers* writers) {
  std::vector<std::string> claims;
  DEDUP_TRY(claim_path(before, claims));
  const Status taken = take_path();
  if (!taken.is_ok()) return taken.code() == Code::kNoSuchFile ? conflict(path_) : taken;
  // Claims stay then, as what they are on stands there.
  if (writers != nullptr && writers->let_in(path_)) {
    return {Code::kFileInUse, path_ + ": somebody has opened it for writing"};
  }
  DEDUP_TRY(fs::sync_directory(fs::directory_of(path_)));
  // Those that stay mean nothing.
  for (const std::string& claim : claims) (void)fs::remove_file(claim);
  return Status::ok();
}

Status Replacement::put_new() {
  const Status linked = fs::link(file_.path(), path_);
  if (linked.is_ok()) {
    DEDUP_TRY(fs::remove_file(file_.path()));
    is_mine_ = false;
    return fs::sync_directory(fs::directory_of(path_));
  }
  if (linked.code() == Code::kFileExists) return {Code::kFileExists, path_ + ": is there already"};
  // Some file systems have no second names for a file.
  DEDUP_ASSIGN(const bool is_there, fs::exists(path_));
  if (is_there) return {Code::kFileExists, path_ + ": is there already"};
  return put();
}

namespace {

// What others have renamed in the directory so far is seen from then on, on network file systems
// too.
Status see_changes_beside(const std::string& target) {
  const std::string name = beside(target, kTemporary, Id128::random().hex());
  DEDUP_TRY(fs::make_link(name_of(target), name));
  return fs::remove_file(name);
}

}  // namespace

Result<PathState> settle_path(const std::string& path) {
  const std::string target = target_of(path);
  for (int i = 0; i < kLooks; ++i) {
    DEDUP_ASSIGN(PathState state, look_at(path));
    if (!can_be_claimed(state)) return state;
    std::optional<std::string> standing;
    for (int number = 0; !standing; ++number) {
      DEDUP_ASSIGN(const auto replacement, claimed_by(claim_on(target, state, number)));
      if (!replacement) return state;
      DEDUP_ASSIGN(const bool is_there, fs::exists(*replacement));
      if (is_there) standing = replacement;
    }
    // A claim on what stands there after the claim was seen has held when it was made.
    DEDUP_TRY(see_changes_beside(target));
    DEDUP_ASSIGN(const PathState now, look_at(path));
    if (!is_same(now, state)) continue;
    const Status renamed = fs::rename(*standing, target);
    if (renamed.code() == Code::kNoSuchFile) continue;  // put there by its job, or given up
    DEDUP_TRY(renamed);
    DEDUP_TRY(fs::sync_directory(fs::directory_of(target)));
  }
  return Status(Code::kConflict, path + ": other jobs replace the file all the time");
}

bool has_copy(const std::string& path, const Id128& id) {
  const auto is_there = fs::exists(beside(target_of(path), kCopy, id.hex()));
  return is_there.is_ok() && *is_there;
}

void remove_copy(const std::string& path, const Id128& id) {
  (void)fs::remove_file(beside(target_of(path), kCopy, id.hex()));
}

// ---- What killed jobs leave --------------------------------------------------------------------

bool is_beside_a_path(std::string_view name) {
  return is_replacement(name) || is_claim(name);
}

Status remove_leftovers(const std::string& directory) {
  DEDUP_ASSIGN(const auto names, fs::list(directory));
  std::set<std::string> settled;
  for (const std::string& name : names) {
    if (!is_claim(name)) continue;
    const std::string path = directory + "/" + std::string(base_of(name, kClaim));
    if (!settled.insert(path).second) continue;
    // One that cannot be settled keeps what it has.
    (void)settle_path(path);
  }
  for (const std::string& name : names) {
    const std::string entry = directory + "/" + name;
    if (is_of_kind(name, kCopy) && may_be_wanted(directory, name)) continue;
    if (is_replacement(name)) {
      const auto file = fs::open_file(entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      if (!file.is_ok()) continue;
      const auto locked = fs::try_lock(*file, true);
      if (locked.is_ok() && *locked) (void)fs::remove_file(entry);
    } else if (is_claim(name) && !may_mean_something(directory, name)) {
      (void)fs::remove_file(entry);
    }
  }
  return Status::ok();
}

}  // namespace dedup::store
