// Every message, filled at random: there and back, cut off at every length, and corrupted.
//
// Messages are plain aggregates: fields_of() gives all their fields, or does not compile.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <type_traits>

#include "base/fields.h"
#include "plan/block.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/homes.h"
#include "service/messages/store_node.h"

namespace dedup::service {
namespace {

// ---- Comparing ---------------------------------------------------------------------------------

template <typename T>
inline constexpr bool is_leaf =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, Id128> || std::is_same_v<T, Fingerprint> ||
    std::is_same_v<T, store::Digest> || std::is_same_v<T, plan::Placement> ||
    std::is_same_v<T, store::SharedRecord> || std::is_same_v<T, store::CommitRecord> ||
    std::is_same_v<T, std::optional<store::CommitRecord>> ||
    std::is_same_v<T, std::optional<std::uint64_t>> || std::is_same_v<T, ChunksReply>;

template <typename T>
bool equal(const T& a, const T& b) {
  if constexpr (is_leaf<T>) {
    return a == b;
  } else if constexpr (std::is_same_v<T, ChunkBytes>) {
    return std::ranges::equal(a.view(), b.view());
  } else if constexpr (fields::is_vector<T>) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return equal(x, y); });
  } else {
    return std::apply(
        [&](const auto&... x) {
          return std::apply([&](const auto&... y) { return (equal(x, y) && ...); }, fields_of(b));
        },
        fields_of(a));
  }
}

// Bytes that a message has allocated.
template <typename T>
std::size_t allocated(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.capacity();
  } else if constexpr (std::is_same_v<T, ChunksReply>) {
    return T(value).take_body().size();
  } else if constexpr (std::is_same_v<T, plan::Placement>) {
    return value.memory();
  } else if constexpr (std::is_same_v<T, ChunkBytes>) {
    return 0;  // of a decoded one
  } else if constexpr (is_leaf<T>) {
    return 0;
  } else if constexpr (fields::is_vector<T>) {
    std::size_t bytes = value.capacity() * sizeof(typename T::value_type);
    for (const auto& item : value) bytes += allocated(item);
    return bytes;
  } else {
    return std::apply([](const auto&... x) { return (std::size_t{0} + ... + allocated(x)); },
                      fields_of(value));
  }
}

// ---- Random messages --------------------------------------------------------------------------

