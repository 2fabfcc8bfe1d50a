// Messages between ranks, each with a checksum that its sender made: what a network or memory on
// the way changed is found by who receives it.
//
// A message goes in two parts: an envelope, which says how long the message is and what its
// checksum is, and the bytes. Where the bytes are not what was sent the receiver is told so. Where
// the envelope is not, nobody knows what else to receive, and where all ranks are to go on by one
// message they would not go on alike: then the job ends, as it does when MPI itself fails
// (topology.h).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/checksum.h"
#include "base/codec.h"
#include "base/ranks.h"

namespace dedup::engine {

// Says what MPI delivered and ends the job.
void end_on_damage(const char* what);

struct Envelope {
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;  // of the bytes
  std::uint64_t own = 0;       // of the two

  static Envelope of(std::span<const std::byte> bytes);
  // Of bytes that who receives them checks otherwise.
  static Envelope of_size(std::uint64_t size);
  // Ends the job if it is not what was sent.
  void check() const;
  bool holds(std::span<const std::byte> bytes) const {
    return size == bytes.size() && checksum == message_checksum(bytes);
  }

 private:
  static Envelope sealed(std::uint64_t size, std::uint64_t checksum);
};
static_assert(sizeof(Envelope) == 24);

// Collective. One for each rank, from each; they are checked.
std::vector<Envelope> exchange_envelopes(MPI_Comm comm, const std::vector<Envelope>& out);

// Sends a message of any length; receive_checked() takes it.
void send_checked(MPI_Comm comm, int to, int tag, std::span<const std::byte> bytes);
// False if `bytes` are not what was sent.
bool receive_checked(MPI_Comm comm, int from, int tag, Bytes& bytes);

// Collective. What each rank sends to each: sizes[r] bytes of `data`, one after the other. place()
// is called once, with the size of all that this rank receives, in order of ranks, and returns
// where it goes. Returns how much it is from each rank; `sound` becomes false if something of it is
// not what was sent.
std::vector<std::uint64_t> exchange_checked(MPI_Comm comm, const std::byte* data,
                                            std::span<const std::uint64_t> sizes,
                                            const std::function<std::byte*(std::uint64_t)>& place,
                                            bool& sound);

// Collective. to[r] goes to rank r; returns what came from each. Ends the job if that is not what
// was sent.
std::vector<Bytes> exchange(MPI_Comm comm, const std::vector<Bytes>& to);

// Collective over `partners`. See Ranks::exchange_letters().
void exchange_letters(MPI_Comm comm, std::span<const int> partners, std::span<const Letter> to,
                      std::vector<Letter>& from, const std::function<void()>& meanwhile);

// Collective. `bytes` of rank `root` on all ranks; in one message, if they are few. Ends the job on
// a rank that does not get them.
void broadcast(MPI_Comm comm, int root, Bytes& bytes, Waiting waiting = Waiting::kPolling);
// The same of something small and of one size.
void broadcast_raw(MPI_Comm comm, int root, std::span<std::byte> value);
template <typename T>
requires std::is_trivially_copyable_v<T>
void broadcast_value(MPI_Comm comm, int root, T& value) {
  broadcast_raw(comm, root, std::as_writable_bytes(std::span(&value, 1)));
}

// Collective. All ranks' bytes, in order of ranks, on rank 0, and empty elsewhere. Ends the job if
// rank 0 does not get them.
std::vector<Bytes> gather(MPI_Comm comm, const Bytes& mine);

// Collective. All ranks' words, which are as many on each, on all ranks. Ends the job on a rank
// that does not get them.
std::vector<std::uint64_t> all_gather(MPI_Comm comm, std::vector<std::uint64_t> mine);
// The same of as many as each rank has, by rank.
std::vector<std::vector<std::uint64_t>> all_gather_varying(MPI_Comm comm,
                                                           std::vector<std::uint64_t> mine);

}  // namespace dedup::engine
