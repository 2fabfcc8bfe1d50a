#include "engine/writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "base/fields.h"
#include "engine/dump/rounds.h"
#include "engine/log_dump.h"
#include "engine/mpi/agreement.h"
#include "engine/protocol/failpoint.h"
#include "engine/protocol/leases.h"
#include "engine/tell.h"
#include "plan/block.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"

namespace dedup::engine {
namespace {

// Small pieces are put together before they go to the log; larger ones go there from where they
// are.
constexpr std::size_t kStaging = std::size_t{1} << 20;
constexpr std::size_t kUpdatesAtOnce = 32768;

// Below this much on the rank that writes most, a dump costs more than it gives.
constexpr std::uint64_t kWorthADump = std::uint64_t{256} << 10;
// A rank logs so little before it knows what the others write.
constexpr std::uint64_t kLoggedAtOnce = std::uint64_t{128} << 10;

// Collects what went to the log and tells the block homes.
class HomeUpdates {
 public:
  explicit HomeUpdates(FileHandle& file) : file_(file) {}

  void add(const LoggedRun& run, std::uint64_t log) {
    for (std::uint64_t at = run.file_offset; at < run.end();) {
      const std::uint64_t block = at / kBlockSpan;
      const std::uint64_t end = std::min(run.end(), (block + 1) * kBlockSpan);
      auto& request = requests_[file_.block_home(block)];
      request.updates.push_back({block,
                                 {static_cast<std::uint32_t>(at - block * kBlockSpan),
                                  static_cast<std::uint32_t>(end - at), file_.client().self(), log,
                                  run.log_offset + (at - run.file_offset)}});
      ++count_;
      at = end;
    }
  }
  bool full() const { return count_ >= kUpdatesAtOnce; }

  Status send() {
    for (auto& [home, request] : requests_) request.identity = file_.identity();
    const Status status = send_past_leases(file_, requests_);
    requests_.clear();
    count_ = 0;
    return status;
  }

 private:
  FileHandle& file_;
  std::map<NodeIndex, service::WriteLog> requests_;
  std::size_t count_ = 0;
};

// Writes fragments to the log, gathering those that are small or follow each other in the file.
class LogStream {
 public:
  explicit LogStream(FileHandle& file) : file_(file), updates_(file) {}

  Status add(const plan::Fragment& f) {
    end_ = std::max(end_, f.file_offset + f.length);
    if (f.length >= kStaging / 4) {
      DEDUP_TRY(flush());
      staged_runs_.push_back({f.file_offset, f.length, 0});
      return append({f.memory, f.length});
    }
    if (staged_.size() + f.length > kStaging) DEDUP_TRY(flush());
    if (!staged_runs_.empty() && staged_runs_.back().end() == f.file_offset) {
      staged_runs_.back().length += f.length;
    } else {
      staged_runs_.push_back({f.file_offset, f.length, staged_.size()});
    }
    staged_.insert(staged_.end(), f.memory, f.memory + f.length);
    return Status::ok();
  }

  Status finish() {
    DEDUP_TRY(flush());
    return updates_.send();
  }

  std::uint64_t end() const { return end_; }

 private:
  Status flush() {
    if (staged_.empty()) return Status::ok();
    const Status status = append(staged_);
    staged_.clear();
    return status;
  }

  Status append(std::span<const std::byte> data) {
    DEDUP_ASSIGN(const LocalFile::Appended at, file_.local->append(data));
    for (LoggedRun run : staged_runs_) {
      run.log_offset += at.offset;
      file_.local->remember(run);
      updates_.add(run, at.log);
    }
    staged_runs_.clear();
    return updates_.full() ? updates_.send() : Status::ok();
  }