class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}

  std::uint64_t up_to(std::uint64_t n) { return random_() % n; }

  template <typename T>
  void fill(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = up_to(2) == 1;
    } else if constexpr (std::is_same_v<T, std::byte>) {
      value = static_cast<std::byte>(up_to(256));
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(random_());
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(up_to(3));
    } else if constexpr (fields::is_vector<T>) {
      value.resize(up_to(4));
      for (auto& item : value) fill(item);
    } else {
      std::apply([&](auto&... x) { (fill(x), ...); }, fields_of(value));
    }
  }
  void fill(std::optional<std::uint64_t>& number) {
    if (up_to(2) == 0) fill(number.emplace());
  }
  void fill(Id128& id) { fill(id.bytes); }
  void fill(Fingerprint& fingerprint) { fill(fingerprint.bytes); }
  template <std::size_t N>
  void fill(std::array<std::uint8_t, N>& bytes) {
    for (auto& byte : bytes) fill(byte);
  }
  void fill(std::string& text) {
    text.resize(up_to(20));
    for (char& c : text) c = static_cast<char>(up_to(256));
  }
  void fill(plan::StripeUnit& stripe) {
    fill(stripe.stripe);
    stripe.data = static_cast<std::uint8_t>(1 + up_to(5));
    stripe.unit = static_cast<std::uint8_t>(up_to(stripe.data));
    for (auto i = stripe.data + 1 + up_to(3); i > 0; --i) {
      const bool is_gone = up_to(5) == 0;
      stripe.nodes.push_back(is_gone ? kNoNode : static_cast<NodeIndex>(10 * i + up_to(10)));
    }
  }
  void fill(plan::Placement& placement) {
    if (up_to(3) == 0) {
      plan::StripeUnit stripe;
      fill(stripe);
      placement = plan::Placement::in_stripe(std::move(stripe));
      return;
    }
    for (auto i = up_to(4); i > 0; --i) placement.add_copy(static_cast<NodeIndex>(up_to(kNoNode)));
  }
  void fill(std::vector<std::uint8_t>& flags) {
    flags.resize(up_to(6));
    for (auto& flag : flags) flag = up_to(2) == 1;
  }

  // What must fit together.
  void fill(ByteRange& range) {
    range.offset = random_() >> 1;
    range.length = 1 + up_to(kBlockSpan - range.offset % kBlockSpan);
  }
  void fill(LogPiece& piece) {
    piece.begin = static_cast<std::uint32_t>(up_to(kBlockSpan));
    piece.length = static_cast<std::uint32_t>(1 + up_to(kBlockSpan - piece.begin));
    piece.node = static_cast<NodeIndex>(up_to(kNoNode));
    piece.log = random_();
    piece.log_offset = random_() >> 1;
  }
  void fill(Block& block) {
    block.placements.resize(1 + up_to(3));
    for (plan::Placement& placement : block.placements) fill(placement);
    std::uint64_t begin = up_to(2) * up_to(1000);
    for (auto i = up_to(6); i > 0; --i) {
      Piece piece;
      piece.begin = static_cast<std::uint32_t>(begin);
      piece.length = static_cast<std::uint32_t>(1 + up_to(kMaxChunkSize / 2));
      if (up_to(3) != 0) {
        piece.chunk_offset = static_cast<std::uint32_t>(up_to(2) * up_to(kMaxChunkSize / 4));
        piece.chunk_length =
            static_cast<std::uint32_t>(piece.chunk_offset + piece.length + up_to(2) * up_to(100));
        piece.placement = static_cast<std::uint32_t>(up_to(block.placements.size()));
        fill(piece.fingerprint);
      }
      block.pieces.push_back(piece);
      begin = piece.end() + up_to(2) * up_to(1000);
    }
  }
  // Every second time there is none.
  void fill(Lease& lease) {
    lease.block = up_to(std::uint64_t{1} << 41);
    if (up_to(2) == 0) fill_rest(lease);
  }
  void fill(ReturnLease& request) {
    fill(request.identity);
    fill(request.lease);
    fill_rest(request.lease);
    fill(request.pieces);
    fill(request.recalled);
  }
  void fill(RecallLease& request) {
    fill(request.identity);
    fill(request.lease);
    fill_rest(request.lease);
  }
  void fill(LogUpdate& update) {
    update.block = up_to(std::uint64_t{1} << 41);
    fill(update.piece);
  }
  void fill(BlockUpdate& update) {
    update.block = up_to(std::uint64_t{1} << 41);
    fill(update.content);
  }
  void fill(ConvertUpdate& update) {
    update.block = up_to(std::uint64_t{1} << 41);
    fill(update.content);
    for (std::size_t i = 0; i < update.content.pieces.size(); ++i) {
      update.log_offsets.push_back(random_() >> 1);
    }
  }
  void fill(store::EncodedBlock& block) {
    block.number = up_to(std::uint64_t{1} << 41);
    fill(block.bytes);
    fill(block.checksum);
  }
  void fill(store::BlockSummary& block) {
    block.number = up_to(std::uint64_t{1} << 41);
    fill(block.length);
    fill(block.checksum);
  }
  void fill(Convert& convert) {
    fill(convert.identity);
    convert.node = static_cast<NodeIndex>(up_to(kNoNode));
    fill(convert.log);
    fill(convert.updates);
  }
  void fill(store::CommitRecord& record) {
    fill(record.identity);
    fill(record.attempt);
    fill(record.path);
    record.number = up_to(10);
    record.stores.resize(up_to(3));
    for (store::StoreEntry& entry : record.stores) fill(entry);
  }
  void fill(store::SharedRecord& record) {
    store::CommitRecord of;
    fill(of);
    record = std::move(of);
  }
  void fill(GetRecordReply& reply) {
    if (up_to(3) != 0) fill(reply.record.emplace());
  }
  void fill(NamedChunk& chunk) {
    fill(chunk.fingerprint);
    chunk.length = static_cast<std::uint32_t>(1 + up_to(100));
  }
  void fill(ChunksReply& reply) {
    std::vector<NamedChunk> asked;
    fill(asked);
    reply = ChunksReply(asked);
    for (const auto room : reply.room(asked)) {
      for (std::byte& byte : room) fill(byte);
    }
    if (!asked.empty()) reply.leave_out(asked, std::vector{up_to(asked.size())});
  }
  void fill(LookReply& reply) {
    fill(reply.base);
    for (auto* placements : {&reply.placements, &reply.committed}) {
      fill(*placements);
      fill(placements->emplace_back());
    }
    const auto number_in = [&](const std::vector<plan::Placement>& placements) {
      return static_cast<std::uint32_t>(up_to(placements.size()));
    };
    fill(reply.held);
    for (const Held held : reply.held) {
      if (held == Held::kNot) continue;
      fill(reply.found.emplace_back());
      reply.found.back().placement =
          number_in(held == Held::kSince ? reply.placements : reply.committed);
    }
  }
  void fill(References& request) {
    fill(request.identity);
    fill(request.attempt);
    fill(request.placements);
    fill(request.placements.emplace_back());
    fill(request.chunks);
    for (Reference& chunk : request.chunks) {
      chunk.placement = static_cast<std::uint32_t>(up_to(request.placements.size()));
    }
  }
  void fill(Look& request) {
    fill(request.identity);
    fill(request.round);
    fill(request.searched);
    fill(request.names);
    for (std::size_t i = 0; i < request.names.size(); ++i) request.shared.push_back(up_to(2) == 1);
  }
  void fill(Claim& request) {
    fill(request.identity);
    fill(request.fingerprints);
    fill(request.round);
    if (up_to(2) == 0) request.yields.assign(request.fingerprints.size(), 1);
  }
  void fill(Register& request) { fill_with_placements(request); }
  void fill(PutChunks& request) { fill_with_placements(request); }
  void fill(Restore& request) {
    fill_with_placements(request);
    fill(request.in_background);
    fill(request.bytes_per_second);
    fill(request.sources);
    fill(request.sources.emplace_back());
    for (RestoreChunk& chunk : request.chunks) {
      chunk.sources = static_cast<std::uint32_t>(up_to(request.sources.size()));
    }
  }
  void fill(RestoreChunk& chunk) {
    fill(chunk.fingerprint);
    chunk.length = static_cast<std::uint32_t>(1 + up_to(100));
  }
  void fill(PutChunk& chunk) {
    fill(chunk.fingerprint);
    fill(chunk.seal);
    Bytes data(1 + up_to(100));
    for (std::byte& byte : data) fill(byte);
    chunk.data = std::move(data);
  }
  void fill(MakeUnits& request) {
    fill(request.identity);
    fill(request.attempt);
    fill(request.wanted);
    request.data = static_cast<std::uint8_t>(1 + up_to(63));
    fill(request.looks_at_all);
    fill(request.stores);
  }
  void fill(UnitShare& share) {
    fill(share.stripe);
    share.data = static_cast<std::uint8_t>(1 + up_to(60));
    share.bytes = static_cast<std::uint32_t>(up_to(kMaxChunkSize));
    share.live = static_cast<std::uint32_t>(up_to(share.bytes + 1));
  }
  void fill(FindPlacementsReply& reply) {
    fill(reply.placements);
    fill(reply.placements.emplace_back());
    for (auto i = up_to(5); i > 0; --i) {
      reply.of.push_back(static_cast<std::uint32_t>(up_to(reply.placements.size())));
    }
  }
  void fill(ReadLog& request) {
    fill(request.identity);
    fill(request.log);
    request.offset = random_() >> 1;
    request.length = static_cast<std::uint32_t>(up_to(kPayload));
  }

 private:
  void fill_rest(Lease& lease) {
    lease.node = static_cast<NodeIndex>(up_to(kNoNode));
    fill(lease.log);
    fill(lease.slot);
    lease.serial = 1 + up_to(~std::uint64_t{0});
  }
  template <typename Request>
  void fill_with_placements(Request& request) {
    fill(request.identity);
    fill(request.placements);
    fill(request.placements.emplace_back());
    fill(request.chunks);
    for (auto& chunk : request.chunks) {
      chunk.placement = static_cast<std::uint32_t>(up_to(request.placements.size()));
    }
  }

  std::mt19937_64 random_;
};

