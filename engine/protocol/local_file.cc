#include "engine/protocol/local_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/protocol/given_up.h"
#include "plan/log_runs.h"
#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

std::mutex registry_mutex;
// A process has one client, but where one program plays several jobs each has its own.
using Key = std::pair<const service::Client*, Id128>;
// Never destroyed: files are closed while the process ends.
std::map<Key, std::weak_ptr<LocalFile>>& registry() {
  static auto& map = *new std::map<Key, std::weak_ptr<LocalFile>>;
  return map;
}

}  // namespace

Result<std::shared_ptr<LocalFile>> LocalFile::get(service::Client& client, const Id128& identity,
                                                  const StorePlace& place) {
  std::shared_ptr<LocalFile> file;  // outlives the lock: its destructor takes it
  const std::lock_guard lock(registry_mutex);
  auto& entry = registry()[{&client, identity}];
  file = entry.lock();
  if (file) return file;
  file.reset(new LocalFile(client, identity, place));
  DEDUP_ASSIGN(file->store_, store::Store::open(place, false));
  entry = file;
  return file;
}

LocalFile::LocalFile(service::Client& client, const Id128& identity, StorePlace place)
    : client_(&client),
      identity_(identity),
      place_(std::move(place)),
      neighbours_(client, identity),
      settled_(client, identity) {}

LocalFile::~LocalFile() {
  const std::lock_guard lock(registry_mutex);
  const auto it = registry().find({client_, identity_});
  if (it != registry().end() && it->second.expired()) registry().erase(it);
}

Result<LocalFile::Appended> LocalFile::append(std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  if (!log_) {
    DEDUP_ASSIGN(const service::NumberReply reply,
                 client_->call(client_->self(), service::OpenLog{identity_}));
    DEDUP_ASSIGN(log_, store_->create_log(identity_, reply.number));
    log_number_ = reply.number;
  }
  auto offset = log_->append(data);
  for (bool may_help = true; may_help && offset.status().code() == Code::kNoSpace;) {
    const service::Space anything{identity_, service::Space::kAnything};
    DEDUP_ASSIGN(const service::SpaceReply room, client_->call(client_->self(), anything));
    say_given_up(client_->node_name(client_->self()), room);
    may_help = !room.given_up.empty();
    offset = log_->append(data);
  }
  DEDUP_TRY(offset.status());
  return Appended{log_number_, *offset};
}

void LocalFile::remember(const LoggedRun& run) {
  const std::lock_guard lock(mutex_);
  if (runs_.size() > sealed_) {
    LoggedRun& last = runs_.back();
    if (last.end() == run.file_offset && last.log_offset + last.length == run.log_offset) {
      last.length += run.length;
      return;
    }
  }
  runs_.push_back(run);
}

Result<std::unique_ptr<store::LeaseTable>> LocalFile::make_leases() {
  const std::lock_guard lock(mutex_);
  return log_->make_leases();
}

std::vector<LoggedRun> LocalFile::seal() {
  const std::lock_guard lock(mutex_);
  sealed_ = runs_.size();
  return plan::newest_runs(runs_);
}

bool LocalFile::has_logged() const {
  const std::lock_guard lock(mutex_);
  return !runs_.empty();
}

std::uint64_t LocalFile::log_size() const {
  const std::lock_guard lock(mutex_);
  return log_ ? log_->size() : 0;
}

std::uint64_t LocalFile::log_number() const {
  const std::lock_guard lock(mutex_);
  return log_number_;
}

Status LocalFile::discard_sealed(store::LogWriter::Space space) {
  const std::lock_guard lock(mutex_);
  runs_.erase(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(sealed_));
  runs_.shrink_to_fit();
  sealed_ = 0;
  if (!log_ || !runs_.empty()) return Status::ok();
  const Status cleared = log_->clear(space);
  if (log_->has_ended()) {
    log_.reset();
    leases_.forget_table();
  }
  return cleared;
}

std::unique_ptr<store::AdoptedLog> LocalFile::adopt_log() {
  const std::lock_guard lock(mutex_);
  if (!log_ || store_->has_tiers()) return nullptr;
  // Before it has the name of a segment that no generation has: so nobody removes it.
  const service::OpenSegment request{identity_, log_number_};
  if (!client_->call(client_->self(), request).is_ok()) return nullptr;
  auto adopted = store_->adopt_log(identity_, *log_);
  return adopted.is_ok() ? *std::move(adopted) : nullptr;
}

Result<store::LogView> LocalFile::view_log(std::uint64_t offset, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return log_->view(offset, bytes);
}

Status LocalFile::read_log(std::uint64_t number, std::uint64_t offset, std::span<std::byte> out) {
  std::shared_ptr<const store::LogReader> reader;
  {
    const std::lock_guard lock(mutex_);
    DEDUP_ASSIGN(reader, store_->log(identity_, number));
  }
  return reader->read(offset, out);
}

Result<std::shared_ptr<const store::SegmentReader>> LocalFile::segment(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return store_->segment(identity_, number);
}

Result<std::uint64_t> LocalFile::segment_size(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  return store_->segment_size(identity_, number);
}

Result<std::unique_ptr<store::IndexReader>> LocalFile::index(const Id128& generation) {
  const std::lock_guard lock(mutex_);
  return store_->index(identity_, generation);
}

Result<std::unique_ptr<store::SegmentWriter>> LocalFile::create_segment(std::uint64_t number,
                                                                        store::SegmentUse use) {
  const std::lock_guard lock(mutex_);
  return store_->create_segment(identity_, number, use);
}

bool LocalFile::has_tiers() const {
  const std::lock_guard lock(mutex_);
  return store_->has_tiers();
}

void LocalFile::forget_segments() {
  neighbours_.forget();
  const std::lock_guard lock(mutex_);
  store_->close_readers(identity_);
}

}  // namespace dedup::engine
