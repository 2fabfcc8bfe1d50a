#include "engine/protocol/reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/byte_ranges.h"
#include "engine/protocol/base_recipe.h"
#include "engine/protocol/chunk_source.h"
#include "engine/protocol/leases.h"
#include "plan/block.h"
#include "plan/cut.h"
#include "plan/overlay.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "store/format.h"

namespace dedup::engine {
namespace {

// One window of a long access: as many fragments as these limits allow are read together.
constexpr std::uint64_t kWindowBytes = std::uint64_t{16} << 20;
constexpr std::size_t kWindowFragments = 16384;
constexpr std::size_t kWindowBlocks = 64;

// How often a window is resolved anew because what it was resolved to had gone meanwhile (a commit
// of another handle turns logs into chunks and frees old generations).
constexpr int kAttempts = 8;

// Bytes of the file and where they come from. Sorted, disjoint; what no span covers is zeros.
struct Span {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  const Piece* piece = nullptr;   // a chunk's slice …
  const LogPiece* log = nullptr;  // … or a log's, or else the plain file's
  const plan::Placement* placement = nullptr;
  std::uint32_t chunk = 0;           // its number among those that are wanted
  const std::byte* bytes = nullptr;  // once fetched

  std::uint64_t end() const { return offset + length; }
  bool is_plain() const { return piece == nullptr && log == nullptr; }
};

// Reads window after window, each into the memory that the one before has left.
class WindowReader {
 public:
  // `settled`: how the file is, if nobody can write; null: somebody may.
  WindowReader(JobFile& file, std::shared_ptr<const FileView> settled)
      : file_(file), settled_(std::move(settled)) {}

  Status read(std::span<const plan::Fragment> fragments) {
    view_ = settled_ ? settled_ : file_.view();
    fragments_ = fragments;
    in_order_ = std::adjacent_find(fragments_.begin(), fragments_.end(),
                                   [](const plan::Fragment& a, const plan::Fragment& b) {
                                     return a.file_offset + a.length > b.file_offset;
                                   }) == fragments_.end();
    find_ranges();
    for (int attempt = 1;; ++attempt) {
      log_gone_ = false;
      const Id128 before = view_->base();
      Status status = settled_ ? resolve_settled() : resolve();
      if (status.is_ok()) status = fetch();
      if (status.is_ok()) break;
      if (attempt == kAttempts || !file_.refresh_view().is_ok()) return status;
      view_ = file_.view();
      // By now somebody may write.
      const bool was_settled = std::exchange(settled_, nullptr) != nullptr;
      // Nothing changed: asking again would give the same answer, unless it was a log that went.
      if (view_->base() == before && !log_gone_ && !was_settled) return status;
      file_.local->forget_segments();
    }
    copy_out();
    return Status::ok();
  }

 private:
  // The fragments' file ranges, joined where they touch, cut at blocks.
  void find_ranges() {
    ranges_.clear();
    std::vector<ByteRange> wanted;
    for (const plan::Fragment& f : fragments_) wanted.push_back({f.file_offset, f.length});
    for (const ByteRange& range : joined(std::move(wanted))) {
      for (std::uint64_t at = range.offset; at < range.end();) {
        const std::uint64_t end = std::min(range.end(), (at / kBlockSpan + 1) * kBlockSpan);
        ranges_.push_back({at, end - at});
        at = end;
      }
    }
    resolved_.resize(ranges_.size());
    bases_.resize(ranges_.size());
  }

  Status resolve() {
    std::vector<std::size_t> open(ranges_.size());
    for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
    while (!open.empty()) {
      DEDUP_ASSIGN(Unresolved left, ask_homes(open));
      DEDUP_TRY(recall(file_, left.leases));
      open = std::move(left.leased);
      if (!left.need_base.empty()) DEDUP_TRY(install_bases(left.need_base, open));
      if (!left.own_base.empty()) DEDUP_TRY(lay_over_bases(left.own_base, open));
    }
    build_spans();
    return Status::ok();
  }