// ---- All messages -----------------------------------------------------------------------------

template <typename... T>
struct List {};
using Requests =
    List<OpenBegin, OpenEnd, CloseBegin, CloseEnd, GetFile, GetSize, ExtendSize, SetSize, Lock,
         Unlock, SharedAdd, SharedSet, CommitDone, NextGeneration, SetAside, BeginWriteBack,
         TellWritten, StopWriteBack, WriteLog, WriteChunks, Convert, Truncate, Resolve, InstallBase,
         Snapshot, EndCommit, ReturnLease, Find, GetRecord, Attach, Detach, Adopt, Drop, Space,
         OpenSegment, OpenLog, Look, Claim, Register, Release, ForgetSegment, Distrust, Locate,
         GetChunks, PutChunks, ReadLog, ListShard, ReadShard, PutShard, References, WriteIndex,
         Prepare, Commit, Abort, Collect, RecallLease, Restore, ListShares, MakeUnits, ListUnits,
         JoinStripes, FindPlacements, PutWritten, ListWritten, PutCached, LendSegment, AwaitWriter,
         AskWriters, HoldGeneration, LetGo>;

// Decodes from `exact`, which becomes a copy of the bytes of exactly that size, so that the
// sanitizer sees a read beyond it, and in which the message may stand.
template <typename Message>
bool decodes(std::span<const std::byte> bytes, Message& message, Bytes& exact) {
  exact = Bytes(bytes.begin(), bytes.end());
  Decoder decoder(exact);
  message = get_fields<Message>(decoder);
  return decoder.ok() && decoder.at_end();
}
template <typename Message>
bool decodes(std::span<const std::byte> bytes, Message& message) {
  Bytes exact;
  return decodes(bytes, message, exact);
}

