#include "engine/log_dump.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/hooks.h"
#include "engine/mpi/agreement.h"
#include "engine/tell.h"
#include "engine/writer.h"
#include "plan/block.h"
#include "service/messages/block_home.h"

namespace dedup::engine {
namespace {

// One round: the next logged runs, as far as they fit, in memory.
class Round {
 public:
  Round(FileHandle& file, std::size_t capacity) : file_(file), capacity_(capacity) {}

  // Takes runs from `logged` at `next`; the last is cut, at a multiple of the chunk size from the
  // start of its contiguous stretch, if it does not fit.
  Status load(std::vector<LoggedRun>& logged, std::size_t& next) {
    choose(logged, next);
    views_.clear();
    runs_.clear();
    std::size_t used = 0;
    for (std::size_t i = 0; i < slices_.size();) {
      const Stretch together = stretch(i);
      if (together.bytes < log_bytes_worth_viewing() || !look_at(i, together)) {
        for (std::size_t j = i; j < together.end; ++j) DEDUP_TRY(read(slices_[j], used));
      }
      i = together.end;
    }
    return Status::ok();
  }

  const std::vector<DumpRun>& runs() const { return runs_; }

  // Tells the block homes which chunks stand for which bytes of the log. Chunks come in the order
  // of the runs, and so do slices.
  Status convert(const DumpResult& result) {
    std::vector<plan::FilePiece> pieces;
    std::vector<std::uint64_t> log_offsets;
    std::size_t s = 0;
    for (const DumpedPiece& dumped : result.pieces) {
      for (std::uint64_t at = dumped.file_offset; at < dumped.file_offset + dumped.length;) {
        while (slices_[s].file_offset + slices_[s].length <= at || slices_[s].file_offset > at) ++s;
        const std::uint64_t end = std::min({dumped.file_offset + dumped.length,
                                            slices_[s].file_offset + slices_[s].length,
                                            (at / kBlockSpan + 1) * kBlockSpan});
        plan::FilePiece piece = file_piece(dumped);
        piece.chunk_offset = static_cast<std::uint32_t>(at - dumped.file_offset);
        if (dumped.zero) piece.chunk_offset = 0;
        piece.file_offset = at;
        piece.length = static_cast<std::uint32_t>(end - at);
        pieces.push_back(piece);
        log_offsets.push_back(slices_[s].log_offset + (at - slices_[s].file_offset));
        at = end;
      }
    }
    return send(pieces, log_offsets, result.placements);
  }

 private:
  using Slice = LoggedRun;

  std::uint64_t chunk() const { return file_.hints.chunk_size; }

  void choose(std::vector<LoggedRun>& logged, std::size_t& next) {
    slices_.clear();
    std::uint64_t used = 0;
    std::uint64_t stretch = 0;  // bytes of the file before the next run, without a gap
    while (next < logged.size() && used < capacity_) {
      LoggedRun& run = logged[next];
      if (slices_.empty() || slices_.back().end() != run.file_offset) stretch = 0;
      std::uint64_t length = std::min<std::uint64_t>(run.length, capacity_ - used);
      if (length < run.length) {
        const std::uint64_t whole = (stretch + length) / chunk() * chunk();
        if (whole <= stretch) break;
        length = whole - stretch;
      }
      slices_.push_back({run.file_offset, length, run.log_offset});
      used += length;
      stretch += length;
      if (length < run.length) {
        run.file_offset += length;
        run.log_offset += length;
        run.length -= length;
        break;
      }
      ++next;
    }
  }

  // Whether the file's bytes before and after it are in no other slice: a contiguous stretch has to
  // be contiguous in memory.
  bool is_alone(std::size_t i) const {
    return (i == 0 || slices_[i - 1].end() != slices_[i].file_offset) &&
           (i + 1 == slices_.size() || slices_[i].end() != slices_[i + 1].file_offset);
  }

  // Slices that follow each other in the log.
  struct Stretch {
    std::size_t end;      // behind its last slice
    std::uint64_t bytes;  // that can be looked at where the log has them
  };

  // The longest one from `i` on of slices that are alone, or one that is not.
  Stretch stretch(std::size_t i) const {
    Stretch found{i, 0};
    for (; found.end < slices_.size() && is_alone(found.end); ++found.end) {
      const Slice& slice = slices_[found.end];
      if (slice.log_offset != slices_[i].log_offset + found.bytes) break;
      found.bytes += slice.length;
    }
    found.end = std::max(found.end, i + 1);
    return found;
  }

  // Makes runs of the slices from `i` on where the log has them. Whether it could.
  bool look_at(std::size_t i, const Stretch& together) {
    auto view = file_.local->view_log(slices_[i].log_offset, together.bytes);
    if (!view.is_ok()) return false;
    const std::byte* data = view->bytes().data();
    views_.push_back(std::move(*view));
    for (; i < together.end; data += slices_[i++].length) {
      runs_.push_back({slices_[i].file_offset, data, slices_[i].length});
    }
    return true;
  }