  // Without asking the homes.
  Status resolve_settled() {
    std::vector<std::uint64_t> blocks;
    for (const ByteRange& range : ranges_) blocks.push_back(range.offset / kBlockSpan);
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    const std::uint64_t in_file = (view_->committed->record.size + kBlockSpan - 1) / kBlockSpan;
    DEDUP_ASSIGN(blocks_,
                 file_.local->settled().read(base_recipe(), view_->base(), blocks, in_file));
    std::size_t at = 0;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      while (blocks[at] != ranges_[i].offset / kBlockSpan) ++at;
      const auto begin = static_cast<std::uint32_t>(ranges_[i].offset % kBlockSpan);
      const auto end = static_cast<std::uint32_t>(begin + ranges_[i].length);
      resolved_[i] = {};
      resolved_[i].content = plan::slice(*blocks_[at], begin, end);
    }
    build_spans();
    return Status::ok();
  }

  // What one message asks a block home.
  struct Question {
    NodeIndex home = kNoNode;
    std::vector<std::size_t> ranges;
    std::uint64_t bytes = 0;
  };

  // As few as there can be with at most a block's bytes each: a reply has room for a block's
  // pieces.
  std::vector<Question> questions_for(const std::vector<std::size_t>& which) const {
    std::vector<Question> out;
    std::map<NodeIndex, std::size_t> last;  // of each home
    for (const std::size_t i : which) {
      const auto [it, is_new] = last.emplace(home_of(i), out.size());
      if (!is_new && out[it->second].bytes + ranges_[i].length > kBlockSpan) {
        it->second = out.size();
      }
      if (it->second == out.size()) out.push_back({it->first, {}, 0});
      Question& question = out[it->second];
      question.ranges.push_back(i);
      question.bytes += ranges_[i].length;
    }
    return out;
  }

  // Ranges that are to be asked for again.
  struct Unresolved {
    std::vector<std::size_t> need_base;  // the home lacks their base block
    std::vector<std::size_t> own_base;   // for this to complete, not to be asked for again
    std::vector<std::size_t> leased;
    std::vector<service::Lease> leases;  // on them
  };

  // Resolves `which` ranges; returns what is left of them.
  Result<Unresolved> ask_homes(const std::vector<std::size_t>& which) {
    Unresolved left;
    const std::vector<Question> questions = questions_for(which);
    for (std::span<const Question> rest = questions; !rest.empty();) {
      // One at a time for each home.
      std::set<NodeIndex> homes;
      std::size_t count = 0;
      while (count < rest.size() && homes.insert(rest[count].home).second) ++count;
      DEDUP_TRY(ask(rest.first(count), left));
      rest = rest.subspan(count);
    }
    return left;
  }

  Status ask(std::span<const Question> questions, Unresolved& left) {
    std::vector<service::Client::Pending<service::Resolve>> pending;
    for (const Question& question : questions) {
      service::Resolve request{file_.identity(), {}};
      for (const std::size_t i : question.ranges) request.ranges.push_back(ranges_[i]);
      pending.push_back(file_.client().start(question.home, request));
    }
    Status status;
    for (std::size_t k = 0; k < questions.size(); ++k) {
      const std::vector<std::size_t>& indexes = questions[k].ranges;
      auto reply = pending[k].wait();
      if (!reply.is_ok()) {
        status = reply.status();
        continue;
      }
      if (reply->ranges.size() != indexes.size()) {
        status = Status(Code::kInternal, "a block home answered for other ranges");
        continue;
      }
      if (!reply->leases.empty()) {
        left.leases.insert(left.leases.end(), reply->leases.begin(), reply->leases.end());
        left.leased.insert(left.leased.end(), indexes.begin(), indexes.end());
        continue;
      }
      for (std::size_t j = 0; j < indexes.size(); ++j) {
        resolved_[indexes[j]] = std::move(reply->ranges[j]);
        bases_[indexes[j]] = reply->base;
        if (resolved_[indexes[j]].base_needed) left.need_base.push_back(indexes[j]);
        if (resolved_[indexes[j]].base_end > 0) left.own_base.push_back(indexes[j]);
      }
    }
    return status;
  }