// Two messages of one type, `message` and `back`.
class Pair {
 public:
  virtual ~Pair() = default;
  virtual void fill(Random& random) = 0;  // message
  virtual Bytes encode() const = 0;       // message
  virtual Bytes encode_back() const = 0;  // back
  virtual bool decode_back(std::span<const std::byte> bytes) = 0;
  virtual bool decode(std::span<const std::byte> bytes) = 0;
  virtual bool equal_pair() const = 0;
  virtual std::size_t allocated_by_back() const = 0;
};

template <typename Message>
class PairOf : public Pair {
 public:
  void fill(Random& random) override {
    message_ = {};
    random.fill(message_);
  }
  Bytes encode() const override { return encoded(message_); }
  Bytes encode_back() const override { return encoded(back_); }
  bool decode_back(std::span<const std::byte> bytes) override {
    return decodes(bytes, back_, back_bytes_);
  }
  bool decode(std::span<const std::byte> bytes) override {
    return decodes(bytes, message_, message_bytes_);
  }
  bool equal_pair() const override { return equal(message_, back_); }
  std::size_t allocated_by_back() const override { return allocated(back_); }

 private:
  Message message_;
  Message back_;
  Bytes message_bytes_;
  Bytes back_bytes_;
};

template <typename... Request, typename F>
void for_each_message(List<Request...>, F&& f) {
  const auto call = [&](const char* name, std::unique_ptr<Pair> pair) {
    SCOPED_TRACE(name);
    f(*pair);
  };
  const auto both = [&]<typename R>() {
    call(typeid(R).name(), std::make_unique<PairOf<R>>());
    call(typeid(typename R::Reply).name(), std::make_unique<PairOf<typename R::Reply>>());
  };
  (both.template operator()<Request>(), ...);
}

