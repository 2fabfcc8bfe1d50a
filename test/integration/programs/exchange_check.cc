// Random exchanges, every chunk compared with what was sent: exchange_check put|send. Needs no
// driver and no store. Runs on any number of ranks, which it deals to nodes; ends with a message
// and a non-zero code at the first difference.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/dump/exchange.h"

namespace {

using dedup::NodeIndex;
using dedup::engine::Exchange;
using dedup::engine::ExchangePlan;
using dedup::engine::Parcel;
using dedup::engine::SlotRange;
using dedup::engine::Topology;

constexpr int kExchanges = 60;

struct Header {
  std::uint64_t exchange = 0;
  std::uint64_t node = 0;
  std::uint64_t slot = 0;
};

// After splitmix64.
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 1000003 + b * 10007 + c;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// One exchange, the same whoever computes it.
struct Case {
  Case(int the_number, const Topology& topology) : number(the_number) {
    std::mt19937_64 random(static_cast<std::uint64_t>(number));
    longest = std::size_t{1} << random() % 13;
    const std::uint64_t most = number % 5 == 0 ? 2000 : 200;
    sends.resize(static_cast<std::size_t>(topology.size()));
    for (auto& to : sends) {
      for (NodeIndex n = 0; n < topology.job_nodes(); ++n) {
        to.push_back(random() % 3 == 0 ? 0 : random() % most);
      }
    }
    for (int r = 0; r < topology.size(); ++r) {
      sends[static_cast<std::size_t>(r)][topology.node_of(r)] = 0;
    }
  }

  // How many chunks a node receives from ranks that come before `rank`, by node and then by rank;
  // with rank = size() from all.
  std::uint64_t before(const Topology& topology, NodeIndex node, int rank) const {
    std::uint64_t sum = 0;
    for (const NodeIndex from : topology.nodes()) {
      for (const int r : topology.ranks_on(from)) {
        if (r == rank) return sum;
        sum += sends[static_cast<std::size_t>(r)][node];
      }
    }
    return sum;
  }

  std::size_t length(NodeIndex node, std::uint64_t slot) const {
    // All alike, or each of its own length, none included.
    if (number % 3 == 0) return longest;
    return mix(static_cast<std::uint64_t>(number), node, slot) % (longest + 1);
  }

  std::byte byte(NodeIndex node, std::uint64_t slot, std::size_t i) const {
    return static_cast<std::byte>(static_cast<std::uint64_t>(number) * 31 + node * 17 + slot * 7 +
                                  i);
  }

  int number;
  std::size_t longest = 1;
  std::vector<std::vector<std::uint64_t>> sends;  // by rank, then by node
};

// What a rank sends, in memory: one after the other, or with gaps.
struct Sent {
  Sent(const Case& c, const Topology& topology) {
    for (NodeIndex n = 0; n < topology.job_nodes(); ++n) {
      const std::uint64_t count = c.sends[static_cast<std::size_t>(topology.rank())][n];
      if (count == 0) continue;
      const std::uint64_t first = c.before(topology, n, topology.rank());
      ranges.push_back({n, first, count});
      starts.emplace_back();
      for (std::uint64_t slot = first; slot < first + count; ++slot) {
        if (c.number % 2 == 0) bytes.resize(bytes.size() + slot % 3);
        starts.back().push_back(bytes.size());
        const std::size_t length = c.length(n, slot);
        for (std::size_t i = 0; i < length; ++i) bytes.push_back(c.byte(n, slot, i));
      }
    }
  }

  std::vector<SlotRange> ranges;
  std::vector<std::vector<std::size_t>> starts;  // by range
  std::vector<std::byte> bytes;
};

class Checked {
 public:
  Checked(const Case& c, const Topology& topology) : case_(c), topology_(topology) {}

