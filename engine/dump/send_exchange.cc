#include "engine/dump/send_exchange.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/dump/outgoing.h"
#include "engine/mpi/checked_message.h"
#include "engine/mpi/counts.h"
#include "engine/mpi/pace.h"
#include "engine/protocol/failpoint.h"

namespace dedup::engine {
namespace {

// Two messages for some chunks that follow each other: what there is to say of them, and their
// bytes; these from where they are if they stand together there. The first one may come from
// anybody, and says how long the second is, which goes straight to where it is stored from. Since
// announcements may be complete in another order than they were sent in, they are numbered for each
// receiver: data are received in the order of these numbers, which is the one that MPI keeps.
// Nothing is waited for as long as there is something else to do.
class SendExchange final : public Exchange {
 public:
  SendExchange(const Topology& topology, std::size_t window, std::size_t staging)
      : Exchange(topology, window, staging) {}

  void release() override {}

  void run(const ExchangePlan& plan) override {
    comm_ = topology_.any_source_comm();
    if (!std::exchange(connected_, true)) connect(plan);
    Run(*this, plan).run();
  }

 private:
  static constexpr std::size_t kParts = 4;  // messages under way, each for sending and receiving
  static constexpr std::size_t kLargestPart = std::size_t{512} << 10;
  static constexpr int kAnnouncementTag = 1;
  static constexpr int kDataTag = 2;
  static constexpr int kConnectTag = 3;

  // Before each chunk's length and header.
  struct Announcement {
    std::uint64_t checksum = 0;  // of all that follows in the message
    std::uint64_t slot = 0;      // of the first
    std::uint64_t count = 0;
    std::uint64_t number = 0;  // from 0 on, of this sender's for this receiver
  };

  // Memory for one pair of messages.
  struct Part {
    Memory announcement;
    Memory data;
    int held_from = MPI_PROC_NULL;  // announced from there, and not yet received
  };

  // The first message between two ranks waits for several of MPI's own, and each of these would
  // wait until the other rank has stored something. So all that is first is sent while nobody has
  // anything else to do. Who hears from whom only the senders know: whoever was heard by all it
  // has written to says so, and goes on listening until all have said so (Hoefler et al., Scalable
  // Communication Protocols for Dynamic Sparse Data Exchange, PPoPP 2010, III.D).
  void connect(const ExchangePlan& plan) const {
    std::set<int> ranks;
    Outgoing outgoing(topology_, plan, slots_per_round(plan.header_size, plan.longest), 0,
                      plan.rounds);
    for (;;) {
      const Batch batch = outgoing.next(plan::SlotGrid::kLargestBlock);
      if (batch.count == 0) break;
      ranks.insert(batch.rank);
    }
    std::vector<MPI_Request> unheard;
    for (const int rank : ranks) {
      PMPI_Issend(nullptr, 0, MPI_BYTE, rank, kConnectTag, comm_, &unheard.emplace_back());
    }
    MPI_Request all = MPI_REQUEST_NULL;
    for (bool done = false; !done; sched_yield()) {
      int arrived = 0;
      MPI_Status status;
      PMPI_Iprobe(MPI_ANY_SOURCE, kConnectTag, comm_, &arrived, &status);
      if (arrived != 0) {
        PMPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, kConnectTag, comm_, MPI_STATUS_IGNORE);
      }
      std::erase_if(unheard, [](MPI_Request& request) { return is_complete(request); });
      if (!unheard.empty()) continue;
      if (all == MPI_REQUEST_NULL) PMPI_Ibarrier(comm_, &all);
      done = is_complete(all);
    }
  }

  // One request after the other, not with MPI_Testany and the like: their errors would not come to
  // this communicator's handler, which ends the job.
  static bool is_complete(MPI_Request& request, MPI_Status* status = MPI_STATUS_IGNORE) {
    int done = 0;
    PMPI_Test(&request, &done, status);
    return done != 0;
  }