TEST(Messages, ComeBackAsTheyWere) {
  Random random(1);
  for_each_message(Requests(), [&](Pair& pair) {
    for (int i = 0; i < 100; ++i) {
      pair.fill(random);
      ASSERT_TRUE(pair.decode_back(pair.encode()));
      ASSERT_TRUE(pair.equal_pair());
    }
  });
}

TEST(Messages, FailWhereverTheyAreCutOff) {
  Random random(2);
  for_each_message(Requests(), [&](Pair& pair) {
    for (int i = 0; i < 10; ++i) {
      pair.fill(random);
      const Bytes bytes = pair.encode();
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        ASSERT_FALSE(pair.decode_back(std::span(bytes).first(size))) << size;
      }
    }
  });
}

TEST(Messages, SurviveCorruption) {
  Random random(3);
  for_each_message(Requests(), [&](Pair& pair) {
    for (int i = 0; i < 400; ++i) {
      pair.fill(random);
      Bytes bytes = pair.encode();
      if (bytes.empty()) continue;
      if (i % 2 == 0) {  // a huge number somewhere, perhaps a count or length
        const std::size_t at = random.up_to(bytes.size());
        for (std::size_t k = at; k < std::min(at + 4, bytes.size()); ++k) bytes[k] = std::byte{255};
      } else {
        for (int k = 0; k < 3; ++k) random.fill(bytes[random.up_to(bytes.size())]);
      }
      const bool ok = pair.decode_back(bytes);
      EXPECT_LE(pair.allocated_by_back(), 64 * bytes.size() + 4096);
      if (!ok) continue;
      // What is accepted is what it says: it can be sent on.
      EXPECT_TRUE(pair.decode(pair.encode_back()));
      EXPECT_TRUE(pair.equal_pair());
    }
  });
}

template <typename... Request>
std::set<Opcode> opcodes(List<Request...>) {
  return {Request::kOpcode...};
}

TEST(Messages, HaveAnOpcodeEach) {
  const std::set<Opcode> all = opcodes(Requests());
  EXPECT_EQ(all.size(), 70u);
  EXPECT_TRUE(all.contains(Opcode::kSetAside) && all.contains(Opcode::kEndCommit) &&
              all.contains(Opcode::kCollect));
}

// ---- What is impossible -----------------------------------------------------------------------

Block one_chunk() {
  Block block;
  Piece piece;
  piece.begin = 100;
  piece.length = 50;
  piece.chunk_offset = 10;
  piece.chunk_length = 70;
  plan::insert(block, piece, plan::Placement::copies_on({0, 3}));
  return block;
}

bool accepted(const Block& block, std::uint64_t number = 0) {
  WriteChunks back;
  return decodes(encoded(WriteChunks{{}, {{number, block}}}), back);
}

