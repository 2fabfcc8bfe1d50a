#include "engine/dump/dump.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/dump/dump_round.h"
#include "engine/mpi/agreement.h"

namespace dedup::engine {
namespace {

// Of hints.buffer: what a rank receives at once, and, with `put`, what it sends at once.
constexpr std::uint64_t kWindowPart = 8;
constexpr std::uint64_t kStagingPart = 32;
// Of hints.buffer: what a round may take besides, and what each of its chunks and copies needs
// until the round ends, at most. The rest is for the node's service, which its lowest rank pays
// for.
constexpr std::uint64_t kRoundPart = 8;
constexpr std::uint64_t kBytesAChunk = 224;
// Counts of MPI are int, also those of bytes.
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 22;

struct Sizes {
  std::uint64_t chunks = 0;   // of the rank that has most
  std::uint64_t longest = 0;  // chunk of any rank
  std::uint64_t failed = 0;
  FileComms::Offer comms{};
};

// What is taken for a dump goes back when it ends, however that is.
class GivesBack {
 public:
  explicit GivesBack(FileComms& comms) : comms_(comms) {}
  GivesBack(const GivesBack&) = delete;
  GivesBack& operator=(const GivesBack&) = delete;
  ~GivesBack() { comms_.give_back(); }

 private:
  FileComms& comms_;
};

}  // namespace

struct Dumper::Private {
  Private(const Topology& topology, service::Client& client, OwnStore store, const Id128& identity,
          const Id128& key, const Id128& handle, const hints::Hints& hints)
      : state(topology, client, std::move(store), identity, key, handle, hints) {
    make_exchange();
  }

  void make_exchange() {
    const hints::Hints& hints = state.hints;
    const std::size_t slot = hints.chunk_size + sizeof(Fingerprint) + 46 +
                             plan::Placement::encoded_at_most(state.keeping.copies);
    state.exchange = Exchange::create(hints.exchange, state.topology,
                                      std::max<std::size_t>(hints.buffer / kWindowPart, slot),
                                      std::max<std::size_t>(hints.buffer / kStagingPart, slot));
    exchange_kind = hints.exchange;
  }

  // Collective. The hint may have been set since.
  Status prepare() {
    if (exchange_kind != state.hints.exchange) make_exchange();
    if (state.namer || state.hints.mode == hints::Mode::kNone) return Status::ok();
    DEDUP_ASSIGN(state.namer, ChunkNamer::create(state.hints.fingerprint, state.key));
    return Status::ok();
  }

  // One allreduce: how many rounds there will be, how large a slot must be, and which communicators
  // are to be had.
  Sizes sizes(std::span<const DumpRun> runs, const Status& status) const {
    std::array<std::uint64_t, 6> mine{};
    for (const DumpRun& run : runs) {
      mine[0] += plan::chunk_count(run.length, state.hints.chunk_size);
      mine[1] = std::max(mine[1], std::min<std::uint64_t>(run.length, state.hints.chunk_size));
    }
    mine[2] = status.is_ok() ? 0 : 1;
    const FileComms::Offer offer = state.topology.comms().offer();
    std::copy(offer.begin(), offer.end(), mine.begin() + 3);
    const auto all = all_max(state.topology.comm(), mine);
    return {all[0], all[1], all[2], {all[3], all[4], all[5]}};
  }

  std::uint64_t chunks_at_once() const {
    const std::uint64_t fit =
        state.hints.buffer / (kRoundPart * kBytesAChunk * std::max(2u, state.keeping.copies));
    return std::clamp<std::uint64_t>(fit, 1024, kMostChunks);
  }

  DumpState state;
  hints::Exchange exchange_kind = hints::Exchange::kSend;  // of state.exchange
};

Dumper::Dumper(const Topology& topology, service::Client& client, OwnStore store,
               const Id128& identity, const Id128& key, const Id128& handle,
               const hints::Hints& hints)
    : p_(std::make_unique<Private>(topology, client, std::move(store), identity, key, handle,
                                   hints)) {}

Dumper::~Dumper() = default;

Result<DumpResult> Dumper::dump(std::span<const DumpRun> runs) {
  const Status prepared = p_->prepare();
  FileComms& comms = p_->state.topology.comms();
  const GivesBack gives_back(comms);
  const Sizes sizes = p_->sizes(runs, prepared);
  if (sizes.failed != 0) return agree(p_->state.topology.comm(), prepared);
  if (sizes.chunks != 0) DEDUP_TRY(comms.take(sizes.comms));
  DumpResult result;
  RunCursor cursor(runs, p_->state.hints.chunk_size);
  // Not touched before it is needed: runs of zeros take one piece for many chunks.
  result.pieces.reserve(cursor.left());
  Numbered<plan::Placement> placements;
  const std::uint64_t most = p_->chunks_at_once();
  for (std::uint64_t done = 0; done < sizes.chunks; done += most) {
    const Status status = dump_round(p_->state, cursor, std::min(most, sizes.chunks - done),
                                     sizes.longest, placements, result);
    if (!status.is_ok()) return status;
  }
  result.placements = placements.list();
  return result;
}

void Dumper::adopt(std::unique_ptr<store::AdoptedLog> log) {
  p_->state.writer.adopt(std::move(log));
}

void Dumper::put_away_log() {
  p_->state.writer.put_away_log();
}

Status Dumper::finish_segments(bool flush) {
  return p_->state.writer.finish_segments(flush);
}

Status Dumper::wait_for_flush() {
  return p_->state.writer.wait_for_flush();
}

void Dumper::release_buffers() {
  p_->state.exchange->release();
  p_->state.settled.clear();
  p_->state.counting.clear();
  p_->state.has_counted = false;
  p_->state.twins.clear();
  p_->state.stored.forget_committed();
#ifdef __GLIBC__
  // What dumps freed lies between what is still needed: back to the system with it.
  malloc_trim(0);
#endif
}

void Dumper::new_generation() {
  p_->state.writer.new_segment();
  p_->state.settled.clear();
  p_->state.counting.clear();
  p_->state.has_counted = false;
  p_->state.twins.clear();
  p_->state.stored.forget_committed();
  p_->state.order.clear();
}

}  // namespace dedup::engine
