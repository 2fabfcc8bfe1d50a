// Frames on a connection: a server that is sent anything, before and after a sound handshake, with
// sound MACs or without, and a client whose service replies anything.
#include "service/wire.h"
#include "service/messages/file_home.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "service/frame_mac.h"
#include "service/server.h"
#include "test/fuzz_formats/targets.h"

namespace dedup::fuzz {
namespace {

using namespace service;

constexpr Secret kSecret = {1, 2, 3};

struct Echo {
  static constexpr Opcode kOpcode = static_cast<Opcode>(1);
  using Reply = Echo;
  Bytes bytes;
  void encode(Encoder& e) const { e.put_raw(bytes.data(), bytes.size()); }
  static Echo decode(Decoder& d) {
    Echo echo{Bytes(d.left())};
    d.get_raw(echo.bytes.data(), echo.bytes.size());
    return echo;
  }
};

class Echoing : public Handler {
 public:
  void handle(Opcode, std::span<const std::byte> body,
              std::unique_ptr<Responder> responder) override {
    responder->reply({}, Bytes(body.begin(), body.end()));
  }
  void closed(ConnectionId) override {}
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void send_all(const Socket& socket, std::span<const std::byte> bytes) {
  // Fails where the other side has had enough.
  (void)::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

bool receive_all(const Socket& socket, std::span<std::byte> out) {
  return recv(socket.fd(), out.data(), out.size(), MSG_WAITALL) == static_cast<ssize_t>(out.size());
}

void wait_for_end(const Socket& socket) {
  std::byte ignored[512];
  while (recv(socket.fd(), ignored, sizeof ignored, 0) > 0) {
  }
}

// Frames as they would be but for MACs and checksums: with these, so that they reach what is
// behind.
Bytes sealed(std::optional<FrameMac> mac, Input bytes) {
  require(mac.has_value(), "MACs can be made");
  Encoder out;
  while (bytes.size() >= kHeaderStartSize) {
    Decoder in(bytes);
    FrameHeader header;
    header.length = in.get<std::uint32_t>();
    header.kind = in.get<std::uint32_t>();
    bytes = bytes.subspan(kHeaderStartSize);
    const auto body = bytes.first(std::min<std::size_t>(header.length, bytes.size()));
    const auto whole = body.size() == header.length ? mac->seal(header.kind, body) : std::nullopt;
    const HeaderBytes start = whole ? *whole : encode_header(header);
    out.put_raw(start.data(), start.size());
    out.put_raw(body.data(), body.size());
    bytes = bytes.subspan(body.size());
  }
  out.put_raw(bytes.data(), bytes.size());
  return out.take();
}

// ---- The server -------------------------------------------------------------------------------

const Server& server() {
  static const std::unique_ptr<Server> started = [] {
    auto made = Server::start(kSecret, true, std::make_unique<Echoing>());
    require(made.is_ok(), "a server can be started");
    return std::move(*made);
  }();
  return *started;
}

std::optional<FrameMac> prove(const Socket& socket) {
  std::array<std::byte, kHelloSize> hello;
  require(receive_all(socket, hello), "a server says hello");
  Nonce theirs;
  std::memcpy(theirs.data(), hello.data() + kMagicSize, theirs.size());
  const Nonce mine = make_nonce();
  const std::string name = server_name(server().addresses(), server().port());
  Proof proof;
  require(make_proof(kSecret, Role::kClient, theirs, mine, name, proof), "a proof can be made");
  send_all(socket, std::as_bytes(std::span(mine)));
  send_all(socket, std::as_bytes(std::span(proof)));
  require(receive_all(socket, std::as_writable_bytes(std::span(proof))), "a server proves itself");
  return FrameMac::create(kSecret, Role::kClient, theirs, mine, name);
}

enum class Attacker { kStranger, kProven, kSealing };

void attack_server(Attacker attacker, Input bytes) {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = loopback(server().port());
  require(connect(socket.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0,
          "a server takes connections");
  std::optional<FrameMac> mac;
  if (attacker != Attacker::kStranger) mac = prove(socket);
  if (attacker == Attacker::kSealing) {
    send_all(socket, sealed(std::move(mac), bytes));
  } else {
    send_all(socket, bytes);
  }
  ::shutdown(socket.fd(), SHUT_WR);
  wait_for_end(socket);
  static Client friendly({Peer{"n", server().addresses(), server().port()}}, 0, kSecret);
  const auto reply = friendly.call(0, Echo{Bytes(5, std::byte{1})});
  require(reply.is_ok() && reply->bytes.size() == 5, "the server goes on answering others");
}

// ---- The client -------------------------------------------------------------------------------

// Answers one client's request with what it is told to, then closes.
class FalseService {
 public:
  FalseService() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    require(bind(listener_.fd(), any, size) == 0 && listen(listener_.fd(), 8) == 0 &&
                getsockname(listener_.fd(), any, &size) == 0,
            "a port can be had");
    port_ = ntohs(address.sin_port);
  }
  Peer peer() const { return {"n", {"127.0.0.1"}, port_}; }

  void answer_one(Input bytes) const {
    const Socket socket(accept(listener_.fd(), nullptr, nullptr));
    const Nonce mine = make_nonce();
    std::array<std::byte, kHelloSize> hello;
    std::memcpy(hello.data(), kMagic, kMagicSize);
    std::memcpy(hello.data() + kMagicSize, mine.data(), mine.size());
    send_all(socket, hello);
    std::array<std::byte, kAnswerSize> answer;
    require(receive_all(socket, answer), "a client proves itself");
    Nonce theirs;
    std::memcpy(theirs.data(), answer.data(), theirs.size());
    Proof proof;
    const std::string name = server_name(peer().addresses, port_);
    require(make_proof(kSecret, Role::kServer, mine, theirs, name, proof), "a proof can be made");
    send_all(socket, std::as_bytes(std::span(proof)));
    std::array<std::byte, kHeaderSize> header;
    require(receive_all(socket, header), "a client asks");
    send_all(socket, sealed(FrameMac::create(kSecret, Role::kServer, mine, theirs, name), bytes));
    ::shutdown(socket.fd(), SHUT_WR);
    wait_for_end(socket);
  }

 private:
  Socket listener_;
  std::uint16_t port_ = 0;
};

void attack_client(Input bytes) {
  static const FalseService service;
  std::thread answering([&] { service.answer_one(bytes); });
  {
    Client client({service.peer()}, 0, kSecret);
    // Nothing that would be asked again.
    const auto reply = client.call(0, ExtendSize{some_id(0)});
    if (!reply.is_ok()) require(!reply.status().message().empty(), "an error says what is wrong");
  }
  answering.join();
}

// The input: who is attacked, then what it gets.
void run_wire(Input input) {
  Choices choices(input);
  const auto who = choices.number<std::uint8_t>() % 4;
  if (who == 2) {
    attack_client(choices.rest());
  } else if (who == 1) {
    attack_server(Attacker::kSealing, choices.rest());
  } else {
    attack_server(who == 0 ? Attacker::kStranger : Attacker::kProven, choices.rest());
  }
}

Bytes seed(std::uint8_t who, std::initializer_list<FrameHeader> frames, std::size_t body) {
  Encoder out;
  out.put(who);
  for (const FrameHeader& frame : frames) {
    const auto header = encode_start(frame);
    out.put_raw(header.data(), header.size());
  }
  Bytes bytes = out.take();
  bytes.resize(bytes.size() + body);
  return bytes;
}

std::vector<Bytes> wire_seeds() {
  return {seed(0, {}, kAnswerSize),
          seed(1, {{4, 1, {}}}, 4),
          seed(1, {{0, 1, {}}, {0, 2, {}}}, 0),
          seed(1, {{1u << 28, 1, {}}}, 100),
          seed(1, {{~0u, 1, {}}}, 0),
          seed(2, {{8, 0, {}}}, 8),
          seed(2, {{5, 7, {}}}, 5),
          seed(2, {{0, 300, {}}}, 1),
          seed(2, {{1u << 20, 0, {}}}, 20),
          seed(3, {{4, 1, {}}}, 4 + kHeaderSize)};
}

}  // namespace

std::span<const Target> wire_targets() {
  static const Target targets[] = {{"wire", run_wire, wire_seeds}};
  return targets;
}

}  // namespace dedup::fuzz