TEST(Messages, ImpossibleBlocksAreRefused) {
  EXPECT_TRUE(accepted(one_chunk()));
  EXPECT_TRUE(accepted(one_chunk(), (std::uint64_t{1} << 41) - 1));
  EXPECT_FALSE(accepted(one_chunk(), std::uint64_t{1} << 41));
  const auto with = [](auto&& change) {
    Block block = one_chunk();
    change(block, block.pieces[0]);
    return accepted(block);
  };
  EXPECT_FALSE(with([](Block&, Piece& piece) { piece.length = 0; }));
  EXPECT_FALSE(with([](Block&, Piece& piece) { piece.length = 61; }));
  EXPECT_FALSE(with([](Block&, Piece& piece) { piece.chunk_offset = 0xffffffff; }));
  EXPECT_FALSE(with([](Block&, Piece& piece) { piece.chunk_length = kMaxChunkSize + 1; }));
  EXPECT_FALSE(with([](Block&, Piece& piece) { piece.begin = kBlockSpan - 49; }));
  EXPECT_TRUE(with([](Block&, Piece& piece) { piece.begin = kBlockSpan - 50; }));
  EXPECT_FALSE(with([](Block&, Piece& piece) { piece.begin = 0xfffffff0; }));
  EXPECT_FALSE(with([](Block&, Piece& piece) { piece.placement = 1; }));
  EXPECT_FALSE(with([](Block& block, Piece&) { block.placements.clear(); }));
  // Its placement, on nodes 0 and 3, is of a kind that is not known.
  Bytes bytes = encoded(WriteChunks{{}, {{0, one_chunk()}}});
  const Bytes placement{std::byte{2}, std::byte{0}, std::byte{2}};
  const Bytes kind_1{std::byte{0x81}, std::byte{0x80}, std::byte{4}};
  const auto at = std::search(bytes.begin(), bytes.end(), placement.begin(), placement.end());
  ASSERT_NE(at, bytes.end());
  std::copy(kind_1.begin(), kind_1.end(), at);
  WriteChunks unknown;
  EXPECT_FALSE(decodes(bytes, unknown));
  const auto with_next_at = [](std::uint32_t begin) {
    Block block = one_chunk();
    Piece zeros;
    zeros.begin = begin;
    zeros.length = 1;
    block.pieces.push_back(zeros);
    return accepted(block);
  };
  EXPECT_TRUE(with_next_at(150));
  EXPECT_FALSE(with_next_at(149));
  EXPECT_FALSE(with_next_at(0));
}

TEST(Messages, ImpossibleFieldsAreRefused) {
  const auto refused = [](const auto& message) {
    std::remove_cvref_t<decltype(message)> back;
    return !decodes(encoded(message), back);
  };
  EXPECT_FALSE(refused(Resolve{{}, {{kBlockSpan, kBlockSpan}}}));
  EXPECT_TRUE(refused(Resolve{{}, {{kBlockSpan + 1, kBlockSpan}}}));
  EXPECT_TRUE(refused(Resolve{{}, {{kBlockSpan, 0}}}));
  EXPECT_TRUE(refused(Resolve{{}, {{std::uint64_t{1} << 63, 1}}}));
  EXPECT_FALSE(refused(WriteLog{{}, {{0, {0, kBlockSpan, 0, 1, 0}}}}));
  EXPECT_TRUE(refused(WriteLog{{}, {{0, {1, kBlockSpan, 0, 1, 0}}}}));
  EXPECT_TRUE(refused(WriteLog{{}, {{0, {0, 0, 0, 1, 0}}}}));
  EXPECT_TRUE(refused(WriteLog{{}, {{0, {0, 1, kNoNode, 1, 0}}}}));
  EXPECT_FALSE(refused(ExtendSize{{}, 1, {0, 0, 1, 0, 1}}));
  EXPECT_TRUE(refused(ExtendSize{{}, 1, {0, 0, 1, 0, 0}}));
  EXPECT_TRUE(refused(ExtendSize{{}, 1, {0, kNoNode, 1, 0, 1}}));
  EXPECT_TRUE(refused(RecallLease{{}, {}}));
  EXPECT_TRUE(refused(ReturnLease{{}, {}, {}, false}));
  EXPECT_FALSE(refused(Convert{{}, 0, 1, {{0, one_chunk(), {5}}}}));
  EXPECT_TRUE(refused(Convert{{}, kNoNode, 1, {{0, one_chunk(), {5}}}}));
  EXPECT_TRUE(refused(Convert{{}, 0, 1, {{0, one_chunk(), {}}}}));
  const auto on_two = plan::Placement::copies_on({0, 3});
  using enum Held;
  EXPECT_TRUE(refused(LookReply{{}, {on_two}, {on_two}, {kSince, kNot}, {}}));
  EXPECT_TRUE(refused(LookReply{{}, {on_two}, {}, {kSince}, {{0, 1}}}));
  EXPECT_TRUE(refused(LookReply{{}, {on_two}, {}, {kCommitted}, {{0, 0}}}));
  EXPECT_TRUE(refused(LookReply{{}, {}, {on_two}, {kSince}, {{0, 0}}}));
  EXPECT_TRUE(refused(LookReply{{}, {on_two}, {}, {kNot}, {{0, 0}}}));
  EXPECT_FALSE(
      refused(LookReply{{}, {on_two}, {on_two}, {kSince, kCommitted, kNot}, {{0, 0}, {7, 0}}}));
  EXPECT_TRUE(refused(References{{}, {}, {on_two}, {{{}, 1}}}));
  EXPECT_FALSE(refused(References{{}, {}, {on_two}, {{{}, 0}}}));
  EXPECT_TRUE(refused(Look{{}, {}, {}, {{}, {}}, {1}}));
  EXPECT_FALSE(refused(Look{{}, {}, {}, {{}, {}}, {1, 0}}));
  EXPECT_TRUE(refused(ClaimReply{{2}}));
  EXPECT_TRUE(refused(Claim{{}, {{}, {}}, {}, {1}}));
  EXPECT_FALSE(refused(Claim{{}, {{}, {}}, {}, {1, 0}}));
  const auto on_node_0 = plan::Placement::copies_on({0});
  EXPECT_TRUE(refused(Register{{}, {on_node_0}, {{{}, {}, 1}}}));
  EXPECT_TRUE(refused(PutChunks{{}, {on_node_0}, {PutChunk::sealed({}, 1, Bytes(1))}}));
  EXPECT_TRUE(refused(PutChunks{{}, {on_node_0}, {PutChunk::sealed({}, 0, {})}}));
  EXPECT_FALSE(refused(Restore{{}, false, 0, {on_node_0}, {on_node_0}, {{{}, 1, 0, 0}}}));
  EXPECT_TRUE(refused(Restore{{}, false, 0, {on_node_0}, {on_node_0}, {{{}, 1, 1, 0}}}));
  EXPECT_TRUE(refused(Restore{{}, false, 0, {on_node_0}, {on_node_0}, {{{}, 1, 0, 1}}}));
  EXPECT_TRUE(refused(Restore{{}, false, 0, {on_node_0}, {on_node_0}, {{{}, 0, 0, 0}}}));
  EXPECT_TRUE(refused(Lock{{}, static_cast<LockKind>(3), {}}));
  EXPECT_TRUE(refused(ReadLog{{}, 1, 0, std::uint32_t{kMaxMessage} + 1}));
}

