#include "engine/mpi/checked_message.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/spare_bytes.h"
#include "base/warn.h"
#include "base/xxh3.h"
#include "engine/mpi/counts.h"
#include "engine/mpi/pace.h"
#include "engine/mpi/wait.h"

namespace dedup::engine {
namespace {

// Shorter byte strings, with their envelope before them, are broadcast in one message of this size:
// the record of a file on some 40 nodes.
constexpr std::size_t kFirstMessage = 4096;

// Not those of other messages on the same communicators.
constexpr int kGatherTag = 4202;
constexpr int kExchangeTag = 4203;
constexpr int kLetterTag = 4204;
constexpr int kLongGatherTag = 4205;

// Longer messages of a gather go to rank 0 at once: the ranks between are not to carry them.
constexpr std::uint64_t kCarried = std::uint64_t{1} << 16;

// Calls each(address, count) for the pieces in which so many bytes travel.
template <typename Byte, typename Each>
void in_pieces(Byte* bytes, std::uint64_t size, Each&& each) {
  engine::in_pieces(size, [&](std::uint64_t at, int count) { each(bytes + at, count); });
}

// One after the other: errors of a call for several would not come to the communicator's handler.
void wait_for_all(std::vector<MPI_Request>& requests) {
  for (MPI_Request& request : requests) PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Collective. What goes to each rank, and where what comes from each goes.
void transfer(MPI_Comm comm, std::span<const std::span<const std::byte>> to,
              std::span<const std::span<std::byte>> from) {
  std::vector<MPI_Request> requests;
  for (std::size_t r = 0; r < from.size(); ++r) {
    in_pieces(from[r].data(), from[r].size(), [&](std::byte* at, int count) {
      PMPI_Irecv(at, count, MPI_BYTE, static_cast<int>(r), kExchangeTag, comm,
                 &requests.emplace_back());
    });
  }
  for (std::size_t r = 0; r < to.size(); ++r) {
    in_pieces(to[r].data(), to[r].size(), [&](const std::byte* at, int count) {
      PMPI_Isend(at, count, MPI_BYTE, static_cast<int>(r), kExchangeTag, comm,
                 &requests.emplace_back());
    });
  }
  wait_for_all(requests);
}

}  // namespace

Envelope Envelope::of(std::span<const std::byte> bytes) {
  return sealed(bytes.size(), message_checksum(bytes));
}

Envelope Envelope::of_size(std::uint64_t size) {
  return sealed(size, 0);
}

Envelope Envelope::sealed(std::uint64_t size, std::uint64_t checksum) {
  Envelope envelope{size, checksum, 0};
  envelope.own = XXH3_64bits(&envelope, offsetof(Envelope, own));
  return envelope;
}

void Envelope::check() const {
  if (own != XXH3_64bits(this, offsetof(Envelope, own))) {
    end_on_damage("the envelope of a message");
  }
}

std::vector<Envelope> exchange_envelopes(MPI_Comm comm, const std::vector<Envelope>& out) {
  std::vector<Envelope> in(out.size());
  PMPI_Alltoall(out.data(), sizeof(Envelope), MPI_BYTE, in.data(), sizeof(Envelope), MPI_BYTE,
                comm);
  for (const Envelope& envelope : in) envelope.check();
  return in;
}

void end_on_damage(const char* what) {
  say_error(
      "this rank ends, since MPI delivered something else than was sent in the middle of a "
      "collective operation on a file (" +
      std::string(what) + "); what was committed stands");
  wait_until_read();
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

void send_checked(MPI_Comm comm, int to, int tag, std::span<const std::byte> bytes) {
  const Envelope envelope = Envelope::of(bytes);
  PMPI_Send(&envelope, sizeof envelope, MPI_BYTE, to, tag, comm);
  in_pieces(bytes.data(), bytes.size(),
            [&](const std::byte* at, int count) { PMPI_Send(at, count, MPI_BYTE, to, tag, comm); });
}

bool receive_checked(MPI_Comm comm, int from, int tag, Bytes& bytes) {
  Envelope envelope;
  MPI_Request request;
  PMPI_Irecv(&envelope, sizeof envelope, MPI_BYTE, from, tag, comm, &request);
  wait(request);
  envelope.check();
  bytes.resize(envelope.size);
  in_pieces(bytes.data(), bytes.size(), [&](std::byte* at, int count) {
    PMPI_Recv(at, count, MPI_BYTE, from, tag, comm, MPI_STATUS_IGNORE);
  });
  return envelope.holds(bytes);
}

std::vector<std::uint64_t> exchange_checked(MPI_Comm comm, const std::byte* data,
                                            std::span<const std::uint64_t> sizes,
                                            const std::function<std::byte*(std::uint64_t)>& place,
                                            bool& sound) {
  std::vector<Envelope> out;
  out.reserve(sizes.size());
  std::uint64_t sent = 0;
  for (const std::uint64_t size : sizes) {
    out.push_back(Envelope::of({data + sent, size}));
    sent += size;
  }
  const std::vector<Envelope> in = exchange_envelopes(comm, out);
  std::uint64_t total = 0;
  for (const Envelope& envelope : in) total += envelope.size;
  std::byte* const received = place(total);
  std::vector<std::span<const std::byte>> to;
  std::vector<std::span<std::byte>> from;
  std::vector<std::uint64_t> received_sizes;
  std::uint64_t at = 0;
  for (std::size_t r = 0; r < in.size(); ++r) {
    to.emplace_back(data, sizes[r]);
    from.emplace_back(received + at, in[r].size);
    data += sizes[r];
    at += in[r].size;
    received_sizes.push_back(in[r].size);
  }
  transfer(comm, to, from);
  at = 0;
  for (const Envelope& envelope : in) {
    sound = envelope.holds({received + at, envelope.size}) && sound;
    at += envelope.size;
  }
  return received_sizes;
}

std::vector<Bytes> exchange(MPI_Comm comm, const std::vector<Bytes>& to) {
  std::vector<Envelope> out;
  for (const Bytes& bytes : to) out.push_back(Envelope::of(bytes));
  const std::vector<Envelope> in = exchange_envelopes(comm, out);
  std::vector<Bytes> received;
  for (const Envelope& envelope : in) received.emplace_back(envelope.size);
  transfer(comm, std::vector<std::span<const std::byte>>(to.begin(), to.end()),
           std::vector<std::span<std::byte>>(received.begin(), received.end()));
  for (std::size_t r = 0; r < in.size(); ++r) {
    if (!in[r].holds(received[r])) end_on_damage("what ranks send each other");
  }
  return received;
}

void exchange_letters(MPI_Comm comm, std::span<const int> partners, std::span<const Letter> to,
                      std::vector<Letter>& from, const std::function<void()>& meanwhile) {
  // What is said, then the bulk, of which the size alone is checked.
  using Envelopes = std::array<Envelope, 2>;
  int self = 0;
  PMPI_Comm_rank(comm, &self);
  from.resize(partners.size());
  SpareBytes memory;  // of what came before
  for (Letter& letter : from) memory.give(std::move(letter.bulk));
  std::vector<Envelopes> out(partners.size());
  std::vector<Envelopes> in(partners.size());
  std::vector<MPI_Request> sent;
  std::vector<MPI_Request> announced(partners.size(), MPI_REQUEST_NULL);
  const auto each_other = [&](const auto& what) {
    for (std::size_t i = 0; i < partners.size(); ++i) {
      if (partners[i] != self) what(i, partners[i]);
    }
  };
  const auto send = [&](std::size_t i, const Bytes& bytes) {
    in_pieces(bytes.data(), bytes.size(), [&](const std::byte* at, int count) {
      PMPI_Isend(at, count, MPI_BYTE, partners[i], kLetterTag, comm, &sent.emplace_back());
    });
  };
  each_other([&](std::size_t i, int partner) {
    PMPI_Irecv(in[i].data(), sizeof(Envelopes), MPI_BYTE, partner, kLetterTag, comm, &announced[i]);
  });
  std::uint64_t outgoing = 0;
  each_other([&](std::size_t i, int partner) {
    out[i] = {Envelope::of(to[i].said), Envelope::of_size(to[i].bulk.size())};
    PMPI_Isend(out[i].data(), sizeof(Envelopes), MPI_BYTE, partner, kLetterTag, comm,
               &sent.emplace_back());
    send(i, to[i].said);
    send(i, to[i].bulk);
    outgoing += sizeof(Envelopes) + to[i].said.size() + to[i].bulk.size();
  });
  std::vector<MPI_Request> received;
  std::uint64_t incoming = 0;
  each_other([&](std::size_t i, int partner) {
    wait(announced[i]);
    for (const Envelope& envelope : in[i]) envelope.check();
    from[i].said.resize(in[i][0].size);
    from[i].bulk = memory.take(in[i][1].size);
    incoming += sizeof(Envelopes) + in[i][0].size + in[i][1].size;
    for (Bytes* const bytes : {&from[i].said, &from[i].bulk}) {
      in_pieces(bytes->data(), bytes->size(), [&](std::byte* at, int count) {
        PMPI_Irecv(at, count, MPI_BYTE, partner, kLetterTag, comm, &received.emplace_back());
      });
    }
  });
  PacedLink link(incoming);
  link.send(outgoing);
  for (std::size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] != self) continue;
    from[i].said = to[i].said;
    from[i].bulk = memory.take(to[i].bulk.size());
    std::copy(to[i].bulk.begin(), to[i].bulk.end(), from[i].bulk.begin());
  }
  meanwhile();
  for (MPI_Request& request : received) wait(request);
  for (MPI_Request& request : sent) wait(request);
  each_other([&](std::size_t i, int /*partner*/) {
    if (!in[i][0].holds(from[i].said)) end_on_damage("what ranks send each other");
  });
  link.wait();
}

void broadcast(MPI_Comm comm, int root, Bytes& bytes, Waiting waiting) {
  std::array<std::byte, kFirstMessage> first{};
  Envelope envelope = Envelope::of(bytes);
  const std::span beginning = std::span(first).subspan(sizeof envelope);
  std::memcpy(first.data(), &envelope, sizeof envelope);
  std::copy_n(bytes.begin(), std::min(bytes.size(), beginning.size()), beginning.begin());
  if (waiting == Waiting::kPatient) {
    MPI_Request request;
    PMPI_Ibcast(first.data(), kFirstMessage, MPI_BYTE, root, comm, &request);
    wait(request);
  } else {
    PMPI_Bcast(first.data(), kFirstMessage, MPI_BYTE, root, comm);
  }
  std::memcpy(&envelope, first.data(), sizeof envelope);
  envelope.check();
  bytes.resize(envelope.size);
  const std::size_t begun = std::min(bytes.size(), beginning.size());
  std::copy_n(beginning.begin(), begun, bytes.begin());
  in_pieces(bytes.data() + begun, bytes.size() - begun,
            [&](std::byte* at, int count) { PMPI_Bcast(at, count, MPI_BYTE, root, comm); });
  if (!envelope.holds(bytes)) end_on_damage("what one rank tells all");
}

void broadcast_raw(MPI_Comm comm, int root, std::span<std::byte> value) {
  Bytes message(value.size() + sizeof(std::uint64_t));
  const auto copy = [&](std::uint64_t checksum) {
    std::copy(value.begin(), value.end(), message.begin());
    std::memcpy(message.data() + value.size(), &checksum, sizeof checksum);
  };
  copy(message_checksum(value));
  PMPI_Bcast(message.data(), count_of(message.size()), MPI_BYTE, root, comm);
  std::copy_n(message.begin(), value.size(), value.begin());
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, message.data() + value.size(), sizeof checksum);
  if (checksum != message_checksum(value)) end_on_damage("what one rank tells all");
}

