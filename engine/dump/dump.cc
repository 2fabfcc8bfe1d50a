#include "engine/dump/dump.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <mutex>
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

// One rank's data, without any of others': so many bytes go to partners through their services
// sooner than all ranks have agreed on how to send them.
constexpr std::uint64_t kMostAlone = std::uint64_t{1} << 20;

// To give memory back takes longer than to dump so little again in new memory.
constexpr std::uint64_t kWorthTrimming = std::uint64_t{4} << 20;

// What each rank says of what it is to dump; of all ranks together, element by element, the
// largest.
struct Sizes {
  std::uint64_t chunks = 0;
  std::uint64_t longest = 0;  // chunk
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;
  // Of the ranks that have chunks, one more than the highest, and than how many there are above the
  // lowest: so if one has, these add up to one more than there are ranks.
  std::uint64_t highest = 0;
  std::uint64_t lowest = 0;
  std::uint64_t remembers = 0;  // a chunk may be what others have told of before
  FileComms::Offer comms{};

  bool of_one(int size) const { return highest + lowest == static_cast<std::uint64_t>(size) + 1; }
};
constexpr std::size_t kSizesWords = sizeof(Sizes) / sizeof(std::uint64_t);
static_assert(sizeof(Sizes) == kSizesWords * sizeof(std::uint64_t));

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
  Private(const Topology& topology, Alone& the_alone, service::Client& client, OwnStore store,
          const Id128& identity, const Id128& key, const Id128& handle, const hints::Hints& hints)
      : rank(client, std::move(store), identity, key, hints),
        state(topology, rank, handle),
        alone(the_alone) {
    make_exchange(state, hints.exchange);
  }

  static void make_exchange(DumpState& state, hints::Exchange kind) {
    const hints::Hints& hints = state.hints;
    const std::size_t slot = hints.chunk_size + sizeof(Fingerprint) + 46 +
                             plan::Placement::encoded_at_most(state.keeping.copies);
    state.exchange = Exchange::create(kind, state.topology,
                                      std::max<std::size_t>(hints.buffer / kWindowPart, slot),
                                      std::max<std::size_t>(hints.buffer / kStagingPart, slot));
    state.exchange_kind = kind;
  }

  // Collective. The hint may have been set since.
  Status prepare() {
    const hints::Hints& hints = state.hints;
    if (state.exchange_kind != hints.exchange) make_exchange(state, hints.exchange);
    if (rank.namer || hints.mode == hints::Mode::kNone) return Status::ok();
    DEDUP_ASSIGN(rank.namer, ChunkNamer::create(hints.fingerprint, rank.key));
    return Status::ok();
  }

  // Whether what other ranks have told before may have to do with what this one dumps. Only keyed
  // names are of use to others without that they are told of them.
  bool remembers() const {
    if (!state.deduplicates()) return false;
    const bool tells_all = !rank.namer || !rank.namer->is_keyed();
    return tells_all || state.has_counted || !state.settled.empty() || state.twins.remembers();
  }

  // One allreduce: how many rounds there will be, how large a slot must be, whether it is more than
  // one rank's, and which communicators are to be had.
  Sizes sizes(std::span<const DumpRun> runs, const Status& status) {
    const Topology& topology = state.topology;
    Sizes mine;
    for (const DumpRun& run : runs) {
      mine.chunks += plan::chunk_count(run.length, state.hints.chunk_size);
      mine.longest =
          std::max(mine.longest, std::min<std::uint64_t>(run.length, state.hints.chunk_size));
      mine.bytes += run.length;
    }
    dumped += mine.bytes;
    if (mine.chunks != 0) {
      mine.highest = static_cast<std::uint64_t>(topology.rank()) + 1;
      mine.lowest = static_cast<std::uint64_t>(topology.size() - topology.rank());
    }
    mine.failed = status.is_ok() ? 0 : 1;
    mine.remembers = remembers() ? 1 : 0;
    mine.comms = topology.comms().offer();
    return std::bit_cast<Sizes>(
        all_max(topology.comm(), std::bit_cast<std::array<std::uint64_t, kSizesWords>>(mine)));
  }

  // The same on all ranks.
  bool is_for_one(const Sizes& sizes) const {
    const int ranks = state.topology.size();
    return ranks > 1 && sizes.of_one(ranks) && sizes.bytes <= kMostAlone && sizes.remembers == 0;
  }

  // By the rank that has it, while the others wait.
  Status dump_alone(std::span<const DumpRun> runs, const Sizes& sizes, DumpResult& result) {
    const std::lock_guard lock(alone.mutex);
    if (!alone.topology) return {Code::kUnsupported, "the job has ended"};
    FileComms& comms = alone.topology->comms();
    const GivesBack gives_back(comms);
    DEDUP_TRY(comms.take_together());
    if (!of_one) {
      of_one = std::make_unique<DumpState>(*alone.topology, rank, Id128::random());
      // Partners are not among its ranks: nothing goes this way.
      make_exchange(*of_one, hints::Exchange::kSend);
    }
    return dump_rounds(*of_one, runs, sizes, result);
  }

  static Status dump_rounds(DumpState& state, std::span<const DumpRun> runs, const Sizes& sizes,
                            DumpResult& result) {
    RunCursor cursor(runs, state.hints.chunk_size);
    // Not touched before it is needed: runs of zeros take one piece for many chunks.
    result.pieces.reserve(cursor.left());
    Numbered<plan::Placement> placements;
    const std::uint64_t most = chunks_at_once(state);
    for (std::uint64_t done = 0; done < sizes.chunks; done += most) {
      DEDUP_TRY(dump_round(state, cursor, std::min(most, sizes.chunks - done), sizes.longest,
                           placements, result));
    }
    result.placements = placements.list();
    return Status::ok();
  }

  static std::uint64_t chunks_at_once(const DumpState& state) {
    const std::uint64_t fit =
        state.hints.buffer / (kRoundPart * kBytesAChunk * std::max(2u, state.keeping.copies));
    return std::clamp<std::uint64_t>(fit, 1024, kMostChunks);
  }

  void forget() {
    for (DumpState* const some : {&state, of_one.get()}) {
      if (some == nullptr) continue;
      some->settled.clear();
      some->counting.clear();
      some->has_counted = false;
      some->twins.clear();
    }
    rank.stored.forget_committed();
  }

  std::uint64_t dumped = 0;  // bytes of this rank since its memory was given back
  RankDumps rank;
  DumpState state;
  Alone& alone;
  std::unique_ptr<DumpState> of_one;  // of this rank's dumps without the others, if there were any
};

