#include "service/file_home.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fields.h"

namespace dedup::service {

namespace {

// Within one queue: dumps go together, nothing else does.
bool excludes(LockKind a, LockKind b) {
  return a != LockKind::kDump || b != LockKind::kDump;
}

// No absolute path.
std::string aside_name(const Id128& identity) {
  return "aside " + identity.hex();
}

Status not_open(const Id128& identity) {
  return {Code::kNotFound, "file " + identity.hex() + " is not open in this job"};
}

Status no_handle(const Id128& handle, const std::string& path) {
  return {Code::kNotFound, path + ": no handle " + handle.hex() + " of it is open"};
}

Status no_turn(const std::string& path) {
  return {Code::kInternal,
          path + ": the end of an open or close without its begin (was its connection lost?)"};
}

}  // namespace

// ---- Opening and closing ----------------------------------------------------------------------

void FileHome::on(const OpenBegin& request, std::unique_ptr<Responder> responder) {
  Answers answers;
  Path& path = paths_[request.path];
  path.waiting.push_back({std::move(responder), false, {}, request.path});
  give_turn(path, answers);
  send(answers);
}

Result<Empty> FileHome::on(const OpenEnd& request) {
  const auto at = paths_.find(request.path);
  if (at == paths_.end() || at->second.turn != Turn::kOpen) return no_turn(request.path);
  const Status status = request.ok ? register_handle(at->second, request) : Status::ok();
  Answers answers;
  end_turn(request.path, answers);
  send(answers);
  DEDUP_TRY(status);
  return Empty{};
}

Status FileHome::register_handle(Path& path, const OpenEnd& request) {
  const FileInfo& info = request.info;
  if (info.identity.is_zero()) {
    return {Code::kInternal, request.path + ": opened without an identity"};
  }
  if (path.known) {
    if (path.info.identity != info.identity) {
      return {Code::kInternal, request.path + ": open in this job as file " +
                                   path.info.identity.hex() + ", not " + info.identity.hex()};
    }
  } else if (names_.contains(info.identity)) {
    return {Code::kInternal,
            request.path + ": open in this job under another name, " + names_[info.identity]};
  }
  if (!path.handles.try_emplace(request.handle, 0).second) {
    return {Code::kInternal, request.path + ": handle " + request.handle.hex() + " is open twice"};
  }
  if (request.writes) stop_write_back(path);
  if (!path.known) {
    path.known = true;
    path.info = info;
    path.info.path = request.path;
    path.info.version = 1;
    names_[info.identity] = request.path;
    return Status::ok();
  }
  FileInfo old = std::exchange(path.info, info);
  path.info.path = std::move(old.path);
  path.info.size = old.size;
  path.info.version = old.version + 1;
  // The job's writing goes on, whatever this handle is for.
  path.info.write_back = std::max(info.write_back, old.write_back);
  if (old.writable) {
    path.info.writable = true;
    path.info.session = old.session;
    path.info.key = old.key;
  }
  if (path.committed_in_turn) {
    path.info.record = std::move(old.record);
    path.info.stores = std::move(old.stores);
    path.info.real_path = old.real_path;
  }
  return Status::ok();
}

void FileHome::on(const CloseBegin& request, std::unique_ptr<Responder> responder) {
  const auto name = names_.find(request.identity);
  if (name == names_.end()) return responder->reply(not_open(request.identity), {});
  Answers answers;
  Path& path = paths_[name->second];
  path.waiting.push_back({std::move(responder), true, request.handle, {}});
  give_turn(path, answers);
  send(answers);
}

Result<Empty> FileHome::on(const CloseEnd& request) {
  const auto name = names_.find(request.identity);
  if (name == names_.end()) return not_open(request.identity);
  if (paths_[name->second].turn != Turn::kClose) return no_turn(name->second);
  Answers answers;
  end_turn(std::string(name->second), answers);
  send(answers);
  return Empty{};
}

std::vector<Id128> FileHome::set_aside(const std::string& path) const {
  std::vector<Id128> identities;
  for (const auto& [name, other] : paths_) {
    if (name != path && other.info.path == path) identities.push_back(other.info.identity);
  }
  return identities;
}

void FileHome::give_turn(Path& path, Answers& answers) {
  while (path.turn == Turn::kFree && !path.waiting.empty()) {
    TurnClaim claim = std::move(path.waiting.front());
    path.waiting.pop_front();
    const ConnectionId connection = claim.responder->connection();
    if (claim.close) {
      if (path.handles.erase(claim.handle) == 0) {
        const Status status = no_handle(claim.handle, path.known ? path.info.path : "the file");
        answers.push_back({std::move(claim.responder), status, {}});
        continue;
      }
      path.turn = Turn::kClose;
      const CloseBeginReply reply{path.handles.empty(), path.deleted,
                                  stopped_.find(path.info.identity) != nullptr, path.info};
      answers.push_back({std::move(claim.responder), Status::ok(), encoded(reply)});
    } else {
      path.turn = Turn::kOpen;
      const store::LineageEntry* const ended = ended_.find(claim.path);
      const OpenBeginReply reply{path.known, path.info, set_aside(claim.path),
                                 ended == nullptr ? store::LineageEntry{} : *ended};
      answers.push_back({std::move(claim.responder), Status::ok(), encoded(reply)});
    }
    path.turn_connection = connection;
    path.committed_in_turn = false;
  }
}

void FileHome::end_turn(const std::string& name, Answers& answers) {
  const auto at = paths_.find(name);
  Path& path = at->second;
  path.turn = Turn::kFree;
  if (path.known && path.handles.empty()) forget(path, answers);
  give_turn(path, answers);
  if (path.turn == Turn::kFree && !path.known) paths_.erase(at);
}

void FileHome::forget(Path& path, Answers& answers) {
  const auto name = names_.extract(path.info.identity);
  if (path.last_number != 0 && name.mapped() == path.info.path) {
    ended_.insert(path.info.path, {path.info.session, path.last_number});
  }
  for (LockQueue* queue : {&path.commits, &path.atomics}) {
    for (LockClaim& claim : queue->waiting) {
      answers.push_back({std::move(claim.responder), not_open(path.info.identity), {}});
    }
    *queue = {};
  }
  path.known = false;
  path.deleted = false;
  path.last_number = 0;
  path.writing.reset();
  path.leases.clear();
  path.info = {};
}

// ---- What is known of a file ------------------------------------------------------------------

Result<FileHome::Path*> FileHome::find(const Id128& identity) {
  const auto name = names_.find(identity);
  if (name == names_.end()) return not_open(identity);
  return &paths_[name->second];
}

Result<FileInfo> FileHome::on(const GetFile& request) {
  DEDUP_ASSIGN(const Path* path, find(request.identity));
  return path->info;
}

Result<SizeReply> FileHome::on(const GetSize& request) {
  DEDUP_ASSIGN(const Path* path, find(request.identity));
  return SizeReply{path->info.size, leases_beyond(*path, path->info.size)};
}

Result<SizeReply> FileHome::on(const ExtendSize& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  if (request.ended) {
    if (path->leases.erase(request.lease) == 0) return SizeReply{path->info.size};
  } else if (request.lease.serial != 0) {
    path->leases.insert(request.lease);
  }
  path->info.size = std::max(path->info.size, request.end);
  return SizeReply{path->info.size};
}

Result<SizeReply> FileHome::on(const SetSize& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  auto leases = leases_beyond(*path, request.size);
  if (leases.empty()) path->info.size = request.size;
  return SizeReply{path->info.size, std::move(leases)};
}

std::vector<Lease> FileHome::leases_beyond(const Path& path, std::uint64_t size) {
  return {path.leases.lower_bound(Lease{size / kBlockSpan, 0, 0, 0, 0}), path.leases.end()};
}

Result<FileInfo> FileHome::on(const CommitDone& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  path->info.record = request.record;
  path->info.stores = request.stores;
  path->info.donor.clear();
  if (path->info.real_path == FileInfo::RealPath::kPlain && !request.is_cached) {
    path->info.real_path = FileInfo::RealPath::kPlaceholder;
  }
  ++path->info.version;
  path->committed_in_turn = true;
  return path->info;
}

Result<GenerationNumber> FileHome::on(const NextGeneration& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  path->last_number = std::max(path->last_number, request.after) + 1;
  return GenerationNumber{path->last_number};
}

Result<Empty> FileHome::on(const SetAside& request) {
  const auto name = names_.find(request.identity);
  if (name == names_.end()) return Empty{};
  const std::string key = name->second;
  const auto at = paths_.find(key);
  if (at->second.turn != Turn::kOpen) return no_turn(key);
  auto node = paths_.extract(at);
  node.key() = name->second = aside_name(request.identity);
  Path& aside = paths_.insert(std::move(node)).position->second;
  aside.deleted = aside.info.deleted = request.deleted;
  ++aside.info.version;
  if (aside.writing) aside.writing->is_wanted = false;
  // The turn is the path's, and so is what waits for it, but for closes of the file.
  Path& path = paths_[key];
  path.turn = std::exchange(aside.turn, Turn::kFree);
  path.turn_connection = aside.turn_connection;
  const auto closes = std::stable_partition(aside.waiting.begin(), aside.waiting.end(),
                                            [](const TurnClaim& claim) { return claim.close; });
  std::move(closes, aside.waiting.end(), std::back_inserter(path.waiting));
  aside.waiting.erase(closes, aside.waiting.end());
  Answers answers;
  give_turn(aside, answers);
  send(answers);
  return Empty{};
}

Result<Empty> FileHome::on(const BeginWriteBack& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  if (path->turn != Turn::kClose) return no_turn(path->info.path);
  const bool is_possible = !request.writers.empty() && !path->writing &&
                           path->handles.try_emplace(request.handle, 0).second;
  if (!is_possible) {
    return Status(Code::kInternal, path->info.path + ": is being written back already");
  }
  path->writing.emplace(Writing{request.handle, {request.writers.begin(), request.writers.end()}});
  return Empty{};
}

Result<WriteBackState> FileHome::on(const TellWritten& request) {
  const auto name = names_.find(request.identity);
  if (name == names_.end()) return WriteBackState{};
  std::optional<Writing>& writing = paths_[name->second].writing;
  if (!writing || writing->handle != request.handle) return WriteBackState{};
  using Of = TellWritten::Of;
  WriteBackState& outcome = writing->outcome;
  if (request.of == Of::kGivenUp && !std::exchange(outcome.has_failed, true)) {
    outcome.has_no_room = request.has_no_room;
    outcome.trouble = request.trouble;
  }
  const bool has_ended = request.of == Of::kEnd || request.of == Of::kGivenUp;
  const bool is_last =
      has_ended && writing->writers.erase(request.writer) != 0 && writing->writers.empty();
  WriteBackState state;
  if (is_last) state = outcome;
  state.is_wanted = writing->is_wanted;
  state.is_last = is_last;
  if (request.of == Of::kTrouble) {
    state.is_first_trouble = !std::exchange(writing->is_in_trouble, true);
  }
  // Its handle is one like others from then on.
  if (is_last) writing.reset();
  return state;
}

Result<Empty> FileHome::on(const StopWriteBack& request) {
  const auto name = names_.find(request.identity);
  if (name == names_.end()) return Empty{};
  Path& path = paths_[name->second];
  if (path.turn != Turn::kOpen) return no_turn(name->second);
  stop_write_back(path);
  return Empty{};
}

void FileHome::stop_write_back(Path& path) {
  if (!path.writing) return;
  path.handles.erase(path.writing->handle);
  path.writing.reset();
  stopped_.insert(path.info.identity, true);
}

Result<std::uint64_t*> FileHome::find_pointer(Path& path, const Id128& handle) {
  const auto at = path.handles.find(handle);
  if (at == path.handles.end()) return no_handle(handle, path.info.path);
  return &at->second;
}

Result<SharedValue> FileHome::on(const SharedAdd& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  DEDUP_ASSIGN(std::uint64_t * pointer, find_pointer(*path, request.handle));
  const std::uint64_t before = *pointer;
  *pointer += request.increment;
  return SharedValue{before};
}

Result<Empty> FileHome::on(const SharedSet& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  DEDUP_ASSIGN(std::uint64_t * pointer, find_pointer(*path, request.handle));
  *pointer = request.value;
  return Empty{};
}

// ---- Locks ------------------------------------------------------------------------------------

void FileHome::on(const Lock& request, std::unique_ptr<Responder> responder) {
  const Result<Path*> path = find(request.identity);
  if (!path.is_ok()) return responder->reply(path.status(), {});
  Answers answers;
  LockQueue& queue = (*path)->locks(request.kind);
  const ConnectionId connection = responder->connection();
  queue.waiting.push_back(
      {request.kind, request.owner, connection, request.known, std::move(responder)});
  queue.grant((*path)->info, answers);
  send(answers);
}

Result<Empty> FileHome::on(const Unlock& request) {
  DEDUP_ASSIGN(Path * path, find(request.identity));
  path->info.size = std::max(path->info.size, request.end);
  LockQueue& queue = path->locks(request.kind);
  if (!queue.unlock(request.kind, request.owner)) {
    return Status(Code::kNotFound, path->info.path + ": lock " + request.owner.hex() +
                                       " is not held (was its connection lost?)");
  }
  Answers answers;
  queue.grant(path->info, answers);
  send(answers);
  return Empty{};
}

void FileHome::LockQueue::grant(const FileInfo& info, Answers& answers) {
  while (!waiting.empty()) {
    LockClaim& next = waiting.front();
    const auto hinders = [&](const LockClaim& claim) { return excludes(claim.kind, next.kind); };
    if (std::any_of(held.begin(), held.end(), hinders)) return;
    LockReply reply;
    reply.changed = next.kind != LockKind::kAtomic && next.known != info.version;
    if (reply.changed) reply.info = info;
    answers.push_back({std::move(next.responder), Status::ok(), encoded(reply)});
    held.push_back(std::move(next));
    waiting.pop_front();
  }
}

bool FileHome::LockQueue::unlock(LockKind kind, const Id128& owner) {
  const auto at = std::find_if(held.begin(), held.end(), [&](const LockClaim& claim) {
    return claim.kind == kind && claim.owner == owner;
  });
  if (at == held.end()) return false;
  held.erase(at);
  return true;
}

void FileHome::LockQueue::closed(ConnectionId connection) {
  const auto gone = [&](const LockClaim& claim) { return claim.connection == connection; };
  std::erase_if(held, gone);
  std::erase_if(waiting, gone);
}

// ---- Connections ------------------------------------------------------------------------------

void FileHome::closed(ConnectionId connection) {
  Answers answers;
  for (auto at = paths_.begin(); at != paths_.end();) {
    const auto here = at++;  // end_turn may erase it
    Path& path = here->second;
    std::erase_if(path.waiting, [&](const TurnClaim& claim) {
      return claim.responder->connection() == connection;
    });
    for (LockQueue* queue : {&path.commits, &path.atomics}) {
      queue->closed(connection);
      queue->grant(path.info, answers);
    }
    if (path.turn != Turn::kFree && path.turn_connection == connection) {
      end_turn(std::string(here->first), answers);
    }
  }
  send(answers);
}

void FileHome::send(Answers& answers) {
  for (Answer& answer : answers) answer.responder->reply(answer.status, std::move(answer.body));
}

}  // namespace dedup::service