std::vector<Bytes> gather(MPI_Comm comm, const Bytes& mine) {
  int rank;
  int size;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &size);
  // A binomial tree: what comes from higher ranks is put behind what is here, in order of ranks.
  Bytes bundle;
  const auto put = [&](std::span<const std::byte> bytes) {
    bundle.insert(bundle.end(), bytes.begin(), bytes.end());
  };
  const Envelope envelope = Envelope::of(mine);
  put(std::as_bytes(std::span(&envelope, 1)));
  if (mine.size() <= kCarried) put(mine);
  for (int distance = 1; distance < size; distance *= 2) {
    if ((rank & distance) != 0) {
      send_checked(comm, rank - distance, kGatherTag, bundle);
      if (mine.size() > kCarried) {
        in_pieces(mine.data(), mine.size(), [&](const std::byte* at, int count) {
          PMPI_Send(at, count, MPI_BYTE, 0, kLongGatherTag, comm);
        });
      }
      return {};
    }
    if (rank + distance >= size) continue;
    Bytes theirs;
    if (!receive_checked(comm, rank + distance, kGatherTag, theirs)) {
      end_on_damage("what one rank collects of all");
    }
    put(theirs);
  }
  std::vector<Bytes> out;
  std::vector<Envelope> envelopes;
  std::vector<MPI_Request> requests;
  std::span<const std::byte> rest = bundle;
  for (int r = 0; r < size; ++r) {
    if (rest.size() < sizeof(Envelope)) end_on_damage("what one rank collects of all");
    Envelope& of_rank = envelopes.emplace_back();
    std::memcpy(&of_rank, rest.data(), sizeof of_rank);
    rest = rest.subspan(sizeof of_rank);
    of_rank.check();
    Bytes& bytes = out.emplace_back();
    if (of_rank.size > kCarried && r != 0) {
      bytes.resize(of_rank.size);
      in_pieces(bytes.data(), bytes.size(), [&](std::byte* at, int count) {
        PMPI_Irecv(at, count, MPI_BYTE, r, kLongGatherTag, comm, &requests.emplace_back());
      });
    } else if (of_rank.size <= kCarried) {
      if (rest.size() < of_rank.size) end_on_damage("what one rank collects of all");
      bytes.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(of_rank.size));
      rest = rest.subspan(of_rank.size);
    }
  }
  wait_for_all(requests);
  if (mine.size() > kCarried) out[0] = mine;
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!envelopes[r].holds(out[r])) end_on_damage("what one rank collects of all");
  }
  return out;
}

