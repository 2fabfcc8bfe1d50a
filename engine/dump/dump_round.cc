#include "engine/dump/dump_round.h"

#include <algorithm>
#include <cstring>

#include "engine/dump/reduction.h"
#include "engine/dump/single_chunks.h"
#include "engine/mpi/agreement.h"
#include "engine/mpi/pace.h"
#include "engine/protocol/failpoint.h"
#include "service/messages/store_node.h"

namespace dedup::engine {
namespace {

constexpr std::size_t kAskAtOnce = 65536;   // fingerprints
constexpr std::size_t kClaimAtOnce = 2048;  // chunks; asking costs little if it is for many
// Bytes stored at once while others' chunks are on their way: little, since meanwhile nothing is
// received, and nothing more is sent.
constexpr std::uint64_t kStoreAtOnce = std::uint64_t{1} << 20;

class Timer {
 public:
  explicit Timer(double& seconds) : seconds_(seconds), begin_(PMPI_Wtime()) {}
  ~Timer() { seconds_ += PMPI_Wtime() - begin_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  double& seconds_;
  double begin_;
};

}  // namespace

RunCursor::Chunk RunCursor::next() {
  for (;;) {
    if (run_ != nullptr) {
      const plan::Cut cut = cutter_.next();
      if (cut.length > 0) {
        return {run_->file_offset + cut.offset, {run_->data + cut.offset, cut.length}, cut.zero};
      }
    }
    if (next_ == runs_.size()) return {};
    run_ = &runs_[next_++];
    cutter_ = plan::ChunkCutter({run_->data, run_->length}, chunk_size_);
  }
}

DumpRound::DumpRound(DumpState& state, std::uint32_t longest, Numbered<NodeSet>& holder_sets,
                     DumpResult& result)
    : state_(state),
      holder_sets_(holder_sets),
      result_(result),
      stats_(result.stats),
      first_piece_(result.pieces.size()),
      header_size_(sizeof(Fingerprint) + 27 + sizeof(NodeIndex) * state.copies),
      longest_(longest) {}

Status DumpRound::run(RunCursor& cursor, std::uint64_t most) {
  {
    const Timer timer(stats_.seconds_hashing);
    const PacedHashing paced;
    const std::uint64_t before = stats_.bytes_fingerprinted;
    cut(cursor, most);
    if (deduplicate()) name_chunks();
    paced.done(stats_.bytes_fingerprinted - before);
  }
  failpoint("dump.hashed");
  NodePlan plan;
  {
    const Timer timer(stats_.seconds_reducing);
    std::optional<NodeChunks> chunks;
    ChunkTotals mine;
    if (deduplicate()) {
      chunks = NodeChunks::gather(state_.topology, shared_records());
      if (!chunks->is_sound()) {
        remember({Code::kIo, "a rank received other fingerprints than its node's ranks sent"});
      }
      look_up(*chunks);
      reduce_over_nodes(*chunks);
      mine = total(*chunks);
    }
    for (const Unique& u : uniques_) {
      if (!u.single) continue;
      ++mine.new_chunks;
      mine.new_bytes += u.length;
    }
    const bool ring = state_.hints.mode != hints::Mode::kCollective ||
                      state_.hints.partners == hints::Partners::kRing;
    Status failure;
    plan = agree_on_dealing(
        state_.topology, state_.client,
        {state_.copies, ring, state_.exchange->slots_per_round(header_size_, longest_),
         state_.identity, &frequent_, mine, status_},
        state_.order, failure);
    remember(failure);
    if (plan.proceed) {
      if (chunks) judge(std::move(*chunks), plan.dealer);
      judge_singles(plan.dealer);
      prepare_sends(plan);
    }
  }
  if (plan.proceed) {
    failpoint("dump.storing");
    {
      const Timer timer(stats_.seconds_exchanging);
      store_and_exchange(plan);
      put_to_guests();
    }
    stats_.seconds_exchanging -= storing_in_exchange_;
    stats_.seconds_storing += storing_in_exchange_;
    const Timer timer(stats_.seconds_storing);
    remember(state_.writer.write_out());
    failpoint("dump.stored");
  }
  const Timer timer(stats_.seconds_storing);
  const Status all = agree(state_.topology.comm(), status_, Waiting::kPatient);
  stats_.bytes_stored += state_.writer.bytes_stored();
  finish_pieces();
  const Status settled = state_.writer.settle(all.is_ok());
  if (!all.is_ok()) return all;
  if (deduplicate()) settle(plan.dealer);
  return agree(state_.topology.comm(), settled, Waiting::kPatient);
}

// ---- Cutting and fingerprints -----------------------------------------------------------------

// Finds the chunks of this rank that differ from each other. Their pieces get the fast hash in
// place of a fingerprint; a chunk that is there again is compared with the first, byte by byte.
void DumpRound::cut(RunCursor& cursor, std::uint64_t most) {
  plan::FingerprintTable table;
  std::vector<DumpedPiece>& pieces = result_.pieces;
  if (deduplicate()) table.reset(most);
  for (std::uint64_t count = 0; count < most;) {
    const RunCursor::Chunk chunk = cursor.next();
    if (chunk.data.empty()) break;
    const auto length = static_cast<std::uint32_t>(chunk.data.size());
    DumpedPiece piece{chunk.file_offset, length, 0, chunk.zero, {}};
    stats_.bytes_written += length;
    if (chunk.zero) {
      stats_.bytes_zero += length;
      pieces.push_back(piece);
      continue;
    }
    ++count;
    const auto fresh = static_cast<std::uint32_t>(uniques_.size());
    piece.holders = fresh;
    const FastHash hash = fast_hash(chunk.data);
    if (deduplicate()) {
      piece.fingerprint = name_of_single(hash, 0);
      piece.holders =
          table.find_or_enter_if(piece.fingerprint.prefix(), fresh, [&](std::uint32_t n) {
            const Unique& u = uniques_[n];
            return fingerprint_of(u) == piece.fingerprint && u.length == length &&
                   std::memcmp(u.data, chunk.data.data(), length) == 0;
          });
    } else {
      piece.fingerprint = state_.numbers.next();
    }
    if (piece.holders == fresh) {
      uniques_.push_back({chunk.data.data(), length,
                          static_cast<std::uint32_t>(pieces.size() - first_piece_), 0,
                          !deduplicate(), hash.low});
      stats_.bytes_unique_local += length;
    }
    pieces.push_back(piece);
  }
}

// Gives each chunk its name: that of a single one if there is no twin of it among the ranks or in
// this node's store; what it has in the store if it was single there, and is the same; else its
// strong fingerprint.
void DumpRound::name_chunks() {
  std::vector<FastHash> hashes;
  std::vector<std::uint64_t> parts;
  hashes.reserve(uniques_.size());
  parts.reserve(uniques_.size());
  for (const Unique& u : uniques_) {
    hashes.push_back(fast_part(fingerprint_of(u)));
    parts.push_back(hashes.back().low);
  }
  std::vector<std::uint8_t> twin = state_.twins.find(parts);
  parts = {};
  SingleChunks stored(state_.client, state_.identity);
  const auto known = stored.find(hashes, [&](std::size_t i) { return data_of(uniques_[i]); });
  remember(known.status());
  if (!known.is_ok()) return;
  for (std::size_t i = 0; i < uniques_.size(); ++i) {
    Unique& u = uniques_[i];
    Fingerprint& name = result_.pieces[first_piece_ + u.piece].fingerprint;
    if (known->names[i]) {
      name = *known->names[i];
    } else if (twin[i] != 0 || known->alike[i] != 0) {
      stats_.bytes_fingerprinted += u.length;
      const auto strong = state_.hasher->hash(data_of(u));
      remember(strong.status());
      if (strong.is_ok()) name = *strong;
    } else {
      name = name_of_single(hashes[i], state_.singles.next());
      u.single = true;
    }
  }
}

std::vector<ChunkRecord> DumpRound::shared_records() {
  std::vector<ChunkRecord> out;
  for (std::uint32_t i = 0; i < uniques_.size(); ++i) {
    if (uniques_[i].single) continue;
    shared_.push_back(i);
    out.push_back({fingerprint_of(uniques_[i]), uniques_[i].length});
  }
  return out;
}

// ---- What is known of them --------------------------------------------------------------------

void DumpRound::look_up(const NodeChunks& chunks) {
  known_.assign(chunks.size(), Known::kNew);
  known_holders_.assign(chunks.size(), 0);
  std::vector<std::uint32_t> ask;
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    if (const NodeSet* holders = state_.settled.find(chunks[c].fingerprint)) {
      known_[c] = Known::kSettled;
      known_holders_[c] = known_sets_.number(*holders);
    } else {
      ask.push_back(c);
    }
  }
  if (status_.is_ok()) remember(ask_held(chunks, ask));
}

Status DumpRound::ask_held(const NodeChunks& chunks, const std::vector<std::uint32_t>& which) {
  for (std::size_t begin = 0; begin < which.size(); begin += kAskAtOnce) {
    const std::size_t end = std::min(which.size(), begin + kAskAtOnce);
    service::Held request{state_.identity, {}};
    request.fingerprints.reserve(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      request.fingerprints.push_back(chunks[which[i]].fingerprint);
    }
    DEDUP_ASSIGN(const service::HeldReply reply, state_.client.call(my_node(), request));
    std::size_t next = 0;
    for (std::size_t i = begin; i < end && i - begin < reply.held.size(); ++i) {
      if (reply.held[i - begin] == 0) continue;
      NodeSet holders = next < reply.holders.size() ? reply.holders[next] : NodeSet{};
      ++next;
      // Stores that no node of this job has do not count.
      std::erase_if(holders, [&](NodeIndex n) { return n >= state_.topology.job_nodes(); });
      const auto at = std::lower_bound(holders.begin(), holders.end(), my_node());
      if (at == holders.end() || *at != my_node()) holders.insert(at, my_node());
      known_[which[i]] = Known::kHeld;
      known_holders_[which[i]] = known_sets_.number(holders);
    }
  }
  return Status::ok();
}

void DumpRound::reduce_over_nodes(const NodeChunks& chunks) {
  if (state_.hints.mode != hints::Mode::kCollective) return;
  const plan::ReduceLimits limits{state_.copies, state_.hints.threshold,
                                  state_.topology.job_nodes()};
  plan::FrequentSet mine;
  mine.reserve(chunks.size());
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    if (known_[c] == Known::kSettled) continue;
    const bool held = known_[c] == Known::kHeld;
    const NodeSet none;
    mine.add(chunks[c].fingerprint, chunks[c].length, chunks.ranks(c), my_node(), held,
             held ? known_sets_[known_holders_[c]] : none);
  }
  mine.add_outside(my_node(), static_cast<std::uint32_t>(uniques_.size() - shared_.size()));
  mine.finish(limits);
  ReductionCost cost;
  auto reduced = reduce(state_.topology, std::move(mine), limits, &cost);
  stats_.bytes_reducing += cost.bytes;
  stats_.merges += cost.merges;
  remember(reduced.status());
  if (reduced.is_ok()) frequent_ = std::move(*reduced);
}