  // Those of `ranges` whose homes have the view's base; the others, which a commit came between,
  // go to `open`, to be asked for again.
  Result<std::vector<std::size_t>> of_same_base(const std::vector<std::size_t>& ranges,
                                                std::vector<std::size_t>& open) {
    const auto is_same = [&](std::size_t i) { return bases_[i] == view_->base(); };
    if (!std::all_of(ranges.begin(), ranges.end(), is_same)) {
      DEDUP_TRY(file_.refresh_view());
      view_ = file_.view();
      if (!view_->committed) {
        return Status(
            Code::kInternal,
            view_->info.path + ": a block home knows a generation that the file home does not");
      }
    }
    std::vector<std::size_t> same;
    for (const std::size_t i : ranges) (is_same(i) ? same : open).push_back(i);
    return same;
  }

  // After of_same_base() has said that there is a base.
  BaseRecipe base_recipe() const { return {file_.client(), file_.identity(), *view_->committed}; }

  // Brings homes the base blocks that they lack.
  Status install_bases(const std::vector<std::size_t>& which, std::vector<std::size_t>& open) {
    DEDUP_ASSIGN(const std::vector<std::size_t> ranges, of_same_base(which, open));
    std::vector<std::uint64_t> blocks;
    for (const std::size_t i : ranges) blocks.push_back(ranges_[i].offset / kBlockSpan);
    blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
    DEDUP_ASSIGN(std::vector<store::EncodedBlock> contents, base_recipe().read_encoded(blocks));
    std::map<NodeIndex, service::InstallBase> requests;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      auto& request = requests[file_.block_home(blocks[i])];
      request.identity = file_.identity();
      request.attempt = view_->base();
      request.stores.nodes = view_->committed->store_of;
      request.blocks.push_back(std::move(contents[i]));
    }
    for (const auto& [home, request] : requests) {
      DEDUP_TRY(file_.client().call(home, request).status());
    }
    open.insert(open.end(), ranges.begin(), ranges.end());
    return {};
  }

  // Lays what the homes have of long ranges over base blocks that they need not know.
  Status lay_over_bases(const std::vector<std::size_t>& which, std::vector<std::size_t>& open) {
    DEDUP_ASSIGN(const std::vector<std::size_t> ranges, of_same_base(which, open));
    std::vector<std::uint64_t> blocks;
    for (const std::size_t i : ranges) blocks.push_back(ranges_[i].offset / kBlockSpan);
    DEDUP_ASSIGN(std::vector<Block> bases, base_recipe().read(blocks));
    for (std::size_t k = 0; k < ranges.size(); ++k) {
      service::ResolvedRange& resolved = resolved_[ranges[k]];
      const auto begin = static_cast<std::uint32_t>(ranges_[ranges[k]].offset % kBlockSpan);
      plan::restrict(bases[k], begin, resolved.base_end);
      plan::erase(bases[k], plan::extents_of(resolved.log));
      plan::underlay(resolved.content, std::move(bases[k]));
    }
    return {};
  }

  NodeIndex home_of(std::size_t range) const {
    return file_.block_home(ranges_[range].offset / kBlockSpan);
  }