  class Run {
   public:
    Run(SendExchange& owner, const ExchangePlan& plan)
        : owner_(owner),
          plan_(plan),
          per_round_(owner.slots_per_round(plan.header_size, plan.longest)),
          part_size_(
              std::max(plan.longest, std::min(owner.window_size_ / kParts / 2, kLargestPart))),
          most_(std::min(part_size_ / plan.longest, plan::SlotGrid::kLargestBlock)),
          entry_size_(entry_size(plan)),
          outgoing_(owner.topology_, plan, per_round_, 0, plan.rounds),
          expected_(own_grid(owner.topology_, per_round_)
                        .expected(plan.incoming,
                                  static_cast<std::uint64_t>(owner.topology_.node_rank()))),
          link_(expected_ * (plan.header_size + plan.longest)) {
      requests_.fill(MPI_REQUEST_NULL);
    }

    void run() {
      bool more = true;
      for (;;) {
        receive();
        send();
        if (poll()) continue;
        if (more) {
          more = plan_.meanwhile();
        } else if (idle()) {
          break;
        } else {
          sched_yield();
        }
      }
      failpoint("dump.exchanging");
      link_.wait();
    }

   private:
    // In their order: of receiving parts, of sent announcements, of sent data.
    static constexpr std::size_t kRequests = 3 * kParts;

    bool idle() const {
      return std::all_of(requests_.begin(), requests_.end(),
                         [](MPI_Request request) { return request == MPI_REQUEST_NULL; });
    }

    // Deals with all that is complete; false if nothing is.
    bool poll() {
      bool any = false;
      for (std::size_t r = 0; r < requests_.size(); ++r) {
        if (requests_[r] == MPI_REQUEST_NULL) continue;
        MPI_Status status;
        if (!is_complete(requests_[r], &status)) continue;
        any = true;
        failpoint("dump.exchanging");
        if (r < kParts) arrived(r, status);
      }
      return any;
    }

    Part make_part() const {
      return {allocate(sizeof(Announcement) + most_ * entry_size_), allocate(part_size_),
              MPI_PROC_NULL};
    }
    static Announcement announcement_of(const Part& part) {
      Announcement announcement;
      std::memcpy(&announcement, part.announcement.get(), sizeof announcement);
      return announcement;
    }
    std::size_t announced_size(std::uint64_t count) const {
      return sizeof(Announcement) + count * entry_size_;
    }
    static std::uint64_t checksum_of(const Part& part, std::size_t size) {
      constexpr std::size_t kOwn = sizeof(Announcement::checksum);
      return message_checksum({part.announcement.get() + kOwn, size - kOwn});
    }
    std::byte* entry(const Part& part, std::uint64_t i) const {
      return part.announcement.get() + sizeof(Announcement) + i * entry_size_;
    }

    // Waits for announcements with every free part, but not for more than are sure to come.
    void receive() {
      for (std::size_t p = 0; p < kParts; ++p) {
        if (requests_[p] != MPI_REQUEST_NULL || incoming_[p].held_from != MPI_PROC_NULL) continue;
        if (awaited_ * most_ >= expected_ - announced_) return;
        if (!incoming_[p].data) incoming_[p] = make_part();
        PMPI_Irecv(incoming_[p].announcement.get(),
                   count_of(sizeof(Announcement) + most_ * entry_size_), MPI_BYTE, MPI_ANY_SOURCE,
                   kAnnouncementTag, owner_.comm_, &requests_[p]);
        ++awaited_;
      }
    }

    void send() {
      for (std::size_t p = 0; p < kParts && sending_; ++p) {
        MPI_Request& announcement = requests_[kParts + p];
        MPI_Request& data = requests_[2 * kParts + p];
        if (announcement != MPI_REQUEST_NULL || data != MPI_REQUEST_NULL) continue;
        const Batch batch = outgoing_.next(most_);
        sending_ = batch.count != 0;
        if (!sending_) return;
        if (!parts_[p].data) parts_[p] = make_part();
        const Part& part = parts_[p];
        const std::span<const std::byte> bytes = pack(batch, part);
        const std::size_t announced = announced_size(batch.count);
        PMPI_Isend(part.announcement.get(), count_of(announced), MPI_BYTE, batch.rank,
                   kAnnouncementTag, owner_.comm_, &announcement);
        PMPI_Isend(bytes.data(), count_of(bytes.size()), MPI_BYTE, batch.rank, kDataTag,
                   owner_.comm_, &data);
        link_.send(announced + bytes.size());
      }
    }