ChunkTotals DumpRound::total(const NodeChunks& chunks) {
  ChunkTotals sum;
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    if (known_[c] == Known::kSettled || frequent_.find(chunks[c].fingerprint) != nullptr) continue;
    if (known_[c] == Known::kNew) {
      ++sum.new_chunks;
      sum.new_bytes += chunks[c].length;
    } else if (known_sets_[known_holders_[c]].size() >= state_.copies) {
      known_[c] = Known::kSettled;
    } else {
      ++sum.held_chunks;
      sum.held_bytes += chunks[c].length;
    }
  }
  return sum;
}

// ---- What becomes of them ---------------------------------------------------------------------

Verdict DumpRound::judge_frequent(const plan::FrequentSet::Element& element,
                                  const plan::Dealer& dealer) {
  plan::Dealer::Deal deal;
  const auto designated = frequent_.designated(element);
  if (!dealer.deal(designated, element.fingerprint.prefix(), deal)) {
    remember({Code::kInternal, "a chunk could not be dealt although the dealing was feasible"});
  }
  Verdict verdict{false, {}, std::move(deal.holders)};
  for (const plan::Designated& d : designated) {
    if (d.node == my_node()) verdict.keep = !d.held && dealer.keeps(d.node);
  }
  for (const plan::Dealer::Copy& copy : deal.copies) {
    if (copy.from == my_node()) verdict.targets.push_back(copy.to);
  }
  return verdict;
}

