// What makes a frame the very one that its sender sent, in that place: a message authentication
// code (GMAC, by AES-128) over the frame's length, kind and body.
//
// Each direction of a connection has a key of its own, made from the secret and both nonces, and
// counts its frames, which is the code's nonce: no frame holds twice, in another place, on another
// connection, or sent back. Made at the end of the handshake; what is made of the key is kept, so
// that a small frame costs a fraction of a microsecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/gmac.h"
#include "service/wire.h"

namespace dedup::service {

class FrameMac {
 public:
  // Of the frames that `sender` sends. Nothing if it cannot be had, as with make_proof().
  static std::optional<FrameMac> create(const Secret& secret, Role sender, const Nonce& server,
                                        const Nonce& client, const std::string& server_name);

  // The header of the sender's next frame. Nothing as above.
  std::optional<HeaderBytes> seal(std::uint32_t kind, std::span<const std::byte> body);
  // Whether this is the sender's next frame.
  bool holds(const FrameHeader& header, std::span<const std::byte> body);

 private:
  explicit FrameMac(Gmac gmac) : gmac_(std::move(gmac)) {}
  bool next(const FrameHeader& header, std::span<const std::byte> body, Mac& out);

  Gmac gmac_;
  std::uint64_t frames_ = 0;
};

// The codes of both directions, as one side sees them.
struct FrameMacs {
  FrameMac sent;
  FrameMac received;

  static std::optional<FrameMacs> create(const Secret& secret, Role self, const Nonce& server,
                                         const Nonce& client, const std::string& server_name);
};

}  // namespace dedup::service
