#include "service/stripe_decoder.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <future>
#include <utility>

#include "service/known_places.h"
#include "service/messages/store_node.h"
#include "store/chunk_reader.h"
#include "store/segment.h"

namespace dedup::service {
namespace {

// What was sent is what was sealed.
bool is_whole(const ChunksReply& reply, std::span<const NamedChunk> asked,
              std::vector<std::span<const std::byte>>& chunks) {
  chunks = reply.chunks(asked);
  if (chunks.size() != asked.size()) return false;
  const std::vector<store::ChunkSeal> seals = reply.seals(asked);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (chunks[i].size() != asked[i].length ||
        !store::holds(seals[i], {asked[i].fingerprint, chunks[i]})) {
      return false;
    }
  }
  return true;
}

constexpr std::size_t kWorthAThread = std::size_t{1} << 20;  // bytes

std::size_t bytes_of(std::span<const NamedChunk> chunks) {
  std::size_t bytes = 0;
  for (const NamedChunk& chunk : chunks) bytes += chunk.length;
  return bytes;
}

// A table, whose length its node alone knows.
bool is_of_any_length(std::span<const NamedChunk> chunks) {
  return chunks.front().length == 0;
}

}  // namespace

class StripeDecoder::Part {
 public:
  Part() = default;
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { drop(); }

  // Where chunks are to be read to.
  std::vector<store::ChunkTarget> make_room(std::span<const NamedChunk> chunks) {
    const std::size_t bytes = bytes_of(chunks);
    if (bytes > room_) {
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      room_ = bytes;
    }
    chunks_.clear();
    std::vector<store::ChunkTarget> targets;
    std::byte* next = bytes_.get();
    for (const NamedChunk& chunk : chunks) {
      targets.push_back({chunk.fingerprint, {next, chunk.length}});
      chunks_.emplace_back(next, chunk.length);
      next += chunk.length;
    }
    return targets;
  }

