#include "engine/log_dump.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/agreement.h"
#include "engine/writer.h"
#include "plan/block.h"

namespace dedup::engine {
namespace {

// Bytes of the file in one piece of memory, and where they stand in the log, slice by slice.
struct Slice {
  std::uint64_t file_offset;
  std::uint64_t length;
  std::uint64_t log_offset;
};

// One round: the next logged runs, as far as they fit, read from the log.
class Round {
 public:
  Round(OpenFile& file, std::size_t capacity)
      : file_(file), capacity_(capacity), buffer_(new std::byte[capacity]) {}

  // Takes runs from `logged` at `next`; the last is cut, at a multiple of the chunk size from the
  // start of its contiguous stretch, if it does not fit.
  Status load(std::vector<LoggedRun>& logged, std::size_t& next) {
    slices_.clear();
    runs_.clear();
    std::size_t used = 0;
    while (next < logged.size() && used < capacity_) {
      LoggedRun& run = logged[next];
      const bool continues =
          !runs_.empty() && runs_.back().file_offset + runs_.back().length == run.file_offset;
      const std::uint64_t stretch = continues ? runs_.back().length : 0;
      std::uint64_t length = std::min<std::uint64_t>(run.length, capacity_ - used);
      if (length < run.length) {
        const std::uint64_t whole = (stretch + length) / chunk() * chunk();
        if (whole <= stretch) break;
        length = whole - stretch;
      }
      DEDUP_TRY(file_.local->read_log(file_.local->log_number(), run.log_offset,
                                      {buffer_.get() + used, length}));
      slices_.push_back({run.file_offset, length, run.log_offset});
      if (continues) {
        runs_.back().length += length;
      } else {
        runs_.push_back({run.file_offset, buffer_.get() + used, length});
      }
      used += length;
      if (length == run.length) {
        ++next;
      } else {
        run.file_offset += length;
        run.log_offset += length;
        run.length -= length;
        break;
      }
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
    return send(pieces, log_offsets, result.holder_sets);
  }

 private:
  std::uint64_t chunk() const { return file_.hints.chunk_size; }

  Status send(const std::vector<plan::FilePiece>& pieces,
              const std::vector<std::uint64_t>& log_offsets,
              const std::vector<NodeSet>& holder_sets) {
    std::map<NodeIndex, service::Convert> requests;
    for (std::size_t begin = 0; begin < pieces.size();) {
      const std::uint64_t block = pieces[begin].file_offset / kBlockSpan;
      std::size_t end = begin;
      while (end < pieces.size() && pieces[end].file_offset / kBlockSpan == block) ++end;
      auto& request =
          requests[service::block_home(file_.identity(), block, file_.client().nodes())];
      plan::BlockBuilder builder(holder_sets);
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

  OpenFile& file_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> buffer_;  // not touched before it is needed
  std::vector<Slice> slices_;
  std::vector<DumpRun> runs_;
};

}  // namespace

Status dump_logs(OpenFile& file) {
  std::vector<LoggedRun> logged;
  Status returned;
  {
    const std::lock_guard writing(file.local->writing());
    returned = file.local->leases().give_back_all(file);
    logged = file.local->seal();
  }
  std::uint64_t bytes = 0;
  for (const LoggedRun& run : logged) bytes += run.length;
  const std::uint64_t most = all_max(file.comm(), bytes);
  if (most == 0) return Status::ok();
  DEDUP_TRY(agree(file.comm(), returned));
  const std::uint64_t capacity =
      std::max<std::uint64_t>(file.hints.buffer / 4, file.hints.chunk_size);
  Round round(file, std::min(capacity, std::max<std::uint64_t>(bytes, 1)));
  std::size_t next = 0;
  while (all_max(file.comm(), next < logged.size()) != 0) {
    DEDUP_TRY(agree(file.comm(), round.load(logged, next), Waiting::kPatient));
    auto result = file.dumper->dump(round.runs());
    DEDUP_TRY(result.status());
    file.since_commit += result->stats;
    DEDUP_TRY(agree(file.comm(), round.convert(*result), Waiting::kPatient));
  }
  return agree(file.comm(), [&] {
    const std::lock_guard writing(file.local->writing());
    return file.local->discard_sealed();
  }());
}

}  // namespace dedup::engine
