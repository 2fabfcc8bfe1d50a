#include "engine/dump/rounds.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/piece.h"
#include "engine/mpi/checked_message.h"
#include "engine/mpi/counts.h"
#include "plan/domains.h"
#include "plan/stretches.h"

namespace dedup::engine {
namespace {

constexpr std::uint64_t kJudgedFragments = 65536;
constexpr std::uint64_t kShortPiece = 4096;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 18;
// Of one dump, where every rank's data is where it is: their pieces are kept until they are
// published.
constexpr std::uint64_t kMostOfADump = std::uint64_t{1} << 16;
constexpr std::uint64_t kFewestRuns = 1024;
constexpr std::uint64_t kLargestDomain = kMostChunks / 2 * kMinChunkSize;
constexpr std::uint64_t kLargestMessages = std::uint64_t{256} << 20;  // counted in int
constexpr std::uint64_t kSmallestMessages = std::uint64_t{16} << 10;
constexpr int kPiecesTag = 4201;

Status no_memory() {
  return {Code::kNoMemory,
          "no memory for the buffers of a collective write: a smaller dedup_buffer "
          "needs less"};
}

// A run is kept in two lists at once.
std::uint64_t most_runs(std::uint64_t buffer) {
  return std::clamp(buffer / 8 / (sizeof(DumpRun) + sizeof(plan::MemoryRun)), kFewestRuns,
                    kMostChunks / 2);
}

DumpRun dump_run(const plan::MemoryRun& run) {
  return {run.file_offset, run.data, run.length};
}

}  // namespace

class RoundSource::Rounds {
 public:
  virtual ~Rounds() = default;
  virtual Result<bool> next(std::vector<DumpRun>& runs) = 0;
  virtual bool is_two_phase() const = 0;
};

// Every rank's own data, from where it is.
class RoundSource::InPlace : public RoundSource::Rounds {
 public:
  InPlace(const Topology& topology, const plan::Access& access, std::uint32_t chunk_size,
          std::uint64_t buffer)
      : comm_(topology.comm()),
        stretches_(access, chunk_size, {buffer / 4 * 3, most_runs(buffer), kMostOfADump}) {}

  bool is_two_phase() const override { return false; }

  Result<bool> next(std::vector<DumpRun>& runs) override {
    runs.clear();
    if (ended_) return false;
    // In ascending order: the largest of all ranks' answers is the answer.
    enum : int { kNothing, kLast, kMore, kFailed };
    int mine = kFailed;
    if (stretches_.ok()) {
      const bool more = stretches_.next(found_);
      mine = more ? kMore : found_.empty() ? kNothing : kLast;
    }
    int all = mine;
    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, comm_);
    ended_ = all != kMore;
    if (all == kFailed) return no_memory();
    std::transform(found_.begin(), found_.end(), std::back_inserter(runs), dump_run);
    return all != kNothing;
  }

 private:
  MPI_Comm comm_;
  plan::StretchRounds stretches_;
  std::vector<plan::MemoryRun> found_;
  bool ended_ = false;
};

// Every rank is an aggregator. The buffer: a quarter for messages to send, a quarter for messages
// received, the rest for the domain and its runs.
class RoundSource::TwoPhase : public RoundSource::Rounds {
 public:
  TwoPhase(const Topology& topology, const plan::Access& access, std::uint32_t chunk_size,
           std::uint64_t buffer)
      : topology_(topology),
        ranks_(static_cast<unsigned>(topology.size())),
        chunk_size_(chunk_size),
        most_runs_(most_runs(buffer)),
        largest_(std::max<std::uint64_t>(
            chunk_size, std::min(buffer / 5, kLargestDomain) / chunk_size * chunk_size)),
        message_bytes_(std::clamp(buffer / 4, kSmallestMessages, kLargestMessages)),
        cursor_(access),
        out_(new (std::nothrow) std::byte[message_bytes_ + slack()]),
        in_(new (std::nothrow) std::byte[message_bytes_ + slack()]),
        domain_(largest_),
        out_sizes_(ranks_),
        state_(out_ && in_ && domain_.ok() ? kNothingLeft : kNoMemory) {
    look_ahead();
  }

  bool is_two_phase() const override { return true; }

  Result<bool> next(std::vector<DumpRun>& runs) override {
    runs.clear();
    const State state = runs_left() && state_ == kNothingLeft ? kRunsLeft : state_;
    // Minima. Signed, since MPICH 4.0.2 compares unsigned numbers as if they were.
    const std::array<std::int64_t, 4> mine = {state, static_cast<std::int64_t>(reach_.next),
                                              static_cast<std::int64_t>(reach_.limit),
                                              -static_cast<std::int64_t>(reach_.end)};
    std::array<std::int64_t, 4> all = mine;
    PMPI_Allreduce(mine.data(), all.data(), static_cast<int>(all.size()), MPI_INT64_T, MPI_MIN,
                   topology_.comm());
    if (all[0] == kNoMemory) return no_memory();
    if (all[0] == kBadMessage)
      return Status(Code::kInternal, "a two-phase message is not what was sent");
    if (all[0] == kNothingLeft) {
      const plan::Reach reach{static_cast<std::uint64_t>(all[1]),
                              static_cast<std::uint64_t>(all[2]),
                              static_cast<std::uint64_t>(-all[3])};
      if (reach.next == plan::kNoOffset) return false;
      exchange(plan::Domains::agree(reach, ranks_, chunk_size_, largest_));
    }
    for (; runs_left() && runs.size() < most_runs_; run_ = domain_.next_run()) {
      runs.push_back(dump_run(run_));
    }
    return true;
  }

