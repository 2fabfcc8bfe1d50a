#include "base/ranks.h"

#include <array>
#include <string>

namespace dedup {
namespace {

// How a status travels, and what goes with it.
struct Outcome {
  std::uint32_t code = 0;
  std::string message;
  Bytes bytes;

  Status status() const { return {static_cast<Code>(code), message}; }
};

Outcome outcome_of(const Status& status) {
  return {static_cast<std::uint32_t>(status.code()), status.message(), {}};
}

}  // namespace

void Ranks::sum(std::span<std::uint64_t> values) const {
  (void)combine(Combining::kSum, values, Waiting::kPolling);
}

void Ranks::least(std::span<std::uint64_t> values) const {
  (void)combine(Combining::kLeast, values, Waiting::kPolling);
}

std::uint64_t Ranks::largest(std::uint64_t value) const {
  (void)combine(Combining::kLargest, {&value, 1}, Waiting::kPolling);
  return value;
}

Status Ranks::agree(const Status& mine, Waiting waiting) const {
  std::uint64_t nothing = 0;
  return agree_max(mine, nothing, waiting);
}

Status Ranks::agree_max(const Status& mine, std::uint64_t& value, Waiting waiting) const {
  // The failure of a rank is the larger, the lower the rank.
  const auto failure = static_cast<std::uint64_t>(mine.is_ok() ? 0 : size() - rank());
  std::array<std::uint64_t, 2> all{failure, value};
  DEDUP_TRY(combine(Combining::kLargest, all, waiting));
  if (all[0] == 0) {
    value = all[1];
    return Status::ok();
  }
  const int failed = size() - static_cast<int>(all[0]);
  Bytes bytes;
  if (rank() == failed) bytes = encoded(outcome_of(mine));
  broadcast(bytes, failed);
  const auto outcome = decoded<Outcome>(bytes);
  return outcome ? outcome->status() : not_understood();
}

Result<std::vector<Bytes>> Ranks::gather_if_all_ok(const Status& mine, Bytes bytes) const {
  Outcome outcome = outcome_of(mine);
  outcome.bytes = std::move(bytes);
  std::vector<Bytes> all;
  for (Bytes& message : gather(encoded(outcome))) {
    auto told = decoded<Outcome>(message);
    message = {};  // there are as many as ranks
    if (!told) return not_understood();
    DEDUP_TRY(told->status());
    all.push_back(std::move(told->bytes));
  }
  return all;
}

Status Ranks::share(const Status& of_rank_0) const {
  Bytes nothing;
  return share_bytes(of_rank_0, nothing, Waiting::kPolling);
}

Status Ranks::share_bytes(const Status& of_rank_0, Bytes& bytes, Waiting waiting) const {
  Outcome outcome = outcome_of(of_rank_0);
  outcome.bytes = std::move(bytes);
  Bytes message;
  if (is_root()) message = encoded(outcome);
  if (waiting == Waiting::kPatient) {
    broadcast_patiently(message, 0);
  } else {
    broadcast(message, 0);
  }
  auto told = decoded<Outcome>(message);
  if (!told) return not_understood();
  bytes = std::move(told->bytes);
  return told->status();
}

Status Ranks::not_understood() {
  return {Code::kInternal, "one rank told the others something that cannot be"};
}

}  // namespace dedup