  // Beside what this thread does next, if there is somebody for that. `decoding` must stay until
  // wait().
  void give(plan::StripeDecoding& decoding, std::size_t number, Worker* beside) {
    if (beside == nullptr) return decoding.take(number, chunks_);
    taken_ = beside->post([this, &decoding, number] {
      try {
        decoding.take(number, chunks_);
      } catch (...) {
        failure_ = std::current_exception();
      }
      return Status::ok();
    });
  }
  // What taking it has thrown is thrown here.
  void wait() {
    if (taken_.valid()) (void)taken_.get();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  // Waits as well, and throws nothing.
  void drop() noexcept {
    if (taken_.valid()) (void)taken_.get();
    failure_ = nullptr;
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t room_ = 0;
  std::vector<std::span<const std::byte>> chunks_;
  std::future<Status> taken_;
  std::exception_ptr failure_;
};

StripeDecoder::StripeDecoder(Client& services, const Id128& identity, Neighbours* neighbours)
    : services_(services),
      identity_(identity),
      neighbours_(neighbours),
      parts_(std::make_unique<std::array<Part, 2>>()) {}

StripeDecoder::~StripeDecoder() = default;

// Asks services, for so much at the same time.
class StripeDecoder::Asking {
 public:
  Asking(Client& services, const Id128& identity) : services_(services), identity_(identity) {}

  void add(Question question) {
    questions_.push_back(std::move(question));
    begin();
  }
  void end() {
    for (; !asked_.empty(); begin()) {
      const Question question = std::move(questions_.front());
      const auto reply = asked_.front().wait();
      questions_.pop_front();
      asked_.pop_front();
      std::vector<std::span<const std::byte>> chunks;
      if (reply.is_ok() && is_whole(*reply, question.chunks, chunks)) {
        question.decoding->take(question.number, chunks);
      }
    }
  }

 private:
  void begin() {
    while (asked_.size() < std::min(kAskedAtOnce, questions_.size())) {
      const Question& one = questions_[asked_.size()];
      asked_.push_back(services_.start(one.node, GetChunks{identity_, one.chunks}));
    }
  }

  Client& services_;
  Id128 identity_;
  std::deque<Question> questions_;  // the first of them were asked
  std::deque<Client::Pending<GetChunks>> asked_;
};

plan::StripeDecoding StripeDecoder::begin(const plan::StripeUnit& stripe,
                                          std::vector<NamedChunk> lost) {
  std::vector<bool> can_ask;
  for (const NodeIndex node : stripe.nodes) can_ask.push_back(services_.live().contains(node));
  std::optional<std::vector<plan::UnitChunks>> known;
  if (known_ == stripe.stripe) known = units_;
  return {stripe, std::move(can_ask), std::move(lost), std::move(known)};
}

// Each goes its own way; what they want at the same time is asked for at the same time.
void StripeDecoder::go_through(std::span<plan::StripeDecoding> decodings) {
  for (;;) {
    std::vector<Question> questions;
    for (plan::StripeDecoding& decoding : decodings) {
      for (std::size_t q = 0; q < decoding.questions().size(); ++q) {
        const plan::StripeDecoding::Question& one = decoding.questions()[q];
        const NodeIndex node = decoding.stripe().nodes[one.slot];
        const bool is_near = neighbours_ != nullptr && neighbours_->has(node);
        questions.push_back({&decoding, q, node, is_near, one.chunks});
      }
    }
    if (questions.empty()) break;
    answer(std::move(questions));
    for (plan::StripeDecoding& decoding : decodings) {
      if (!decoding.questions().empty()) decoding.go_on();
    }
  }
  for (const plan::StripeDecoding& decoding : decodings) {
    if (!decoding.units()) continue;
    known_ = decoding.stripe().stripe;
    units_ = *decoding.units();
  }
}

plan::StripeDecoding StripeDecoder::decode(const plan::StripeUnit& stripe,
                                           std::vector<NamedChunk> lost) {
  plan::StripeDecoding decoding = begin(stripe, std::move(lost));
  go_through({&decoding, 1});
  return decoding;
}

// What is read here is mostly looked up by the first chunks of stretches alone.
std::map<NodeIndex, StripeDecoder::OfNode> StripeDecoder::locate(
    std::span<const Question> questions) {
  std::map<NodeIndex, Locate> wanted;
  for (const Question& one : questions) {
    if (!one.is_near && !is_of_any_length(one.chunks)) continue;
    const std::vector<Fingerprint> names = store::firsts_of_stretches(one.chunks);
    Locate& request = wanted[one.node];
    request.identity = identity_;
    request.fingerprints.insert(request.fingerprints.end(), names.begin(), names.end());
  }
  std::deque<Client::Pending<Locate>> pending;
  for (const auto& [node, request] : wanted) pending.push_back(services_.start(node, request));
  std::map<NodeIndex, OfNode> places;
  for (const auto& [node, request] : wanted) {
    const auto reply = pending.front().wait();
    pending.pop_front();
    OfNode& of_node = places[node];
    if (!reply.is_ok() || reply->locations.size() != request.fingerprints.size()) continue;
    for (std::size_t i = 0; i < request.fingerprints.size(); ++i) {
      of_node.emplace(request.fingerprints[i], reply->locations[i]);
    }
  }
  return places;
}

bool StripeDecoder::read_near(const Question& question, const OfNode& places, Part& part) {
  const auto where =
      [&](std::span<const Fingerprint> names) -> std::optional<std::vector<store::ChunkLocation>> {
    std::vector<store::ChunkLocation> known;
    for (const Fingerprint& name : names) {
      const auto place = places.find(name);
      if (place == places.end()) return locate_at(services_, identity_, question.node, names);
      known.push_back(place->second);
    }
    return known;
  };
  return neighbours_->read(question.node, part.make_room(question.chunks), where).empty();
}

// Reading one part and adding the one before it to what it is for take about as long.
std::vector<StripeDecoder::Question> StripeDecoder::answer_near(
    std::vector<Question> questions, const std::map<NodeIndex, OfNode>& places) {
  std::size_t bytes = 0;
  for (const Question& one : questions) bytes += bytes_of(one.chunks);
  Worker* const beside = bytes < kWorthAThread ? nullptr : &worker_;
  // The decodings may go when this ends, however it does.
  struct Drops {
    std::array<Part, 2>& parts;
    ~Drops() {
      for (Part& part : parts) part.drop();
    }
  } const drops{*parts_};
  std::vector<Question> left;
  std::size_t turn = 0;
  for (Question& one : questions) {
    Part& part = (*parts_)[turn];
    part.wait();
    if (!read_near(one, places.at(one.node), part)) {
      left.push_back(std::move(one));
      continue;
    }
    part.give(*one.decoding, one.number, beside);
    turn = 1 - turn;
  }
  for (Part& part : *parts_) part.wait();
  return left;
}

// What this process cannot read itself, the node's service may still give; of other hosts' nodes it
// is asked for while this host's are read.
void StripeDecoder::answer(std::vector<Question> questions) {
  const std::map<NodeIndex, OfNode> places = locate(questions);
  Asking asking(services_, identity_);
  std::vector<Question> near;
  for (Question& one : questions) {
    if (is_of_any_length(one.chunks)) {
      const OfNode& of_node = places.at(one.node);
      const auto place = of_node.find(one.chunks.front().fingerprint);
      if (place == of_node.end() || place->second.length == 0) continue;
      one.chunks.front().length = place->second.length;
    }
    if (one.is_near) {
      near.push_back(std::move(one));
    } else {
      asking.add(std::move(one));
    }
  }
  for (Question& one : answer_near(std::move(near), places)) asking.add(std::move(one));
  asking.end();
}

std::optional<std::vector<plan::UnitChunks>> StripeDecoder::units_of(
    const plan::StripeUnit& stripe) {
  return decode(stripe, {}).units();
}

std::vector<std::vector<std::size_t>> StripeDecoder::make_chunks(std::span<const LostUnit> units) {
  std::vector<std::vector<std::size_t>> failed(units.size());
  for (std::size_t from = 0; from < units.size(); from += kUnitsAtOnce) {
    const auto some = units.subspan(from, std::min(kUnitsAtOnce, units.size() - from));
    std::vector<plan::StripeDecoding> decodings;
    for (const LostUnit& unit : some) {
      std::vector<NamedChunk> lost;
      for (const Target& target : unit.targets) lost.push_back(target.chunk);
      decodings.push_back(begin(unit.stripe, std::move(lost)));
    }
    go_through(decodings);
    for (std::size_t u = 0; u < some.size(); ++u) {
      for (std::size_t i = 0; i < some[u].targets.size(); ++i) {
        const auto& made = decodings[u].made()[i];
        if (made) {
          std::copy(made->begin(), made->end(), some[u].targets[i].out);
        } else {
          failed[from + u].push_back(i);
        }
      }
    }
  }
  return failed;
}

std::vector<std::size_t> StripeDecoder::make_chunks(const plan::StripeUnit& stripe,
                                                    std::span<const Target> targets) {
  const LostUnit unit{stripe, {targets.begin(), targets.end()}};
  return make_chunks({&unit, 1}).front();
}

std::optional<Bytes> StripeDecoder::make_part(const plan::StripeUnit& stripe,
                                              const Fingerprint& name) {
  const unsigned slot = plan::slot_of(name);
  if (slot >= stripe.nodes.size()) return std::nullopt;
  if (plan::part_of(name) == plan::Part::kParity) return decode(stripe, {{name, 0}}).made().front();
  const auto units = units_of(stripe);
  if (!units) return std::nullopt;
  const std::span<const plan::UnitChunks> all = *units;
  return plan::encode_stripe_table(stripe.is_parity(slot) ? all : all.subspan(slot, 1));
}

}  // namespace dedup::service