  void take(std::span<const Parcel> parcels) {
    for (const Parcel& parcel : parcels) {
      Header header;
      std::memcpy(&header, parcel.header.data(), sizeof header);
      bool right = header.exchange == static_cast<std::uint64_t>(case_.number) &&
                   header.node == topology_.my_node() && header.slot == parcel.slot &&
                   parcel.data.size() == case_.length(topology_.my_node(), parcel.slot);
      for (std::size_t i = 0; right && i < parcel.data.size(); ++i) {
        right = parcel.data[i] == case_.byte(topology_.my_node(), parcel.slot, i);
      }
      if (!right) {
        ++wrong_;
        std::fprintf(stderr, "exchange %d, rank %d: slot %llu has other bytes\n", case_.number,
                     topology_.rank(), static_cast<unsigned long long>(parcel.slot));
      }
      slots_.push_back(parcel.slot);
    }
  }

  // Collective. Whether this node's ranks have received each slot once.
  bool complete(std::uint64_t incoming) {
    std::sort(slots_.begin(), slots_.end());
    const bool distinct = std::adjacent_find(slots_.begin(), slots_.end()) == slots_.end();
    const std::uint64_t mine = slots_.size();
    std::uint64_t all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, topology_.node_comm());
    // Blocks go round the ranks: none has more than two blocks beyond its share.
    const std::uint64_t share = incoming / static_cast<std::uint64_t>(topology_.node_size());
    return wrong_ == 0 && distinct && all == incoming &&
           mine <= share + 2 * dedup::plan::SlotGrid::kLargestBlock;
  }

 private:
  const Case& case_;
  const Topology& topology_;
  std::vector<std::uint64_t> slots_;
  int wrong_ = 0;
};

bool run(Exchange& exchange, const Case& c, const Topology& topology) {
  const Sent sent(c, topology);
  Checked checked(c, topology);
  ExchangePlan plan;
  plan.ranges = sent.ranges;
  plan.incoming = c.before(topology, topology.my_node(), topology.size());
  plan.header_size = sizeof(Header);
  plan.longest = c.longest;
  for (const NodeIndex n : topology.nodes()) {
    const dedup::plan::SlotGrid grid{topology.ranks_on(n).size(),
                                     exchange.slots_per_round(sizeof(Header), c.longest)};
    plan.rounds = std::max(plan.rounds, grid.rounds(c.before(topology, n, topology.size())));
  }
  if (plan.rounds == 0) return true;
  int asked = 0;
  plan.meanwhile = [&] { return ++asked < 10; };
  plan.fill = [&](std::size_t range, std::uint64_t number, std::byte* out) {
    const SlotRange& r = sent.ranges[range];
    const Header header{static_cast<std::uint64_t>(c.number), r.target, r.first + number};
    std::memcpy(out, &header, sizeof header);
    return std::span(sent.bytes)
        .subspan(sent.starts[range][number], c.length(r.target, r.first + number));
  };
  plan.drain = [&](std::span<const Parcel> parcels) { checked.take(parcels); };
  exchange.run(plan);
  if (asked != 10) std::fprintf(stderr, "what there was to do besides was not done\n");
  return checked.complete(plan.incoming) && asked == 10;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  int ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bool put = argc > 1 && std::string(argv[1]) == "put";
  int failed = 0;
  {
    // The first node has one rank, the others two.
    const auto node = static_cast<NodeIndex>((rank + 1) / 2);
    const auto topology = Topology::build(
        MPI_COMM_WORLD, {.nodes = static_cast<NodeIndex>(ranks / 2 + 1), .node = node});
    if (!topology->comms().take_together().is_ok()) MPI_Abort(MPI_COMM_WORLD, 1);
    const auto exchange =
        Exchange::create(put ? dedup::hints::Exchange::kPut : dedup::hints::Exchange::kSend,
                         *topology, 100'000, 20'000);
    for (int i = 0; i < kExchanges; ++i) {
      const int mine = run(*exchange, Case(i, *topology), *topology) ? 0 : 1;
      MPI_Allreduce(&mine, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      if (failed != 0) break;
      if (i % 10 == 0) exchange->release();
    }
  }
  if (rank == 0 && failed == 0) {
    std::printf("exchange_check: %d exchanges on %d ranks: ok\n", kExchanges, ranks);
  }
  MPI_Finalize();
  return failed;
}