std::vector<std::vector<std::uint64_t>> all_gather_varying(MPI_Comm comm,
                                                           std::vector<std::uint64_t> mine) {
  mine.push_back(message_checksum(std::as_bytes(std::span(mine))));
  // Counts of MPI are int, and so is where in all of it a rank's words begin: it is words that are
  // counted, of 16 GiB.
  const std::vector<std::uint64_t> sizes = all_gather(comm, {mine.size()});
  std::vector<int> counts;
  std::vector<int> begins;
  std::uint64_t total = 0;
  for (const std::uint64_t size : sizes) {
    counts.push_back(static_cast<int>(size));
    begins.push_back(static_cast<int>(total));
    total += size;
  }
  if (total > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    end_on_damage("how much all ranks have to tell each other");
  }
  std::vector<std::uint64_t> all(total);
  PMPI_Allgatherv(mine.data(), static_cast<int>(mine.size()), MPI_UINT64_T, all.data(),
                  counts.data(), begins.data(), MPI_UINT64_T, comm);
  std::vector<std::vector<std::uint64_t>> out;
  std::uint64_t at = 0;
  for (const std::uint64_t size : sizes) {
    const std::span record = std::span(all).subspan(at, size);
    at += size;
    if (record.back() != message_checksum(std::as_bytes(record.first(size - 1)))) {
      end_on_damage("what all ranks tell each other");
    }
    out.emplace_back(record.begin(), record.end() - 1);
  }
  return out;
}

std::vector<std::uint64_t> all_gather(MPI_Comm comm, std::vector<std::uint64_t> mine) {
  int size;
  PMPI_Comm_size(comm, &size);
  const std::size_t words = mine.size();
  mine.push_back(message_checksum(std::as_bytes(std::span(mine))));
  const int count = count_of(mine.size());
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(size));
  PMPI_Allgather(mine.data(), count, MPI_UINT64_T, all.data(), count, MPI_UINT64_T, comm);
  std::vector<std::uint64_t> out;
  out.reserve(words * static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < all.size(); at += words + 1) {
    const std::span record = std::span(all).subspan(at, words);
    if (all[at + words] != message_checksum(std::as_bytes(record))) {
      end_on_damage("what all ranks tell each other");
    }
    out.insert(out.end(), record.begin(), record.end());
  }
  return out;
}

}  // namespace dedup::engine
