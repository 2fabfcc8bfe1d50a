// Requests and replies: what decodes is encoded as it was; and a node that is asked whatever
// decodes, in whatever order, answers or refuses.

#include <tuple>

#include "base/fields.h"
#include "hints/hints.h"
#include "service/executor.h"
#include "service/messages/block_home.h"
#include "service/messages/file_home.h"
#include "service/messages/store_node.h"
#include "service/server.h"
#include "store/format.h"
#include "store/shard.h"
#include "test/fuzz_formats/targets.h"
#include "test/unit/shard_helpers.h"

namespace dedup::fuzz {
namespace {

using namespace service;  // every message there is

template <typename... Requests>
struct List {};
using All =
    List<OpenBegin, OpenEnd, CloseBegin, CloseEnd, GetFile, GetSize, ExtendSize, SetSize, Lock,
         Unlock, SharedAdd, SharedSet, CommitDone, NextGeneration, SetAside, WriteLog, ReturnLease,
         RecallLease, WriteChunks, Convert, Truncate, Resolve, InstallBase, Snapshot, EndCommit,
         Find, Attach, Detach, Adopt, Drop, Space, OpenSegment, OpenLog, Look, Claim, Register,
         Release, Locate, GetChunks, PutChunks, ReadLog, ListShard, ReadShard, PutShard, References,
         Prepare, Commit, Abort, Collect, Distrust, Restore, GetRecord, HoldGeneration, LetGo>;

// Calls work.operator()<Request>() for the request with that opcode.
template <typename Work, typename... Requests>
void for_opcode(std::uint8_t opcode, List<Requests...>, Work&& work) {
  (void)((static_cast<std::uint8_t>(Requests::kOpcode) == opcode
              ? (work.template operator()<Requests>(), true)
              : false) ||
         ...);
}

template <typename Message>
void check_message(Input bytes) {
  Decoder decoder(bytes);
  const auto message = get_fields<Message>(decoder);
  if constexpr (requires(Message & m) { Message::from_body(Bytes(), m); }) {
    Message received;
    require(Message::from_body(Bytes(bytes.begin(), bytes.end()), received) ==
                (decoder.ok() && decoder.at_end()),
            "a message is the same without a copy");
  }
  if (!decoder.ok()) return;
  const Bytes again = encoded(message);
  Decoder second(again);
  const auto twice = get_fields<Message>(second);
  require(second.ok() && second.at_end() && encoded(twice) == again,
          "a message is encoded as it was");
}

// The input: an opcode, then a request and the reply to one, the same bytes.
void run_decode(Input input) {
  Choices choices(input);
  const auto opcode = choices.number<std::uint8_t>();
  const Input rest = choices.rest();
  for_opcode(opcode, All{}, [&]<typename Request>() {
    check_message<Request>(rest);
    check_message<typename Request::Reply>(rest);
  });
}

// ---- A node's handler -------------------------------------------------------------------------

// Of few files and few attempts, so that requests are about the same ones.
void confine(Id128& id) {
  id = some_id(id.bytes[0] % 4);
}
void confine(FileInfo& info) {
  confine(info.identity);
}
void confine(store::ShardBase& base) {
  if (!base.attempt.is_zero()) confine(base.attempt);
}
template <typename Request>
void confine(Request& request) {
  if constexpr (requires { request.identity; }) confine(request.identity);
  if constexpr (requires { request.attempt; }) confine(request.attempt);
  if constexpr (requires { request.base.is_zero(); }) {
    if (!request.base.is_zero()) confine(request.base);
  } else if constexpr (requires { request.base; }) {
    confine(request.base);
  }
  if constexpr (requires { request.handle; }) confine(request.handle);
  if constexpr (requires { request.owner; }) confine(request.owner);
  if constexpr (requires { request.info; }) confine(request.info);
  // Nothing outside of the test's directory is touched.
  if constexpr (requires { request.store_template; }) {
    request.store_template = kDirectory + "/node";
  }
  if constexpr (requires { request.path; }) {
    request.path = kDirectory + "/file" + std::to_string(request.path.size() % 2);
  }
  // The record's digest is left out in the input.
  if constexpr (requires { request.record; }) {
    Bytes sealed = request.record;
    const store::Digest digest = store::format::sha256(sealed);
    const auto tail = std::as_bytes(std::span(digest));
    sealed.insert(sealed.end(), tail.begin(), tail.end());
    auto record = store::CommitRecord::decode(sealed);
    if (record.is_ok()) {
      confine(record->identity);
      confine(record->attempt);
      request.record = record->encode();
    }
  }
}

struct Answer {
  std::size_t asked = 0;
  std::size_t answered = 0;
};

template <typename Request>
class Answered : public Responder {
 public:
  Answered(Answer& answer, ConnectionId connection) : answer_(answer), connection_(connection) {
    ++answer_.asked;
  }
  ConnectionId connection() const override { return connection_; }
  void reply(const Status& status, Bytes body) override {
    ++answer_.answered;
    require(answer_.answered <= answer_.asked, "a request is answered once");
    if (!status.is_ok()) {
      require(!status.message().empty(), "an error says what is wrong");
      return;
    }
    require(decoded<typename Request::Reply>(body).has_value(), "a node's reply can be decoded");
  }