// ---- Homes ------------------------------------------------------------------------------------

TEST(Homes, AreSpreadOverTheNodes) {
  constexpr NodeIndex kNodes = 7;
  std::vector<int> files(kNodes);
  std::vector<int> first_blocks(kNodes);
  Random random(4);
  for (int i = 0; i < 7000; ++i) {
    const std::string path = "/scratch/run/checkpoint." + std::to_string(i);
    const NodeIndex home = file_home(path, kNodes);
    ASSERT_LT(home, kNodes);
    EXPECT_EQ(home, file_home(path, kNodes));
    ++files[home];
    Id128 identity;
    random.fill(identity);
    ASSERT_LT(block_home(identity, 0, kNodes), kNodes);
    ++first_blocks[block_home(identity, 0, kNodes)];
    // Neighbours go round the nodes.
    const std::uint64_t block = random.up_to(std::uint64_t{1} << 41);
    EXPECT_EQ((block_home(identity, block, kNodes) + 1) % kNodes,
              block_home(identity, block + 1, kNodes));
  }
  for (int count : files) EXPECT_NEAR(count, 1000, 200);
  for (int count : first_blocks) EXPECT_NEAR(count, 1000, 200);
  EXPECT_EQ(file_home("/f", 1), 0);
  EXPECT_EQ(block_home({}, 99, 1), 0);
  // The same on every rank, whatever machine it is on.
  Id128 identity;
  identity.bytes = {1, 2};
  EXPECT_EQ(block_home(identity, 0, 1000), 513);
}

}  // namespace
}  // namespace dedup::service