    // Fills the announcement; returns the chunks' bytes, which it copies if they do not stand
    // together.
    std::span<const std::byte> pack(const Batch& batch, const Part& part) {
      Announcement announcement{0, batch.slot, batch.count, sent_to_[batch.rank]++};
      std::memcpy(part.announcement.get(), &announcement, sizeof announcement);
      std::array<std::span<const std::byte>, plan::SlotGrid::kLargestBlock> chunks;
      bool together = true;
      std::size_t size = 0;
      for (std::uint64_t i = 0; i < batch.count; ++i) {
        chunks[i] = write_entry(plan_, batch, i, entry(part, i));
        together = together && chunks[i].data() == chunks[0].data() + size;
        size += chunks[i].size();
      }
      announcement.checksum = checksum_of(part, announced_size(batch.count));
      std::memcpy(part.announcement.get(), &announcement, sizeof announcement);
      if (together) return {chunks[0].data(), size};
      std::byte* to = part.data.get();
      for (std::uint64_t i = 0; i < batch.count; ++i) {
        to = std::copy(chunks[i].begin(), chunks[i].end(), to);
      }
      return {part.data.get(), size};
    }

    // An announcement, or the data that were announced.
    void arrived(std::size_t p, const MPI_Status& status) {
      if (status.MPI_TAG == kDataTag) {
        take(incoming_[p]);
        return;
      }
      // What it says decides how much else is received, and from where.
      int size = 0;
      PMPI_Get_count(&status, MPI_BYTE, &size);
      if (static_cast<std::size_t>(size) < sizeof(Announcement) ||
          announcement_of(incoming_[p]).checksum !=
              checksum_of(incoming_[p], static_cast<std::size_t>(size))) {
        end_on_damage("what another node says of its copies");
      }
      --awaited_;
      announced_ += announcement_of(incoming_[p]).count;
      incoming_[p].held_from = status.MPI_SOURCE;
      receive_data(status.MPI_SOURCE);
    }

    // As far as the sender's announcements are here in their order.
    void receive_data(int source) {
      for (std::size_t p = 0; p < kParts;) {
        Part& part = incoming_[p];
        if (part.held_from != source || announcement_of(part).number != received_from_[source]) {
          ++p;
          continue;
        }
        std::size_t bytes = 0;
        for (std::uint64_t i = 0; i < announcement_of(part).count; ++i)
          bytes += length_in(entry(part, i));
        PMPI_Irecv(part.data.get(), count_of(bytes), MPI_BYTE, source, kDataTag, owner_.comm_,
                   &requests_[p]);
        part.held_from = MPI_PROC_NULL;
        ++received_from_[source];
        p = 0;
      }
    }

    void take(const Part& part) {
      const Announcement announcement = announcement_of(part);
      const std::byte* at = part.data.get();
      parcels_.clear();
      for (std::uint64_t i = 0; i < announcement.count; ++i) {
        parcels_.push_back(parcel_of(plan_, announcement.slot + i, entry(part, i), at));
        at += parcels_.back().data.size();
      }
      plan_.drain(parcels_);
    }

    SendExchange& owner_;
    const ExchangePlan& plan_;
    std::uint64_t per_round_;
    std::size_t part_size_;
    std::uint64_t most_;  // chunks in a message
    std::size_t entry_size_;
    Outgoing outgoing_;
    std::uint64_t expected_;  // chunks
    PacedLink link_;
    std::uint64_t announced_ = 0;  // of them
    std::uint64_t awaited_ = 0;    // announcements
    bool sending_ = true;
    std::array<Part, kParts> incoming_;
    std::array<Part, kParts> parts_;  // to send from
    std::array<MPI_Request, kRequests> requests_;
    // Announcements, by rank: those numbered, and those whose data were asked for.
    std::map<int, std::uint64_t> sent_to_;
    std::map<int, std::uint64_t> received_from_;
    std::vector<Parcel> parcels_;
  };

  MPI_Comm comm_ = MPI_COMM_NULL;  // of this dump
  bool connected_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_send_exchange(const Topology& topology, std::size_t window,
                                             std::size_t staging) {
  return std::make_unique<SendExchange>(topology, window, staging);
}

}  // namespace dedup::engine