 private:
  Answer& answer_;
  ConnectionId connection_;
};

constexpr std::size_t kMostRequests = 40;

// The input: requests, each its opcode, 16 bits of length, its body. Opcode 0: a connection ends.
void run_node(Input input) {
  Answer answer;
  Executor executor({.run = Executor::Run::kByHand});
  const auto handler = make_node_handler("n", 0, 2, executor);
  Choices choices(input);
  for (std::size_t i = 0; i < kMostRequests && !choices.at_end(); ++i) {
    const auto opcode = choices.number<std::uint8_t>();
    const Input body = choices.take(choices.number<std::uint16_t>());
    const ConnectionId connection = 1 + i % 2;
    if (opcode == 0) handler->closed(connection);
    for_opcode(opcode, All{}, [&]<typename Request>() {
      Decoder decoder(body);
      auto request = get_fields<Request>(decoder);
      Bytes bytes(body.begin(), body.end());
      if (decoder.ok()) {
        confine(request);
        bytes = encoded(request);
      }
      handler->handle(Request::kOpcode, bytes,
                      std::make_unique<Answered<Request>>(answer, connection));
    });
    while (i % 3 == 0 && executor.run_one()) {
    }
  }
}

// What a job of one node does with a file.
class Script {
 public:
  template <typename Request>
  Script& ask(const Request& request) {
    const Bytes body = encoded(request);
    out_.put(static_cast<std::uint8_t>(Request::kOpcode));
    out_.put(static_cast<std::uint16_t>(body.size()));
    out_.put_raw(body.data(), body.size());
    return *this;
  }
  Bytes take() { return out_.take(); }