  void build_spans() {
    spans_.clear();
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const std::uint64_t block = ranges_[i].offset / kBlockSpan * kBlockSpan;
      const service::ResolvedRange& r = resolved_[i];
      for (const Piece& piece : r.content.pieces) {
        if (piece.is_zero()) continue;
        spans_.push_back({block + piece.begin, piece.length, &piece, nullptr,
                          &r.content.placements[piece.placement], 0, nullptr});
      }
      for (const LogPiece& log : r.log) {
        spans_.push_back({block + log.begin, log.length, nullptr, &log, nullptr, 0, nullptr});
      }
      if (file_.plain == nullptr) continue;
      for (const ByteRange& range : untouched(ranges_[i], r, file_.plain->size())) {
        spans_.push_back({range.offset, range.length, nullptr, nullptr, nullptr, 0, nullptr});
      }
    }
    std::sort(spans_.begin(), spans_.end(),
              [](const Span& a, const Span& b) { return a.offset < b.offset; });
  }

  Status fetch_plain() {
    std::uint64_t bytes = 0;
    for (const Span& span : spans_) {
      if (span.is_plain()) bytes += span.length;
    }
    plain_buffer_.resize(bytes);
    std::byte* out = plain_buffer_.data();
    for (Span& span : spans_) {
      if (!span.is_plain()) continue;
      DEDUP_TRY(file_.plain->read(span.offset, {out, span.length}));
      span.bytes = out;
      out += span.length;
    }
    return Status::ok();
  }

  Status fetch() {
    DEDUP_TRY(fetch_plain());
    std::uint64_t log_bytes = 0;
    for (const Span& span : spans_) {
      if (span.log != nullptr) log_bytes += span.length;
    }
    log_buffer_.resize(log_bytes);
    std::uint64_t at = 0;
    for (Span& span : spans_) {
      if (span.log == nullptr) continue;
      const std::span out(log_buffer_.data() + at, span.length);
      const Status status = read_log(*span.log, out);
      if (!status.is_ok()) {
        log_gone_ = true;
        return status.with_context(view_->info.path + ", " + range_text(span.offset, span.length));
      }
      span.bytes = out.data();
      at += span.length;
    }
    return fetch_chunks();
  }

  Status read_log(const LogPiece& log, std::span<std::byte> out) {
    if (log.node == file_.client().self()) {
      return file_.local->read_log(log.log, log.log_offset, out);
    }
    DEDUP_ASSIGN(const service::BytesReply reply,
                 file_.client().call(log.node, service::ReadLog{file_.identity(), log.log,
                                                                log.log_offset, log.length}));
    if (reply.bytes.size() != out.size()) {
      return {Code::kIo,
              "node " + file_.client().node_name(log.node) + " gave a part of a log only"};
    }
    std::memcpy(out.data(), reply.bytes.data(), out.size());
    if (store::format::checksum(out) != reply.checksum) {
      return {Code::kCorrupt, "a part of a log of node " + file_.client().node_name(log.node) +
                                  " was damaged on its way"};
    }
    return Status::ok();
  }

  // Where a span's bytes go if they stay together there; null if they do not.
  std::byte* target_of(const Span& span) const {
    if (!in_order_) return nullptr;
    const auto after = std::upper_bound(
        fragments_.begin(), fragments_.end(), span.offset,
        [](std::uint64_t at, const plan::Fragment& f) { return at < f.file_offset; });
    if (after == fragments_.begin()) return nullptr;
    const plan::Fragment& f = *(after - 1);
    return span.end() <= f.file_offset + f.length ? f.memory + (span.offset - f.file_offset)
                                                  : nullptr;
  }

  // Each chunk once, however many spans it is in: to where it is wanted, if that is all of it.
  Status fetch_chunks() {
    table_.reset(spans_.size());
    wanted_.clear();
    std::uint64_t bytes = 0;
    for (Span& span : spans_) {
      if (span.piece == nullptr) continue;
      const Piece& piece = *span.piece;
      span.chunk =
          table_.find_or_enter(piece.fingerprint, static_cast<std::uint32_t>(wanted_.size()),
                               [&](std::uint32_t n) { return wanted_[n].fingerprint; });
      if (span.chunk != wanted_.size()) continue;
      const bool whole = piece.chunk_offset == 0 && span.length == piece.chunk_length;
      wanted_.push_back({piece.fingerprint, piece.chunk_length, span.placement,
                         whole ? target_of(span) : nullptr});
      if (wanted_.back().out == nullptr) bytes += piece.chunk_length;
    }
    if (wanted_.empty()) return Status::ok();
    chunk_buffer_.resize(bytes);
    std::byte* next = chunk_buffer_.data();
    for (WantedChunk& chunk : wanted_) {
      if (chunk.out != nullptr) continue;
      chunk.out = next;
      next += chunk.length;
    }
    const std::vector<std::size_t> lost = source().fetch(wanted_);
    if (!lost.empty()) return lost_chunks(lost);
    for (Span& span : spans_) {
      if (span.piece == nullptr) continue;
      span.bytes = wanted_[span.chunk].out + span.piece->chunk_offset;
    }
    return Status::ok();
  }

  ChunkSource source() const {
    if (settled_) return {file_.client(), *file_.local, file_.identity(), blocks_};
    return {file_.client(), *file_.local, file_.identity()};
  }

  // Names the file, the first contiguous range that is lost, and the stores that had it.
  Status lost_chunks(const std::vector<std::size_t>& lost) const {
    const auto is_lost = [&](const Span& span) {
      return span.piece != nullptr &&
             std::any_of(lost.begin(), lost.end(), [&](std::size_t i) { return i == span.chunk; });
    };
    const auto first = std::find_if(spans_.begin(), spans_.end(), is_lost);
    std::uint64_t end = first->end();
    NodeSet nodes;
    for (auto it = first; it != spans_.end() && it->offset <= end && is_lost(*it); ++it) {
      end = it->end();
      const NodeSet& some = it->placement->nodes();
      nodes.insert(nodes.end(), some.begin(), some.end());
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    std::string stores;
    for (const NodeIndex n : nodes) {
      // A commit may have come between, after which the table has no stores that are missing.
      if (n >= view_->info.stores.size()) continue;
      const service::StoreRef& store = view_->info.stores[n];
      if (!stores.empty()) stores += ", ";
      stores += "store " + store.uuid.hex() + " of node " + store.node;
      stores += n < file_.client().nodes() ? " (is here, but cannot give them)" : " (missing)";
    }
    if (stores.empty()) stores = "no store any more (lost before this generation)";
    return {Code::kIo, view_->info.path + ", " + range_text(first->offset, end - first->offset) +
                           ": no copy of these bytes is left; they were on " + stores};
  }

  void copy_out() const {
    for (const plan::Fragment& f : fragments_) {
      const std::uint64_t end = f.file_offset + f.length;
      auto it = std::upper_bound(
          spans_.begin(), spans_.end(), f.file_offset,
          [](std::uint64_t offset, const Span& span) { return offset < span.end(); });
      std::uint64_t at = f.file_offset;
      for (; it != spans_.end() && it->offset < end; ++it) {
        if (it->offset > at) std::memset(f.memory + (at - f.file_offset), 0, it->offset - at);
        const std::uint64_t from = std::max(at, it->offset);
        const std::uint64_t to = std::min(end, it->end());
        std::byte* const target = f.memory + (from - f.file_offset);
        const std::byte* const source = it->bytes + (from - it->offset);
        if (target != source) std::memcpy(target, source, to - from);
        at = to;
      }
      if (at < end) std::memset(f.memory + (at - f.file_offset), 0, end - at);
    }
  }

  JobFile& file_;
  std::shared_ptr<const FileView> settled_;
  std::vector<std::shared_ptr<const Block>> blocks_;  // that the window is in, if it is settled
  std::shared_ptr<const FileView> view_;
  std::span<const plan::Fragment> fragments_;
  bool in_order_ = false;  // by their places in the file, none twice there
  std::vector<ByteRange> ranges_;
  std::vector<service::ResolvedRange> resolved_;  // one per range; spans point into them
  std::vector<Id128> bases_;  // of these, which generation's base their homes have
  std::vector<Span> spans_;
  std::vector<WantedChunk> wanted_;
  plan::FingerprintTable table_;  // of these
  Bytes log_buffer_;
  Bytes chunk_buffer_;
  Bytes plain_buffer_;
  bool log_gone_ = false;
};

