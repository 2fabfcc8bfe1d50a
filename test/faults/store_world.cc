#include "test/faults/store_world.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/hooks.h"
#include "service/messages/store_node.h"
#include "store/files/layout.h"
#include "store/files/path_entries.h"
#include "store/files/shard_file.h"
#include "store/index.h"
#include "store/log.h"

namespace dedup::test {

using service::Chunk;

StoreWorld::StoreWorld() : StoreJob("/n1/store", "/shared/ckpt") {
  memory_.mount(kDisk);
  memory_.mount(kShared);
  memory_.set_process(process_);
  // A file of a few chunks: its index is to be taken over in part all the same.
  ::setenv("DEDUP_TEST_WORTH_KEEPING", "1", 1);
  EXPECT_EQ(entries_worth_keeping(), 1u);
  faulty_.on_failed_sync = [this](int fd) { memory_.fail_sync(fd); };
  files_[1].path = "/shared/ckpt2";
  files_[1].identity = random_id(random_);
  files_[1].session = random_id(random_);
}

StoreWorld::~StoreWorld() {
  node_.reset();
  store::use_system(before_);
}

// ---- A job -------------------------------------------------------------------------------------

void StoreWorld::exchange(File& file) {
  std::swap(path_, file.path);
  std::swap(identity_, file.identity);
  std::swap(session_, file.session);
  std::swap(base_, file.base);
  std::swap(base_digest_, file.base_digest);
  std::swap(number_, file.number);
  std::swap(generations_, file.generations);
  std::swap(certain_, file.certain);
  std::swap(may_be_deleted_, file.may_be_deleted);
  std::swap(is_deleted_, file.is_deleted);
  std::swap(found_, file.found);
}

void StoreWorld::turn_to(std::size_t file) {
  exchange(files_[turn_]);
  exchange(files_[file]);
  turn_ = file;
  played_ = std::max(played_, file + 1);
}

Status StoreWorld::attach_sharing() {
  DEDUP_TRY(find().status());
  service::Attach request{identity_, path_, template_, {}, true, true};
  request.donor = files_[1 - turn_].identity;
  request.donor_attempt = files_[1 - turn_].base;
  const Status status = node_->on(request).status();
  if (status.is_ok() && plan_.struck != 0) look_for(files_[1 - turn_]);
  return status;
}

void StoreWorld::look_for(const File& donor) {
  const auto store = open_store();
  if (!store.is_ok()) return;
  const auto index = (*store)->index(identity_, donor.base);
  std::vector<Fingerprint> found;
  if (index.is_ok()) found = service::names(donor.generations[donor.certain - 1].chunks);
  const auto reply = node_->on(service::look_at(identity_, found));
  if (!reply.is_ok()) return;
  const auto held = service::held_of(*reply);
  if (std::count(held.begin(), held.end(), 0) != 0) wrong_ = "a rank finds what the node has not";
}

Status StoreWorld::expect_shared(std::size_t segments) const {
  DEDUP_ASSIGN(const auto store, open_store());
  DEDUP_ASSIGN(const auto sizes, store->segments(identity_));
  const auto shared = std::count_if(sizes.begin(), sizes.end(),
                                    [](const store::SegmentSize& one) { return one.is_shared; });
  if (static_cast<std::size_t>(shared) == segments) return Status::ok();
  return {Code::kInternal, std::to_string(shared) + " segments are shared"};
}

Status StoreWorld::put_placeholder(const store::CommitRecord& record) {
  store::Placeholder placeholder;
  placeholder.identity = record.identity;
  placeholder.attempt = record.attempt;
  placeholder.number = record.number;
  placeholder.path = path_;
  DEDUP_ASSIGN(const auto replacement, store::Replacement::begin(path_, record.attempt));
  DEDUP_ASSIGN(placeholder.inode, replacement->inode());
  DEDUP_TRY(replacement->write(0, store::encode_placeholder(placeholder)));
  DEDUP_TRY(replacement->flush());
  return replacement->put();
}

Status StoreWorld::commit_generation(const std::vector<Chunk>& what, bool flush) {
  const Id128 attempt = random_id(random_);
  auto record = begin_commit(attempt, what);
  Status status = record.status();
  if (status.is_ok()) {
    generations_.push_back({*record, what});
    const auto prepared = prepare(*record, flush);
    status = prepared.status();
    EXPECT_TRUE(!prepared.is_ok() || prepared->chunks == what.size());
  }
  if (status.is_ok()) status = finish_commit(*record, flush);
  if (!status.is_ok()) {
    const auto aborted = node_->on(service::Abort{identity_, attempt});
    if (record.is_ok()) generations_.back().aborted = aborted.is_ok();
    return status;
  }
  certain_ = generations_.size();
  const Status named = put_placeholder(*record);
  const Status collected = node_->on(service::Collect{identity_, attempt}).status();
  return named.is_ok() ? collected : named;
}

Status StoreWorld::use_log() {
  DEDUP_ASSIGN(const auto log, node_->on(service::OpenLog{identity_}));
  DEDUP_ASSIGN(const auto store, open_store());
  DEDUP_ASSIGN(const auto writer, store->create_log(identity_, log.number));
  const Bytes data = random_bytes(random_, 3000);
  DEDUP_ASSIGN(const std::uint64_t at, writer->append(data));
  DEDUP_ASSIGN(const auto read, node_->on(service::ReadLog{identity_, log.number, at, 3000}));
  EXPECT_EQ(read.bytes, data);
  DEDUP_TRY(writer->clear(store::LogWriter::Space::kKeep));
  const auto late = node_->on(service::ReadLog{identity_, log.number, at, 3000});
  EXPECT_FALSE(late.is_ok());
  if (late.status().code() != Code::kNotFound) return late.status();
  return writer->clear(store::LogWriter::Space::kFree);
}

Status StoreWorld::adopt() {
  DEDUP_TRY(find().status());
  store::CommitRecord record;
  record.identity = identity_;
  record.number = 1;
  record.attempt = random_id(random_);
  record.path = path_;
  record.stores = {{random_id(random_), "n0"}};
  record.lineage = {{session_, 1}};
  generations_.push_back({record, {}});
  DEDUP_TRY(node_->on(service::Attach{identity_, path_, template_, record.attempt, false, true})
                .status());
  DEDUP_TRY(node_->on(service::Adopt{identity_, record.encode()}).status());
  certain_ = generations_.size();
  return Status::ok();
}

Status StoreWorld::delete_file(const std::vector<Id128>& stores_left) {
  DEDUP_TRY(store::fs::remove_file(path_));
  may_be_deleted_ = true;
  DEDUP_TRY(node_->on(service::Detach{identity_, true, stores_left}).status());
  is_deleted_ = true;
  return Status::ok();
}

Status StoreWorld::detach() {
  return node_->on(service::Detach{identity_, false, {}}).status();
}

void StoreWorld::end_process() {
  node_.reset();
  if (plan_.fault != store::Fault::kDead && plan_.fault != store::Fault::kDeadShort) {
    EXPECT_EQ(memory_.open_files(process_), 0u);
  }
  plan_.set(store::Fault::kNone, 0);
  memory_.kill(process_);
  memory_.set_process(++process_);
  node_ = new_node();
}

void StoreWorld::settle() {
  memory_.settle(kDisk);
  memory_.settle(kShared);
}

// ---- Checking ----------------------------------------------------------------------------------

const StoreWorld::Generation* StoreWorld::known(const Id128& attempt) const {
  for (const Generation& generation : generations_) {
    if (generation.record.attempt == attempt) return &generation;
  }
  return nullptr;
}

std::string StoreWorld::check_newest() {
  found_ = nullptr;
  const auto reply = find();
  if (!reply.is_ok()) return "find: " + reply.status().message();
  if (!reply->damaged.empty()) return "damaged: " + reply->damaged[0];
  if (reply->records.size() > 1) return "two generations";
  if (reply->records.empty()) {
    return certain_ > 0 && !may_be_deleted_ ? "the last generation is gone" : "";
  }
  if (is_deleted_) return "a deleted file is back";
  found_ = known(reply->records[0].digest().attempt);
  if (found_ == nullptr) return "a generation that nobody prepared";
  if (found_->aborted) return "a generation that was aborted";
  if (static_cast<std::size_t>(found_ - generations_.data()) + 1 < certain_) {
    return "an older generation than the last one that was committed";
  }
  return check_content(*found_);
}

std::string StoreWorld::check_content(const Generation& generation) {
  const store::CommitRecord& record = generation.record;
  base_ = record.attempt;
  if (!record.shards.empty()) base_digest_ = record.shards[0].digest;
  number_ = record.number;
  const auto attached = attach(false);
  if (!attached.is_ok()) return "attach: " + attached.status().message();
  if (record.shards.empty()) return "";  // adopted
  const service::ReadShard read{identity_, record.attempt, 0, record.shards[0].digest, {3, 7}};
  const auto shard = node_->on(read);
  if (!shard.is_ok()) return "shard: " + shard.status().message();
  const auto block = store::decode_block(shard->blocks[0].bytes);
  if (!block.is_ok()) return "block: " + block.status().message();
  if (block->pieces.size() != generation.chunks.size()) return "other pieces";
  if (shard->blocks[1].bytes != rest_of_recipe()) return "another block that stayed as it was";
  const auto chunks = get_chunks(*node_, identity_, generation.chunks);
  if (!chunks.is_ok()) return "chunks: " + chunks.status().message();
  for (std::size_t i = 0; i < generation.chunks.size(); ++i) {
    if (block->pieces[i].fingerprint != generation.chunks[i].fingerprint) return "other pieces";
    if ((*chunks)[i].empty()) return "chunk " + std::to_string(i) + " is lost";
    if ((*chunks)[i] != generation.chunks[i].data) return "wrong bytes";
  }
  return "";
}

std::string StoreWorld::check_placeholder() {
  (void)store::remove_leftovers(kShared);
  const auto state = store::look_at(path_);
  if (!state.is_ok()) return "real path: " + state.status().message();
  for (const auto& [name, size] : memory_.tree(kShared)) {
    if (name != "ckpt" && name != "ckpt2") return "left at the real path: " + name;
  }
  if (state->kind != store::PathState::Kind::kPlaceholder) return "";
  const Generation* const named = known(state->placeholder.attempt);
  if (named == nullptr) return "a placeholder of nothing";
  if (may_be_deleted_) return "";
  if (found_ == nullptr) return "a placeholder of a generation that is not there";
  return named->record.number <= found_->record.number
             ? ""
             : "the placeholder names a later generation than the store has";
}

std::string StoreWorld::check_next_job() {
  if (is_deleted_ || (may_be_deleted_ && found_ == nullptr)) {
    // Another file under the same name.
    identity_ = random_id(random_);
  }
  if (found_ == nullptr) {
    base_ = {};
    number_ = 0;
  }
  std::vector<Chunk> what;
  if (found_ != nullptr) what = found_->chunks;
  const auto more = chunks(3);
  what.insert(what.end(), more.begin(), more.end());
  Status status = attach(true).status();
  if (status.is_ok()) status = put(more);
  if (status.is_ok()) status = commit_generation(what);
  if (!status.is_ok()) return "next job: " + status.message();
  const std::string content = check_content(generations_.back());
  if (!content.empty()) return "next job: " + content;
  status = detach();
  return status.is_ok() ? "" : "next job: " + status.message();
}

std::string StoreWorld::check_again() {
  const std::string wrong = check_content(generations_.back());
  if (!wrong.empty()) return "in the end: " + wrong;
  const Status status = detach();
  return status.is_ok() ? "" : "in the end: " + status.message();
}

std::string StoreWorld::expect_files(std::set<std::string>& expected) {
  const store::Layout layout{"/n1/store"};
  const std::string file = "files/" + identity_.hex() + "/";
  const std::string generation = file + "generations/" + base_.hex() + "/";
  const std::string key = store::path_key(path_);
  expected.insert({"paths/" + key, file, file + "lock", file + "path-" + key, file + "segments/",
                   file + "logs/", file + "generations/", generation, generation + "lock",
                   generation + "record", generation + "index", generation + "shard-0"});
  const auto shard =
      store::ShardFileReader::open(layout.shard(identity_, base_, 0), base_, 0, base_digest_);
  if (!shard.is_ok()) return "shard: " + shard.status().message();
  for (const store::ShardDonor& donor : (*shard)->table().donors) {
    expected.insert(store::donor_path(generation + "shard-0", donor.attempt));
  }
  const auto store = open_store();
  if (!store.is_ok()) return "store: " + store.status().message();
  const auto index = (*store)->index(identity_, base_);
  if (!index.is_ok()) return "index: " + index.status().message();
  const auto runs = (*index)->runs();
  for (std::size_t r = 0; r + 1 < runs.size(); ++r) {
    expected.insert(generation + "index-" + runs[r].attempt.hex());
  }
  for (const auto& use : (*index)->segments()) {
    expected.insert(file + "segments/" + store::number_name(use.segment, store::kSegmentSuffix));
  }
  return "";
}

std::string StoreWorld::check_files() {
  std::set<std::string> expected = {"STORE", "paths/", "marks/", "files/"};
  bool marks_may_stay = false;  // until every store has dropped a file that was deleted
  for (std::size_t f = 0; f < played_; ++f) {
    turn_to(f);
    const std::string wrong = expect_files(expected);
    if (!wrong.empty()) return wrong;
    marks_may_stay |= may_be_deleted_;
  }
  for (const auto& [name, size] : memory_.tree("/n1/store")) {
    const std::string_view mark = std::string_view(name).substr(0, 6);
    if (marks_may_stay && mark == "marks/" && store::parse_id_name(name.substr(6))) continue;
    if (!expected.contains(name)) return "left: " + name;
    expected.erase(name);
  }
  return expected.empty() ? "" : "missing: " + *expected.begin();
}

std::string StoreWorld::check_space() {
  const auto store = open_store();
  if (!store.is_ok()) return "store: " + store.status().message();
  const auto inode_of = [&](const std::string& path) {
    struct stat about {};
    return memory_.stat(path.c_str(), &about) == 0 ? about.st_ino : 0;
  };
  std::map<ino_t, std::size_t> names;  // of each segment
  std::map<ino_t, bool> is_shared;     // as the store has it
  for (std::size_t f = 0; f < played_; ++f) {
    turn_to(f);
    const auto segments = (*store)->segments(identity_);
    if (!segments.is_ok()) return "segments: " + segments.status().message();
    for (const store::SegmentSize& one : *segments) {
      const ino_t inode = inode_of(store::Layout{"/n1/store"}.segment(identity_, one.segment));
      ++names[inode];
      is_shared[inode] = one.is_shared;
    }
  }
  for (const auto& [inode, count] : names) {
    if (is_shared[inode] != (count > 1)) return "a segment's files are counted wrongly";
  }
  // The disk has a unit for each file and directory, too; with the disk's own, and the store's.
  std::set<ino_t> inodes = {inode_of(kDisk), inode_of("/n1/store")};
  for (const auto& [name, size] : memory_.tree("/n1/store")) {
    inodes.insert(inode_of("/n1/store/" + name));
  }
  const auto taken = (*store)->taken_bytes();
  if (!taken.is_ok()) return "taken: " + taken.status().message();
  const std::uint64_t used = memory_.used_bytes(kDisk) - inodes.size() * 512;
  if (*taken != used) {
    return "the store says that it takes " + std::to_string(*taken) + " bytes, and takes " +
           std::to_string(used);
  }
  std::uint64_t left = *taken;
  for (std::size_t f = 0; f < played_; ++f) {
    turn_to(f);
    const auto freed = (*store)->drop_file(identity_);
    if (!freed.is_ok()) return "drop: " + freed.status().message();
    const auto still_taken = (*store)->taken_bytes();
    if (!still_taken.is_ok()) return "taken: " + still_taken.status().message();
    // A path entry, which is not the file's alone, is not counted.
    const std::uint64_t was_freed = std::exchange(left, *still_taken) - *still_taken;
    if (*freed > was_freed || was_freed - *freed > 512) {
      return "a drop frees " + std::to_string(was_freed) + " bytes, not " + std::to_string(*freed);
    }
  }
  for (const auto& [name, size] : memory_.tree("/n1/store/files"))
    return "left in the end: " + name;
  return "";
}

std::string StoreWorld::check() {
  std::string wrong = wrong_;
  const auto of_each = [&](std::string (StoreWorld::*look)()) {
    for (std::size_t f = 0; f < played_ && wrong.empty(); ++f) {
      turn_to(f);
      wrong = (this->*look)();
      if (!wrong.empty() && played_ > 1) wrong = path_ + ": " + wrong;
    }
  };
  of_each(&StoreWorld::check_newest);
  of_each(&StoreWorld::check_placeholder);
  of_each(&StoreWorld::check_next_job);
  of_each(&StoreWorld::check_again);
  if (wrong.empty()) wrong = check_files();
  if (wrong.empty()) wrong = check_space();
  return wrong;
}

}  // namespace dedup::test