 private:
  Encoder out_;
};

const Id128 kFile = some_id(0);
const Id128 kAttempt = some_id(1);

Script opened() {
  FileInfo info;
  info.identity = kFile;
  info.stores = {{some_id(2), "n"}, {some_id(3), "m"}};
  info.writable = true;
  Script script;
  script.ask(OpenBegin{"/f"}).ask(Find{"/f", {}, "s", {}});
  script.ask(Attach{kFile, "/f", "s", {}, true, true, true});
  return script.ask(OpenEnd{"/f", true, some_id(0), info});
}

Script written() {
  Script script = opened();
  const Bytes data(600, std::byte{5});
  script.ask(Lock{kFile, LockKind::kDump, some_id(1)})
      .ask(Claim{kFile, {some_fingerprint(1)}, {some_id(1), 1}, {1}});
  script.ask(PutChunks{kFile,
                       {plan::Placement::copies_on({0, 1})},
                       {PutChunk::sealed(some_fingerprint(1), 0, data)}});
  Block block{{{0, 600, 0, 600, 0, some_fingerprint(1)}}, {plan::Placement::copies_on({0, 1})}};
  script.ask(WriteChunks{kFile, {{0, block}}, false}).ask(ExtendSize{kFile, 600});
  script.ask(Unlock{kFile, LockKind::kDump, some_id(1)});
  return script.ask(Resolve{kFile, {{0, 600}}});
}

Script committed() {
  Script script = written();
  script.ask(Lock{kFile, LockKind::kCommit, some_id(1)}).ask(Snapshot{kFile, kAttempt, 0});
  Block block{{{0, 600, 0, 600, 0, some_fingerprint(1)}}, {plan::Placement::copies_on({0})}};
  const test::EncodedBlocks shard{{0, store::encode_block(block)}};
  script.ask(test::put_of(kFile, kAttempt, 0, shard));
  script.ask(
      References{kFile, kAttempt, {plan::Placement::copies_on({0})}, {{some_fingerprint(1), 0}}});
  store::CommitRecord record;
  record.identity = kFile;
  record.number = 1;
  record.attempt = kAttempt;
  record.path = "/f";
  record.size = 600;
  record.stores = {{some_id(2), "n"}};
  record.shards = {{test::digest_of(kFile, kAttempt, 0, shard), {0}}};
  record.lineage = {{some_id(1), 1}};
  Bytes bytes = record.encode();
  bytes.resize(bytes.size() - sizeof(store::Digest));
  script.ask(WriteIndex{kFile, kAttempt, true, kAttempt, false}).ask(ForgetSegment{kFile, 1});
  script.ask(Prepare{kFile, bytes, true}).ask(Commit{kFile, kAttempt, true});
  script.ask(CommitDone{kFile, bytes, {{some_id(2), "n"}, {some_id(3), "m"}}});
  script.ask(EndCommit{kFile, kAttempt, true}).ask(Collect{kFile, kAttempt});
  script.ask(Unlock{kFile, LockKind::kCommit, some_id(1)});
  script.ask(GetChunks{kFile, {{some_fingerprint(1), 100}}})
      .ask(Look{
          kFile, {some_id(1), 1}, kAttempt, {some_fingerprint(1), some_fingerprint(2)}, {1, 0}});
  const store::Digest& digest = record.shards[0].digest;
  script.ask(ListShard{kFile, kAttempt, 0, digest, 0});
  script.ask(ReadShard{kFile, kAttempt, 0, digest, {0}});
  // The next one's, in which the block stays.
  const auto block_0 = store::summary_of(store::with_checksum(0, shard.at(0)));
  return script.ask(PutShard{kFile, some_id(2), 0, {kAttempt, digest}, true, true, {}, {block_0}});
}

std::vector<Bytes> node_seeds() {
  Script closed = committed();
  closed.ask(InstallBase{kFile, kAttempt, {}, {}}).ask(CloseBegin{kFile, some_id(0)});
  closed.ask(Detach{kFile, true, {some_id(3)}}).ask(CloseEnd{kFile});
  Script logged = opened();
  logged.ask(OpenLog{kFile}).ask(WriteLog{kFile, {{0, {0, 8, 0, 1, 72}}}});
  Block block{{{0, 8, 0, 8, 0, some_fingerprint(2)}}, {plan::Placement::copies_on({0})}};
  logged.ask(Convert{kFile, 0, 1, {{0, block, {72}}}}).ask(Truncate{kFile, 4});
  const Lease lease{0, 0, 1, 0, 1};
  logged.ask(WriteLog{kFile, {{0, {0, 8, 0, 1, 80}}}, lease}).ask(ExtendSize{kFile, 8, lease});
  logged.ask(RecallLease{kFile, lease}).ask(ReturnLease{kFile, lease, {{0, 8, 0, 1, 88}}, true});
  logged.ask(ReadLog{kFile, 1, 72, 8}).ask(Resolve{kFile, {{0, 8}}}).ask(SetSize{kFile, 4});
  Script aside = opened();
  aside.ask(SharedAdd{kFile, some_id(0), 5}).ask(SharedSet{kFile, some_id(0), 9});
  aside.ask(OpenBegin{"/f"}).ask(SetAside{kFile, true}).ask(OpenEnd{"/f", false, {}, {}});
  aside.ask(Space{kFile, 1 << 20}).ask(Abort{kFile, kAttempt}).ask(Drop{"s", some_id(2), {}});
  aside.ask(HoldGeneration{some_id(7), kFile, kAttempt, some_id(8), {"s"}}).ask(LetGo{some_id(7)});
  aside.ask(OpenSegment{kFile, 1})
      .ask(OpenSegment{kFile})
      .ask(Locate{kFile, {some_fingerprint(1)}});
  aside.ask(
      Register{kFile, {plan::Placement::copies_on({0})}, {{some_fingerprint(1), {1, 64, 600}, 0}}});
  aside.ask(Restore{kFile,
                    false,
                    0,
                    {plan::Placement::copies_on({1})},
                    {plan::Placement::copies_on({0, 1})},
                    {{some_fingerprint(1), 600, 0, 0}}});
  aside.ask(Release{kFile, {some_fingerprint(1)}}).ask(GetFile{kFile}).ask(GetSize{kFile});
  return {written().take(), committed().take(), closed.take(), logged.take(), aside.take()};
}

// Each request of the node's seeds by itself.
std::vector<Bytes> decode_seeds() {
  std::vector<Bytes> seeds;
  for (const Bytes& script : node_seeds()) {
    Choices choices(script);
    while (!choices.at_end()) {
      Encoder seed;
      seed.put(choices.number<std::uint8_t>());
      const Input body = choices.take(choices.number<std::uint16_t>());
      seed.put_raw(body.data(), body.size());
      if (seed.size() > 1) seeds.push_back(seed.take());
    }
  }
  return seeds;
}

}  // namespace

std::span<const Target> message_targets() {
  static const Target targets[] = {{"messages", run_decode, decode_seeds},
                                   {"node", run_node, node_seeds}};
  return targets;
}

}  // namespace dedup::fuzz
