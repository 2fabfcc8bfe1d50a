// What goes over a connection between a client and a service: the handshake and frames.
//
// Handshake, all sizes fixed:
//   server: magic (8 bytes), nonce (32)
//   client: nonce (32), HMAC-SHA256(secret, "dedup client" | both nonces | server's name)
//   server: HMAC-SHA256(secret, "dedup server" | both nonces | server's name)
// The server's name is what its peers were told of it, port and addresses: a client that reached
// another host's service (an address may mean different hosts in different places) sees it by the
// proof. Either side closes at once when a proof is wrong. Then frames, one request at a time:
//   u32 bytes in the body; u32 opcode of a request, code of a reply; MAC (16 bytes, frame_mac.h);
//   u64 XXH3 of the 24 bytes before; body: a reply's is the reply or the error's text
// The header has a checksum of its own since a length is believed before the body is there. Either
// side closes the connection on a frame that does not hold: nothing of it is used.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"
#include "service/client.h"
#include "store/segment.h"

namespace dedup::service {

using Nonce = std::array<std::uint8_t, 32>;
using Proof = std::array<std::uint8_t, 32>;
using Mac = std::array<std::byte, 16>;

inline constexpr std::size_t kMagicSize = 8;
inline constexpr char kMagic[kMagicSize + 1] = "dedup:\n\2";
inline constexpr std::size_t kHelloSize = kMagicSize + sizeof(Nonce);
inline constexpr std::size_t kAnswerSize = sizeof(Nonce) + sizeof(Proof);
inline constexpr std::size_t kHeaderSize = 32;

Nonce make_nonce();

enum class Role { kClient, kServer };
// False if the proof cannot be computed (out of memory, or the process is exiting).
bool make_proof(const Secret& secret, Role role, const Nonce& server, const Nonce& client,
                const std::string& server_name, Proof& out);
// What the MACs of the frames that `sender` sends are made with; otherwise the same.
bool make_frame_key(const Secret& secret, Role sender, const Nonce& server, const Nonce& client,
                    const std::string& server_name, Proof& out);
// Takes the same time wherever the first difference is.
bool same_proof(const Proof& a, const Proof& b);
std::string server_name(const std::vector<std::string>& addresses, std::uint16_t port);

struct FrameHeader {
  std::uint32_t length = 0;  // of the body, bytes
  std::uint32_t kind = 0;    // opcode of a request, Code of a reply
  Mac mac{};                 // over length and kind, as they are sent, and the body
};
inline constexpr std::size_t kHeaderStartSize = 8;
// Length and kind.
std::array<std::byte, kHeaderStartSize> encode_start(const FrameHeader& header);
using HeaderBytes = std::array<std::byte, kHeaderSize>;
HeaderBytes encode_header(const FrameHeader& header);
// Nothing if it was damaged on its way.
std::optional<FrameHeader> decode_header(std::span<const std::byte, kHeaderSize> bytes);

using Socket = Descriptor;

// Where a numeric address and a port lead to; false if it is none.
bool parse_address(const std::string& text, std::uint16_t port, sockaddr_storage& out,
                   socklen_t& size);

// What a service is called by processes of its own host, as a socket of the abstract namespace:
// only who knows the secret can tell. Empty if it cannot be computed.
std::string host_socket_name(const Secret& secret, const std::string& server_name);
// Where such a name leads to.
void host_address(const std::string& name, sockaddr_un& out, socklen_t& size);

// No delay for small messages, and an error within about `patience` when the other host has
// vanished.
Status tune_connection(int fd, std::chrono::seconds patience);

// The result of one sendmsg or recv: bytes moved, or -1 and errno, never EINTR.
std::ptrdiff_t receive_some(int fd, std::span<std::byte> out, int flags);
// `header` and `body` from byte `sent` on, counted over both.
std::ptrdiff_t send_some(int fd, const HeaderBytes& header, std::span<const std::byte> body,
                         std::size_t sent, int flags);
// The same over a connection within this host, with a segment, which goes with the first byte. One
// that cannot be received (this process has too many files open) is not there.
std::ptrdiff_t receive_some(int fd, std::span<std::byte> out, store::LentSegment& lent);
std::ptrdiff_t send_some(int fd, const HeaderBytes& header, std::span<const std::byte> body,
                         const store::LentSegment& lent, int flags);

// Addresses under which other hosts may reach this one, numeric: of all interfaces that are up,
// without loopback and link-local ones, or only those that `wanted` (an interface's name or an
// address) names. Loopback if there are none.
Result<std::vector<std::string>> host_addresses(const std::string& wanted);

}  // namespace dedup::service