Verdict DumpRound::judge_unique(bool held, const plan::Dealer& dealer) {
  plan::Dealer::Deal deal;
  if (!dealer.deal_unique(my_node(), held, deal)) {
    remember({Code::kInternal, "a chunk could not be dealt although the dealing was feasible"});
  }
  Verdict verdict{!held && dealer.keeps(my_node()), {}, std::move(deal.holders)};
  for (const plan::Dealer::Copy& copy : deal.copies) verdict.targets.push_back(copy.to);
  return verdict;
}

void DumpRound::judge(NodeChunks&& chunks, const plan::Dealer& dealer) {
  Numbered<Verdict> verdicts;
  std::vector<std::uint32_t> verdict_of;
  verdict_of.reserve(chunks.size());
  std::optional<Verdict> unique[2];
  for (std::uint32_t c = 0; c < chunks.size(); ++c) {
    if (known_[c] == Known::kSettled) {
      verdict_of.push_back(verdicts.number(Verdict{false, {}, known_sets_[known_holders_[c]]}));
    } else if (const auto* element = frequent_.find(chunks[c].fingerprint)) {
      verdict_of.push_back(verdicts.number(judge_frequent(*element, dealer)));
    } else {
      auto& verdict = unique[known_[c] == Known::kHeld ? 1 : 0];
      if (!verdict) verdict = judge_unique(known_[c] == Known::kHeld, dealer);
      verdict_of.push_back(verdicts.number(*verdict));
    }
  }
  known_ = {};
  known_holders_ = {};
  known_sets_ = {};
  const auto answers = std::move(chunks).answer(verdicts, verdict_of, verdicts_);
  remember(answers.status());
  // Without an answer: nothing to keep, nothing to send.
  const std::uint32_t nothing = answers.is_ok() ? 0 : verdicts_.number(Verdict{});
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    uniques_[shared_[i]].verdict = answers.is_ok() ? (*answers)[i] : nothing;
  }
}