// How the file is, if nobody of this job can write to it; null: somebody may.
std::shared_ptr<const FileView> settled_view(const JobFile& file) {
  if (file.writable || file.atomic || file.plain != nullptr) return nullptr;
  auto view = file.view();
  if (!view->committed || !file.local->settled().is(view->base())) return nullptr;
  return view;
}

// What the stores cannot give of a cached file: the plain file at its path has all of it, as long
// as nobody in the job may write to it. `why`: else.
Status read_where_it_is(const JobFile& file, std::span<const plan::Fragment> fragments,
                        const Status& why) {
  const auto view = file.view();
  const bool is_cached = view->committed && !view->info.writable &&
                         view->info.real_path == service::FileInfo::RealPath::kPlain;
  if (!is_cached) return why;
  const auto plain = PlainFile::open(view->info.path, view->info.plain);
  if (!plain.is_ok()) return why;
  for (const plan::Fragment& f : fragments) {
    DEDUP_TRY((*plain)->read(f.file_offset, {f.memory, f.length}));
  }
  return Status::ok();
}

// Reads what of `access` is before `size`.
Result<std::uint64_t> read_up_to(JobFile& file, const plan::Access& access, std::uint64_t size,
                                 std::shared_ptr<const FileView> settled = nullptr) {
  plan::FragmentWalk walk(access);
  std::uint64_t read = 0;
  WindowReader reader(file, std::move(settled));
  std::vector<plan::Fragment> fragments;
  bool at_end = false;
  while (!at_end) {
    fragments.clear();
    std::uint64_t bytes = 0;
    std::uint64_t last_block = UINT64_MAX;
    std::size_t blocks = 0;
    while (bytes < kWindowBytes && fragments.size() < kWindowFragments && blocks < kWindowBlocks) {
      plan::Fragment f = walk.next(kWindowBytes - bytes);
      if (f.length == 0 || f.file_offset >= size) {
        at_end = true;
        break;
      }
      if (f.file_offset + f.length > size) {
        f.length = size - f.file_offset;
        at_end = true;
      }
      const std::uint64_t end_block = (f.file_offset + f.length - 1) / kBlockSpan;
      if (end_block != last_block) ++blocks;
      last_block = end_block;
      bytes += f.length;
      fragments.push_back(f);
      if (at_end) break;
    }
    if (fragments.empty()) break;
    const Status status = reader.read(fragments);
    if (!status.is_ok()) DEDUP_TRY(read_where_it_is(file, fragments, status));
    read += bytes;
  }
  return read;
}