  FileHandle& file_;
  HomeUpdates updates_;
  Bytes staged_;
  std::vector<LoggedRun> staged_runs_;  // log offsets relative to what is staged
  std::uint64_t end_ = 0;
};

// Tells the block home of a piece in the log, and asks for the lease that is `wanted`, if any.
// Whether it was granted; then the file home knows of the piece, too.
Result<bool> tell_home(FileHandle& file, const service::LogUpdate& update,
                       const service::Lease& wanted) {
  const NodeIndex home = file.block_home(update.block);
  const service::WriteLog request{file.identity(), {update}, wanted};
  DEDUP_ASSIGN(service::WriteLogReply reply, file.client().call(home, request));
  while (!reply.leases.empty()) {
    DEDUP_TRY(recall(file, reply.leases));
    DEDUP_ASSIGN(reply, file.client().call(home, request));
  }
  if (reply.granted) {
    const std::uint64_t end = update.block * kBlockSpan + update.piece.end();
    const service::ExtendSize extended{file.identity(), end, wanted};
    DEDUP_TRY(file.client().call(file.home, extended).status());
  }
  return reply.granted;
}

// One piece, within a block: under a lease, if the process goes on writing such pieces to the
// block. `end` as in write_to_log().
Status write_small(FileHandle& file, const plan::Fragment& piece, std::uint64_t& end) {
  LocalFile& local = *file.local;
  DEDUP_ASSIGN(const LocalFile::Appended at, local.append({piece.memory, piece.length}));
  local.remember({piece.file_offset, piece.length, at.offset});
  const std::uint64_t block = piece.file_offset / kBlockSpan;
  const store::LeasedWrite write{static_cast<std::uint32_t>(piece.file_offset % kBlockSpan),
                                 static_cast<std::uint32_t>(piece.length), at.offset};
  DEDUP_ASSIGN(const bool noted, local.leases().note(file, block, write));
  if (noted) return Status::ok();
  DEDUP_ASSIGN(const service::Lease wanted, local.leases().wish(file, block));
  const auto granted = tell_home(
      file, {block, {write.begin, write.length, file.client().self(), at.log, at.offset}}, wanted);
  if (granted.is_ok() && !*granted) end = piece.file_offset + piece.length;
  if (wanted.serial == 0) return granted.status();
  if (!granted.is_ok()) {
    local.leases().doubt(wanted);
  } else if (!*granted) {
    local.leases().refused(wanted);
  }
  return granted.status();
}

bool is_small(const plan::Fragment& piece) {
  return piece.length < kStaging / 4 &&
         piece.file_offset / kBlockSpan == (piece.file_offset + piece.length - 1) / kBlockSpan;
}

// `end`: what the file home is to be told of the size; 0: nothing.
Status write_to_log(FileHandle& file, const plan::Access& access, std::uint64_t& end) {
  end = 0;
  if (access.bytes == 0) return Status::ok();
  file.changed = true;
  const std::lock_guard writing(file.local->writing());
  plan::FragmentWalk walk(access);
  plan::Fragment f = walk.next(std::uint64_t{64} << 20);
  if (f.length == access.bytes && is_small(f)) return write_small(file, f, end);
  LogStream stream(file);
  for (; f.length != 0; f = walk.next(std::uint64_t{64} << 20)) DEDUP_TRY(stream.add(f));
  DEDUP_TRY(stream.finish());
  end = stream.end();
  return Status::ok();
}

}  // namespace

Status publish(FileHandle& file, const DumpResult& result, bool below) {
  plan::BlockBuilder builder(result.placements);
  Status status;
  for (std::size_t i = 0; i < result.pieces.size(); ++i) {
    builder.add(file_piece(result.pieces[i]));
    const bool last = i + 1 == result.pieces.size();
    if (!last && builder.message_size() < service::kPayload) continue;
    std::map<NodeIndex, service::WriteChunks> requests;
    builder.take([&](std::uint64_t number, Block&& content) {
      auto& request = requests[file.block_home(number)];
      request.identity = file.identity();
      request.below = below;
      request.updates.push_back({number, std::move(content)});
    });
    const Status sent = send_past_leases(file, requests);
    if (status.is_ok()) status = sent;
  }
  return status;
}

namespace {

std::uint64_t end_of(const DumpResult& result) {
  std::uint64_t end = 0;
  for (const DumpedPiece& piece : result.pieces) {
    end = std::max(end, piece.file_offset + piece.length);
  }
  return end;
}

// All rounds of one collective write. The first error on any rank ends it on all. `end` grows to
// where the data ends, and is the same on all ranks before and afterwards.
Status dump_rounds(FileHandle& file, const plan::Access& access, std::uint64_t& end) {
  DEDUP_ASSIGN(RoundSource rounds, RoundSource::create(file.topology, access, file.hints.chunk_size,
                                                       file.hints.buffer / 2));
  std::vector<DumpRun> runs;
  for (;;) {
    DEDUP_ASSIGN(const bool more, rounds.next(runs));
    if (!more) return Status::ok();
    take_sample(file, runs);
    auto result = file.dumper->dump(runs);
    DEDUP_TRY(result.status());
    failpoint("write.dumped");
    file.since_commit += result->stats;
    end = std::max(end, end_of(*result));
    DEDUP_TRY(agree_max(file.comm(), publish(file, *result, false), end, Waiting::kPatient));
  }
}

}  // namespace

plan::FilePiece file_piece(const DumpedPiece& piece) {
  plan::FilePiece out;
  out.file_offset = piece.file_offset;
  out.length = piece.length;
  out.chunk_length = piece.zero ? 0 : piece.length;
  out.placement = piece.placement;
  out.fingerprint = piece.fingerprint;
  return out;
}

Status write_independent(FileHandle& file, const plan::Access& access) {
  std::uint64_t end = 0;
  if (!file.atomic) {
    DEDUP_TRY(write_to_log(file, access, end));
    return end == 0 ? Status::ok() : extend(file, end);
  }
  DEDUP_ASSIGN(JobLock lock, JobLock::take(file, service::LockKind::kAtomic));
  DEDUP_TRY(write_to_log(file, access, end));
  return lock.release(end);
}

void begin_dumps_on(FileHandle& file, const Id128& base) {
  if (file.dumper_base == base) return;
  file.dumper->new_generation();
  file.dumper_base = base;
}

namespace {

// `end`: of what the ranks have logged of it already.
Status dump_access(FileHandle& file, const plan::Access& access, std::uint64_t end) {
  file.changed = true;
  Id128 base;
  DEDUP_ASSIGN(auto lock, JobLock::take_together(file, service::LockKind::kDump, base));
  begin_dumps_on(file, base);
  DEDUP_TRY(dump_rounds(file, access, end));
  return JobLock::release_together(file, lock, end);
}

// Chunks are made of what is logged while the program goes on to write, and the log's space is used
// again: memory that the kernel has for it already.
Status dump_full_logs(FileHandle& file) {
  Id128 base;
  DEDUP_ASSIGN(const auto lock, JobLock::take_together(file, service::LockKind::kCommit, base));
  begin_dumps_on(file, base);
  return dump_logs(file, store::LogWriter::Space::kKeep);
}

}  // namespace

Status write_collective(FileHandle& file, const plan::Access& access) {
  if (file.atomic) return agree(file.comm(), write_independent(file, access));
  const bool at_once = access.bytes <= kLoggedAtOnce;
  std::uint64_t mine = 0;
  const Status logged = at_once ? write_to_log(file, access, mine) : Status::ok();
  const auto [bytes, log, last, failed] = all_max<4>(
      file.comm(), {access.bytes, file.local->log_size(), mine, logged.is_ok() ? 0u : 1u});
  if (failed != 0) return agree(file.comm(), logged);
  if (bytes >= kWorthADump) return dump_access(file, at_once ? plan::Access{} : access, last);
  std::uint64_t end = last;
  if (bytes > kLoggedAtOnce) {
    const Status rest = at_once ? Status::ok() : write_to_log(file, access, end);
    DEDUP_TRY(agree_max(file.comm(), rest, end));
  }
  DEDUP_TRY(extend_together(file, end));
  return log < log_round(file.hints) ? Status::ok() : dump_full_logs(file);
}

}  // namespace dedup::engine