void DumpRound::judge_singles(const plan::Dealer& dealer) {
  std::optional<std::uint32_t> verdict;
  for (Unique& u : uniques_) {
    if (!u.single) continue;
    if (!verdict) verdict = verdicts_.number(judge_unique(false, dealer));
    u.verdict = *verdict;
  }
}

// ---- Storing and sending ----------------------------------------------------------------------

bool DumpRound::keep_some() {
  const Timer timer(storing_in_exchange_);
  if (!state_.writer.has_claimed()) claim_some();
  if (!status_.is_ok()) return false;
  remember(state_.writer.store_claimed(kStoreAtOnce));
  return state_.writer.has_claimed() || next_own_ < uniques_.size();
}

void DumpRound::claim_some() {
  std::vector<StoredChunk> batch;
  for (; next_own_ < uniques_.size() && batch.size() < kClaimAtOnce; ++next_own_) {
    const Unique& u = uniques_[next_own_];
    const Verdict& verdict = verdicts_[u.verdict];
    if (!verdict.keep) continue;
    stats_.bytes_unique_collective += u.length;
    batch.push_back({fingerprint_of(u), data_of(u),
                     state_.writer.holder_sets().number(verdict.holders), u.single, u.checksum});
  }
  if (status_.is_ok()) remember(state_.writer.claim(batch));
}