 private:
  // In ascending order: the least of all ranks' states decides.
  enum State : std::int64_t { kNoMemory, kBadMessage, kRunsLeft, kNothingLeft };

  std::uint64_t slack() const { return plan::kMessageSlack * (ranks_ + std::uint64_t{1}); }
  bool runs_left() const { return run_.length != 0; }
  void look_ahead() { reach_ = plan::look_ahead(cursor_, message_bytes_, ranks_ * largest_); }

  // Every piece within the window goes to its domain.
  void exchange(const plan::Domains& domains) {
    const auto me = static_cast<unsigned>(topology_.rank());
    plan::pack(cursor_, domains, {out_.get(), message_bytes_ + slack()}, out_sizes_);
    look_ahead();
    incoming_ = tell_envelopes();
    domain_.reset(domains.domain(me));
    std::vector<MPI_Request> sends;
    const std::byte* at = out_.get();
    for (unsigned r = 0; r < ranks_; at += out_sizes_[r++]) {
      if (r == me) {
        merge({at, out_sizes_[r]});
      } else if (out_sizes_[r] != 0) {
        PMPI_Isend(at, count_of(out_sizes_[r]), MPI_BYTE, static_cast<int>(r), kPiecesTag,
                   topology_.comm(), &sends.emplace_back());
      }
    }
    receive(me);
    PMPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
    run_ = domain_.next_run();
  }

  // How long the messages to this rank are, and their checksums.
  std::vector<Envelope> tell_envelopes() const {
    std::vector<Envelope> out;
    out.reserve(ranks_);
    const std::byte* at = out_.get();
    for (const std::uint32_t size : out_sizes_) {
      out.push_back(Envelope::of({at, size}));
      at += size;
    }
    return exchange_envelopes(topology_.comm(), out);
  }

  // Messages from all others, as many at once as the buffer holds: where many ranks' pieces overlap
  // they may be more than it does.
  void receive(unsigned me) {
    const std::uint64_t capacity = message_bytes_ + slack();
    std::vector<MPI_Request> requests;
    std::uint64_t used = 0;
    const auto take_in = [&] {
      PMPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      requests.clear();
      std::uint64_t at = 0;
      for (const Envelope& envelope : group_) {
        const std::span<const std::byte> message(in_.get() + at, envelope.size);
        if (!envelope.holds(message)) state_ = kBadMessage;
        if (state_ != kBadMessage) merge(message);
        at += envelope.size;
      }
      group_.clear();
      used = 0;
    };
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned from = (me + ranks_ - i) % ranks_;
      const std::uint64_t size = incoming_[from].size;
      if (size == 0) continue;
      if (used + size > capacity) take_in();
      PMPI_Irecv(in_.get() + used, count_of(size), MPI_BYTE, static_cast<int>(from), kPiecesTag,
                 topology_.comm(), &requests.emplace_back());
      group_.push_back(incoming_[from]);
      used += size;
    }
    take_in();
  }

  // A failure is told to the others in the next call, which there always is.
  void merge(std::span<const std::byte> message) {
    if (!domain_.merge(message)) state_ = kBadMessage;
  }

  const Topology& topology_;
  const unsigned ranks_;
  const std::uint32_t chunk_size_;
  const std::uint64_t most_runs_;
  const std::uint64_t largest_;        // domain
  const std::uint64_t message_bytes_;  // to send; the buffers have some more
  plan::FragmentCursor cursor_;
  plan::Reach reach_;  // from the cursor on
  std::unique_ptr<std::byte[]> out_;
  std::unique_ptr<std::byte[]> in_;
  plan::DomainBuffer domain_;
  plan::MemoryRun run_;  // the next one of the domain
  std::vector<std::uint32_t> out_sizes_;
  std::vector<Envelope> incoming_;
  std::vector<Envelope> group_;  // of them, those that are received at once
  State state_;
};

RoundSource::RoundSource(std::unique_ptr<Rounds> rounds) : rounds_(std::move(rounds)) {}
RoundSource::RoundSource(RoundSource&&) noexcept = default;
RoundSource& RoundSource::operator=(RoundSource&&) noexcept = default;
RoundSource::~RoundSource() = default;

Result<RoundSource> RoundSource::create(const Topology& topology, const plan::Access& access,
                                        std::uint32_t chunk_size, std::uint64_t buffer) {
  const std::array<std::uint64_t, 2> mine = {access.bytes,
                                             plan::count_stretches(access, kJudgedFragments)};
  std::array<std::uint64_t, 2> all{};
  PMPI_Allreduce(mine.data(), all.data(), 2, MPI_UINT64_T, MPI_SUM, topology.comm());
  const std::uint64_t shortest = std::min<std::uint64_t>(chunk_size, kShortPiece);
  if (all[0] / shortest < all[1]) {
    return RoundSource(std::make_unique<TwoPhase>(topology, access, chunk_size, buffer));
  }
  return RoundSource(std::make_unique<InPlace>(topology, access, chunk_size, buffer));
}

Result<bool> RoundSource::next(std::vector<DumpRun>& runs) {
  return rounds_->next(runs);
}

bool RoundSource::is_two_phase() const {
  return rounds_->is_two_phase();
}

}  // namespace dedup::engine
