#include "engine/protocol/ranks.h"

#include <span>

#include "base/codec.h"

namespace dedup::engine {

Status Ranks::agree(const Status& mine, Waiting waiting) const {
  std::uint64_t nothing = 0;
  return agree_max(mine, nothing, waiting);
}

Status Ranks::share(const Status& of_rank_0, Bytes& bytes) const {
  Bytes message;
  if (rank() == 0) {
    Encoder encoder;
    put_status(encoder, of_rank_0);
    if (of_rank_0.is_ok()) encoder.put_bytes(bytes);
    message = encoder.take();
  }
  broadcast(message);
  Decoder decoder(message);
  Status status = get_status(decoder);
  if (status.is_ok() && rank() != 0) {
    const std::span<const std::byte> received = decoder.get_bytes();
    bytes.assign(received.begin(), received.end());
  }
  return status;
}

Status Ranks::share(const Status& of_rank_0) const {
  Bytes nothing;
  return share(of_rank_0, nothing);
}

void put_status(Encoder& encoder, const Status& status) {
  encoder.put(static_cast<std::uint32_t>(status.code()));
  encoder.put(std::string_view(status.message()));
}

Status get_status(Decoder& decoder) {
  const auto code = static_cast<Code>(decoder.get<std::uint32_t>());
  return {code, decoder.get_string()};
}

}  // namespace dedup::engine