// Sorts what is to be sent by target, and finds the numbers that the chunks of this rank have among
// those that each target receives: after those of this node's lower ranks.
void DumpRound::prepare_sends(const NodePlan& plan) {
  for (std::uint32_t i = 0; i < uniques_.size(); ++i) {
    for (const NodeIndex target : verdicts_[uniques_[i].verdict].targets) {
      sends_.push_back({target, i});
      stats_.bytes_sent += uniques_[i].length;
    }
  }
  std::stable_sort(sends_.begin(), sends_.end(),
                   [](const Send& a, const Send& b) { return a.target < b.target; });
  if (plan.targets.empty()) return;

  std::vector<std::uint64_t> counts;
  for (const NodePlan::Target& target : plan.targets) {
    const auto range =
        std::equal_range(sends_.begin(), sends_.end(), Send{target.node, 0},
                         [](const Send& a, const Send& b) { return a.target < b.target; });
    range_sends_.push_back(static_cast<std::size_t>(range.first - sends_.begin()));
    counts.push_back(static_cast<std::uint64_t>(range.second - range.first));
  }
  std::vector<std::uint64_t> before(counts.size());
  if (state_.topology.node_size() > 1) {
    PMPI_Exscan(counts.data(), before.data(), static_cast<int>(counts.size()), MPI_UINT64_T,
                MPI_SUM, state_.topology.node_comm());
    if (state_.topology.node_rank() == 0) std::fill(before.begin(), before.end(), 0);
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const NodePlan::Target& target = plan.targets[i];
    if (before[i] + counts[i] > target.chunks) {
      // Never more than was announced: it would go over what others send.
      remember({Code::kInternal, "a node has more to send than its leader announced"});
      before[i] = std::min(before[i], target.chunks);
      counts[i] = target.chunks - before[i];
    }
    if (before[i] + counts[i] < target.chunks &&
        state_.topology.node_rank() == state_.topology.node_size() - 1) {
      // Never fewer either: they are waited for.
      remember({Code::kInternal, "a node has less to send than its leader announced"});
      counts[i] = target.chunks - before[i];
    }
    ranges_.push_back({target.node, target.first + before[i], counts[i]});
  }
}

void DumpRound::store_and_exchange(const NodePlan& plan) {
  if (plan.rounds == 0) {
    while (keep_some()) {
    }
    return;
  }
  ++state_.exchanges;
  ExchangePlan out;
  out.ranges = ranges_;
  out.incoming = plan.incoming;
  out.rounds = plan.rounds;
  out.header_size = header_size_;
  out.longest = longest_;
  out.fill = [this](std::size_t range, std::uint64_t number, std::byte* header) {
    const std::size_t send = range_sends_[range] + number;
    if (send >= sends_.size() || sends_[send].target != ranges_[range].target) {
      // What is not there: no exchange has this header.
      std::memset(header, 0, header_size_);
      return std::span<const std::byte>();
    }
    const Unique& u = uniques_[sends_[send].unique];
    describe(u, ranges_[range].first + number, header);
    return data_of(u);
  };
  out.drain = [this](std::span<const Parcel> parcels) { take(parcels); };
  out.meanwhile = [this] { return keep_some(); };
  state_.exchange->run(out);
}

void DumpRound::describe(const Unique& u, std::uint64_t slot, std::byte* header) {
  Encoder encoder;
  encoder.bytes().reserve(header_size_);
  encoder.put(fingerprint_of(u));
  // Whatever is left in a window from before does not pass for this.
  encoder.put(state_.exchanges);
  encoder.put(static_cast<std::uint32_t>(slot));
  encoder.put(static_cast<std::uint8_t>(u.single ? 1 : 0));
  encoder.put(u.checksum);
  encoder.put(verdicts_[u.verdict].holders);
  encoder.put(message_checksum(encoder.bytes()));
  std::memcpy(header, encoder.bytes().data(), encoder.size());
}

