#include "engine/mpi/agreement.h"

#include "base/fields.h"
#include "base/xxh3.h"
#include "engine/mpi/checked_message.h"
#include "hints/hints.h"

namespace dedup::engine {

Status agree(MPI_Comm comm, const Status& mine, Waiting waiting) {
  return CommRanks(comm).agree(mine, waiting);
}

Status agree_max(MPI_Comm comm, const Status& mine, std::uint64_t& value, Waiting waiting) {
  return CommRanks(comm).agree_max(mine, value, waiting);
}

Status agree_same(MPI_Comm comm, const std::string& what, const std::string& text,
                  std::uint64_t* value) {
  const std::uint64_t hash = XXH3_64bits(text.data(), text.size());
  // The largest of the hashes is the smallest too if all are equal.
  const auto largest = all_max<3>(comm, {hash, ~hash, value == nullptr ? 0 : *value});
  if (largest[0] == ~largest[1]) {
    if (value != nullptr) *value = largest[2];
    return Status::ok();
  }
  Bytes bytes = encoded(text);
  broadcast(comm, 0, bytes);
  const std::string first = decoded<std::string>(bytes).value_or("");
  Status mine;
  if (first != text) {
    mine = Status(Code::kNotSame, what + ": " + hints::first_difference(first, text));
  }
  return agree(comm, mine);
}

std::uint64_t all_max(MPI_Comm comm, std::uint64_t value) {
  return CommRanks(comm).largest(value);
}

std::uint64_t all_sum(MPI_Comm comm, std::uint64_t value) {
  CommRanks(comm).sum({&value, 1});
  return value;
}

}  // namespace dedup::engine