Dumper::Dumper(const Topology& topology, Alone& alone, service::Client& client, OwnStore store,
               const Id128& identity, const Id128& key, const Id128& handle,
               const hints::Hints& hints)
    : p_(std::make_unique<Private>(topology, alone, client, std::move(store), identity, key, handle,
                                   hints)) {}

Dumper::~Dumper() = default;

Result<DumpResult> Dumper::dump(std::span<const DumpRun> runs, const Status& mine) {
  const Status prepared = mine.is_ok() ? p_->prepare() : mine;
  const Topology& topology = p_->state.topology;
  FileComms& comms = topology.comms();
  const GivesBack gives_back(comms);
  const Sizes sizes = p_->sizes(runs, prepared);
  if (sizes.failed != 0) return agree(topology.comm(), prepared);
  DumpResult result;
  if (p_->is_for_one(sizes)) {
    const bool is_mine = sizes.highest == static_cast<std::uint64_t>(topology.rank()) + 1;
    const Status dumped = is_mine ? p_->dump_alone(runs, sizes, result) : Status::ok();
    DEDUP_TRY(agree(topology.comm(), dumped, Waiting::kPatient));
    return result;
  }
  if (sizes.chunks != 0) DEDUP_TRY(comms.take(sizes.comms));
  DEDUP_TRY(Private::dump_rounds(p_->state, runs, sizes, result));
  return result;
}

void Dumper::adopt(std::unique_ptr<store::AdoptedLog> log) {
  p_->rank.writer.adopt(std::move(log));
}

void Dumper::put_away_log() {
  p_->rank.writer.put_away_log();
}

Status Dumper::finish_segments(bool flush) {
  return p_->rank.writer.finish_segments(flush);
}

Status Dumper::wait_for_flush() {
  return p_->rank.writer.wait_for_flush();
}

void Dumper::release_buffers() {
  p_->state.exchange->release();
  p_->forget();
#ifdef __GLIBC__
  // What dumps freed lies between what is still needed: back to the system with it.
  if (std::exchange(p_->dumped, 0) >= kWorthTrimming) malloc_trim(0);
#endif
}

void Dumper::new_generation() {
  p_->rank.writer.new_segment();
  p_->forget();
  p_->state.order.clear();
  if (p_->of_one) p_->of_one->order.clear();
}

}  // namespace dedup::engine