// Collective. Rank 0 asks once all are in the call: what was written before any of them came
// counts.
Status share_size(const JobFile& file, std::uint64_t wanted, std::uint64_t& size) {
  DEDUP_TRY(file.ranks().agree_max(Status::ok(), wanted, Waiting::kPatient));
  if (wanted == 0) return Status::ok();
  Status status;
  if (file.rank() == 0) {
    const auto asked = file_size(file);
    status = asked.status();
    if (status.is_ok()) size = *asked;
  }
  return file.ranks().share(status, size);
}

}  // namespace

Result<std::uint64_t> read_access(JobFile& file, const plan::Access& access) {
  if (access.bytes == 0) return std::uint64_t{0};
  std::optional<JobLock> atomic;
  if (file.atomic) {
    DEDUP_ASSIGN(JobLock lock, JobLock::take(file, service::LockKind::kAtomic));
    atomic.emplace(std::move(lock));
  }
  if (auto settled = settled_view(file)) {
    const std::uint64_t size = settled->committed->record.size;
    return read_up_to(file, access, size, std::move(settled));
  }
  DEDUP_ASSIGN(const std::uint64_t size, file_size(file));
  return read_up_to(file, access, size);
}

Result<std::uint64_t> read_together(JobFile& file, const plan::Access& access) {
  // A lock is each rank's own, and whoever waits for it must not be waited for.
  const bool is_alone = file.atomic || file.ranks().size() == 1;
  // Where nobody could write it is mostly still so, and then nobody need be asked, nor agree: each
  // rank finds out by itself. All must go about it in the same way.
  if (is_alone || (!file.had_writers && file.plain == nullptr)) return read_access(file, access);
  std::uint64_t size = 0;
  DEDUP_TRY(share_size(file, access.bytes, size));
  return access.bytes == 0 ? 0 : read_up_to(file, access, size);
}

Status read_range(JobFile& file, std::uint64_t offset, std::span<std::byte> out) {
  const std::int64_t zero = 0;
  const auto length = static_cast<std::int64_t>(out.size());
  const plan::FlatType whole{{&zero, 1}, {&length, 1}, length, length};
  const plan::Access access{
      static_cast<std::int64_t>(offset), whole, 0, out.data(), whole, out.size()};
  return read_up_to(file, access, offset + out.size()).status();
}

}  // namespace dedup::engine
