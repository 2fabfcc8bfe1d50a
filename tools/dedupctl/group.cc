#include "tools/dedupctl/group.h"

#include <cstdlib>

#include "base/codec.h"

namespace dedup::ctl {
namespace {

class GroupOfOne final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<Bytes> gather(const Bytes& mine) override { return {mine}; }
  void broadcast(int, Bytes&) override {}
  void sum(std::span<std::uint64_t>) override {}
  void minimum(std::span<std::uint64_t>) override {}
  void exchange(std::span<const Bytes> to, std::span<Bytes> from) override { from[0] = to[0]; }
};

}  // namespace

Status Group::agree(const Status& mine) {
  Encoder encoder;
  encoder.put(static_cast<std::uint32_t>(mine.code()));
  encoder.put(std::string_view(mine.message()));
  Bytes worst;
  for (Bytes& status : gather(encoder.bytes())) {
    const bool is_error = Decoder(status).get<std::uint32_t>() != 0;
    if (worst.empty() && is_error) worst = std::move(status);
  }
  broadcast(0, worst);
  if (worst.empty()) return Status::ok();
  Decoder decoder(worst);
  const auto code = static_cast<Code>(decoder.get<std::uint32_t>());
  return {code, decoder.get_string()};
}

std::unique_ptr<Group> make_group_of_one() {
  return std::make_unique<GroupOfOne>();
}

bool is_mpi_rank() {
  return std::getenv("PMI_RANK") != nullptr && std::getenv("PMI_SIZE") != nullptr;
}

}  // namespace dedup::ctl