  // Appends a slice to what the buffer has.
  Status read(const Slice& slice, std::size_t& used) {
    if (!buffer_) buffer_.reset(new std::byte[capacity_]);  // not touched before it is needed
    const std::span<std::byte> room(buffer_.get() + used, slice.length);
    DEDUP_TRY(file_.local->read_log(file_.local->log_number(), slice.log_offset, room));
    used += slice.length;
    if (!runs_.empty() && runs_.back().file_offset + runs_.back().length == slice.file_offset) {
      runs_.back().length += slice.length;
    } else {
      runs_.push_back({slice.file_offset, room.data(), slice.length});
    }
    return Status::ok();
  }

  Status send(const std::vector<plan::FilePiece>& pieces,
              const std::vector<std::uint64_t>& log_offsets,
              const std::vector<plan::Placement>& placements) {
    std::map<NodeIndex, service::Convert> requests;
    for (std::size_t begin = 0; begin < pieces.size();) {
      const std::uint64_t block = pieces[begin].file_offset / kBlockSpan;
      std::size_t end = begin;
      while (end < pieces.size() && pieces[end].file_offset / kBlockSpan == block) ++end;
      auto& request = requests[file_.block_home(block)];
      plan::BlockBuilder builder(placements);
      for (std::size_t i = begin; i < end; ++i) builder.add(pieces[i]);
      builder.take([&](std::uint64_t number, Block&& content) {
        request.updates.push_back({number,
                                   std::move(content),
                                   {log_offsets.begin() + static_cast<std::ptrdiff_t>(begin),
                                    log_offsets.begin() + static_cast<std::ptrdiff_t>(end)}});
      });
      begin = end;
    }
    std::vector<service::Client::Pending<service::Convert>> pending;
    for (auto& [home, request] : requests) {
      request.identity = file_.identity();
      request.node = file_.client().self();
      request.log = file_.local->log_number();
      pending.push_back(file_.client().start(home, request));
    }
    Status status;
    for (auto& p : pending) {
      const auto reply = p.wait();
      if (!reply.is_ok()) status = reply.status();
    }
    return status;
  }

  FileHandle& file_;
  std::size_t capacity_;
  std::vector<Slice> slices_;  // what the round consists of, in the order of the file
  std::unique_ptr<std::byte[]> buffer_;
  std::vector<store::LogView> views_;
  std::vector<DumpRun> runs_;
};

// While it is there the log is a segment, too, if that is worth it: what stands in it in one piece
// need not be written again.
class AdoptedForDump {
 public:
  // `bytes`: that are to be dumped.
  AdoptedForDump(FileHandle& file, std::uint64_t bytes) : file_(file) {
    if (bytes >= log_bytes_worth_viewing()) file_.dumper->adopt(file_.local->adopt_log());
  }
  AdoptedForDump(const AdoptedForDump&) = delete;
  AdoptedForDump& operator=(const AdoptedForDump&) = delete;
  ~AdoptedForDump() { file_.dumper->put_away_log(); }

 private:
  FileHandle& file_;
};

}  // namespace

std::uint64_t log_round(const hints::Hints& hints) {
  return std::max<std::uint64_t>(hints.buffer / 4, hints.chunk_size);
}

Status dump_logs(FileHandle& file, store::LogWriter::Space space) {
  std::vector<LoggedRun> logged;
  Status returned;
  {
    const std::lock_guard writing(file.local->writing());
    returned = file.local->leases().give_back_all(file);
    logged = file.local->seal();
  }
  std::uint64_t bytes = 0;
  for (const LoggedRun& run : logged) bytes += run.length;
  std::uint64_t most = bytes;
  DEDUP_TRY(agree_max(file.comm(), returned, most));
  const auto discard = [&] {
    const std::lock_guard writing(file.local->writing());
    return file.local->discard_sealed(space);
  };
  // Space that was kept is freed also if there is nothing to dump.
  if (most == 0) return agree(file.comm(), discard());
  const AdoptedForDump adopted(file, space == store::LogWriter::Space::kFree ? bytes : 0);
  Round round(file, std::min(log_round(file.hints), std::max<std::uint64_t>(bytes, 1)));
  std::size_t next = 0;
  for (std::uint64_t more = 1; more != 0;) {
    const Status loaded = round.load(logged, next);
    take_sample(file, round.runs());
    auto result = file.dumper->dump(round.runs(), loaded);
    DEDUP_TRY(result.status());
    file.since_commit += result->stats;
    more = next < logged.size() ? 1 : 0;
    Status status = round.convert(*result);
    // Of its own log a rank knows by itself that nothing refers to it any more.
    if (status.is_ok() && more == 0) status = discard();
    DEDUP_TRY(agree_max(file.comm(), status, more, Waiting::kPatient));
  }
  return Status::ok();
}

}  // namespace dedup::engine