Result<StoredChunk> DumpRound::read_parcel(const Parcel& parcel) {
  Decoder header(parcel.header);
  StoredChunk chunk;
  chunk.fingerprint = header.get_fingerprint();
  const auto exchange = header.get<std::uint32_t>();
  const auto number = header.get<std::uint32_t>();
  chunk.single = header.get<std::uint8_t>() != 0;
  chunk.checksum = header.get<std::uint64_t>();
  const NodeSet holders = header.get_nodes();
  const std::size_t said = header.position();
  const bool sound = header.get<std::uint64_t>() == message_checksum(parcel.header.first(said));
  if (!header.ok() || !sound || exchange != state_.exchanges ||
      number != static_cast<std::uint32_t>(parcel.slot)) {
    return Status(Code::kIo, "a copy that another node sent did not arrive as it was sent");
  }
  if (fast_hash(parcel.data).low != chunk.checksum) {
    return Status(Code::kIo, "a copy that another node sent has other bytes than were written");
  }
  chunk.data = parcel.data;
  chunk.holders = state_.writer.holder_sets().number(holders);
  return chunk;
}

void DumpRound::take(std::span<const Parcel> parcels) {
  if (!status_.is_ok()) return;
  const Timer timer(storing_in_exchange_);
  std::vector<StoredChunk> batch;
  for (const Parcel& parcel : parcels) {
    const auto chunk = read_parcel(parcel);
    remember(chunk.status());
    if (!chunk.is_ok()) return;
    stats_.bytes_received += parcel.data.size();
    batch.push_back(*chunk);
  }
  remember(state_.writer.store(batch));
}

void DumpRound::put_to_guests() {
  std::vector<StoredChunk> batch;
  for (auto it = sends_.begin(); it != sends_.end() && status_.is_ok();) {
    const NodeIndex target = it->target;
    const bool reached = state_.topology.represented(target);
    for (; it != sends_.end() && it->target == target; ++it) {
      if (reached) continue;
      const Unique& u = uniques_[it->unique];
      batch.push_back({fingerprint_of(u), data_of(u),
                       state_.writer.holder_sets().number(verdicts_[u.verdict].holders)});
    }
    if (!batch.empty()) remember(state_.writer.put(target, batch));
    batch.clear();
  }
}

// ---- The end ----------------------------------------------------------------------------------

void DumpRound::finish_pieces() {
  if (!status_.is_ok() || verdicts_.size() == 0) return;
  std::vector<std::uint32_t> number(verdicts_.size());
  for (std::uint32_t v = 0; v < number.size(); ++v) {
    number[v] = holder_sets_.number(verdicts_[v].holders);
  }
  for (std::size_t i = first_piece_; i < result_.pieces.size(); ++i) {
    DumpedPiece& piece = result_.pieces[i];
    if (piece.zero) continue;
    const Unique& u = uniques_[piece.holders];
    piece.fingerprint = fingerprint_of(u);
    piece.holders = number[u.verdict];
  }
}

// Remembers this rank's part of the result for later dumps.
void DumpRound::settle(const plan::Dealer& dealer) {
  std::vector<std::pair<Fingerprint, NodeSet>> chunks;
  plan::Dealer::Deal deal;
  for (const auto& element : frequent_.elements()) {
    if (decider(element.fingerprint, state_.topology.node_size()) != state_.topology.node_rank()) {
      continue;
    }
    dealer.deal(frequent_.designated(element), element.fingerprint.prefix(), deal);
    chunks.emplace_back(element.fingerprint, deal.holders);
  }
  state_.settled.add(std::move(chunks), frequent_.elements().size());
}

}  // namespace dedup::engine
