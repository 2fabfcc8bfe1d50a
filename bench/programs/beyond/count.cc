// What counting on a grid takes of a node (plan/grid_count.h), and how equal loads become, for many
// nodes.
//
//   count costs NODES CHUNKS COPIES SHARED OTHERS
//   count loads NODES CHUNKS COPIES SHARED OTHERS
//
// Every node has CHUNKS chunks, of which SHARED are on all nodes, and each of the others on OTHERS
// nodes (1: nowhere else), which are drawn at random.
//
// costs: all that one node does, by the product's own code. What arrives are the others' messages,
// encoded from the names that they have of those whose home the node is; what it only passes on,
// and what it is answered, is drawn. Sums over all nodes are of nodes that are alike; each takes a
// node two vectors of a word a node, in 2 log2(nodes) messages, each way, as R. Rabenseifner sums
// up.
//
// loads: a third of the nodes have a third as many chunks of their own beside as they have of
// these, the others a tenth of that. Homes do not change who is designated: here one is enough.
//
// Prints one JSON object.

#include <algorithm>
#include <bit>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "base/hasher.h"
#include "base/varint.h"
#include "bench/programs/beyond/meter.h"
#include "bench/programs/beyond/sets.h"
#include "plan/grid_count.h"

using namespace dedup;
using namespace beyond;

namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};
constexpr int kSums = 3;  // of loads, and then of who was chosen with weights, twice

struct World {
  std::uint32_t nodes;
  std::uint32_t chunks;
  unsigned copies;
  std::uint32_t shared;
  std::uint32_t others;
};

// A name that begins with a number from `begin` to `end`.
Fingerprint name_between(std::uint64_t begin, std::uint64_t end, Random& random) {
  std::array<std::uint8_t, 16> hash{};
  const std::uint64_t high = __builtin_bswap64(begin + random() % (end - begin));
  const std::uint64_t low = random();
  std::memcpy(hash.data(), &high, sizeof high);
  std::memcpy(hash.data() + sizeof high, &low, sizeof low);
  return keyed_name(hash, low);
}

// `count` different nodes.
void draw_nodes(std::uint32_t nodes, std::uint32_t count, Random& random,
                std::vector<std::uint32_t>& out) {
  out.clear();
  while (out.size() < count) {
    const auto node = static_cast<std::uint32_t>(random() % nodes);
    if (std::find(out.begin(), out.end(), node) == out.end()) out.push_back(node);
  }
}

// How many of so many names are expected in that part of all.
std::uint64_t part_of(std::uint64_t names, std::uint64_t begin, std::uint64_t end) {
  return static_cast<std::uint64_t>(
      static_cast<double>(names) * (static_cast<double>(end - begin) * 0x1p-64) + 0.5);
}

// The messages of others, and what is counted of all.
class Simulation {
 public:
  explicit Simulation(const World& world)
      : world_(world),
        grid_(world.nodes),
        count_(grid_, all_nodes(world.nodes), 0, std::min(world.copies, world.nodes),
               static_cast<NodeIndex>(world.nodes)) {}

  void run() {
    touch_memory(std::size_t{512} << 20);
    draw();
    ask();
    count();
    answer();
    std::printf(
        "{\"nodes\": %u, \"chunks\": %u, \"copies\": %u, \"shared\": %u, \"others\": %u, "
        "\"messages\": %zu, \"bytes_sent\": %zu, \"bytes_received\": %zu, \"seconds\": %.6f, "
        "\"bytes_memory\": %td, \"counted\": %zu}\n",
        world_.nodes, world_.chunks, world_.copies, world_.shared, world_.others, messages_, sent_,
        received_, seconds_, memory_, counted_);
  }

 private:
  static const std::vector<NodeIndex>& all_nodes(std::uint32_t count) {
    static std::vector<NodeIndex> nodes;
    for (std::uint32_t n = 0; n < count; ++n) nodes.push_back(static_cast<NodeIndex>(n));
    return nodes;
  }

  // What everybody has of the names whose home this node is, and what the node has of all.
  void draw() {
    const std::uint64_t end = grid_.begin(0, 1);
    const std::uint64_t shared = part_of(world_.shared, 0, end);
    std::vector<std::uint32_t> nodes(world_.nodes);
    std::iota(nodes.begin(), nodes.end(), 0);
    of_nodes_.resize(world_.nodes);
    for (std::uint64_t i = 0; i < shared; ++i) enter(name_between(0, end, random_), nodes);
    const std::uint64_t others = part_of(
        std::uint64_t{world_.nodes} * (world_.chunks - world_.shared) / world_.others, 0, end);
    for (std::uint64_t i = 0; i < others; ++i) {
      draw_nodes(world_.nodes, world_.others, random_, nodes);
      enter(name_between(0, end, random_), nodes);
    }
    mine_ = of_nodes_[0];
    while (mine_.size() < world_.chunks) mine_.push_back(name_between(end, kAll, random_));
    asked_ = mine_;
    std::sort(asked_.begin(), asked_.end());
  }

  void enter(const Fingerprint& name, const std::vector<std::uint32_t>& nodes) {
    for (const std::uint32_t node : nodes) of_nodes_[node].push_back(name);
  }

  // What a node asks a home, of so many names if they are not given.
  Bytes frame(const std::vector<Fingerprint>& names, std::uint32_t column, std::uint32_t row) {
    if (names.empty()) return {};
    const std::uint64_t begin = grid_.begin(column, row);
    const std::uint64_t end = grid_.begin(column, row + 1);
    plan::Gathering gathering(begin, end);
    for (const Fingerprint& name : names) gathering.add(name, 0, nullptr);
    const plan::Questions questions = std::move(gathering).finish().questions;
    questions.encode(0, questions.size(), begin, end, writer_);
    return finished();
  }

  Bytes finished() {
    const auto bytes = writer_.finish();
    return {bytes.begin(), bytes.end()};
  }

  static void put_frame(Encoder& message, const Bytes& frame) {
    put_varint(message, frame.size());
    message.put_raw(frame.data(), frame.size());
  }

  void ask() {
    std::vector<Bytes> to;
    work([&] {
      plan::Gathering mine(0, kAll);
      mine.reserve(mine_.size());
      for (const Fingerprint& name : mine_) mine.add(name, 0, nullptr);
      to = count_.ask(std::move(mine).finish().questions);
    });
    send(to);
    // From the row, for the homes of the column.
    std::vector<Bytes> from{to[0]};
    const std::vector<std::uint32_t>& row = count_.row();
    passed_.assign(row.size(), std::vector<std::size_t>(grid_.rows()));
    for (std::size_t i = 1; i < row.size(); ++i) {
      Encoder message;
      put_frame(message, frame(of_nodes_[row[i]], 0, 0));
      for (std::uint32_t r = 1; r < grid_.rows(); ++r) {
        std::vector<Fingerprint> names(
            part_of(world_.chunks, grid_.begin(0, r), grid_.begin(0, r + 1)));
        for (Fingerprint& name : names) {
          name = name_between(grid_.begin(0, r), grid_.begin(0, r + 1), random_);
        }
        passed_[i][r] = names.size();
        put_frame(message, frame(names, 0, r));
      }
      from.push_back(message.take());
    }
    receive(from);
    work([&] { count_.take_row(std::move(from)); });
    if (grid_.rows() == 1) return;

    work([&] { to = count_.ask_homes(); });
    send(to);
    from = {to[0]};
    for (std::uint32_t r = 1; r < grid_.rows(); ++r) {
      Encoder message;
      for (const std::uint32_t node : grid_.row(r)) {
        put_frame(message, frame(of_nodes_[node], 0, 0));
      }
      from.push_back(message.take());
    }
    receive(from);
    work([&] { count_.take_column(std::move(from)); });
  }

  void count() {
    plan::SettledChunks nothing(1);
    plan::Loads all(static_cast<NodeIndex>(world_.nodes));
    work([&] {
      count_.count(nothing);
      count_.counted().add_to(all);
    });
    counted_ = count_.asked().size();
    if (std::min(world_.copies, world_.nodes) == world_.nodes) return;
    // The sums, if all homes have as much as this one, and all nodes as much as each other.
    all.choices *= grid_.homes();
    for (auto* const loads : {&all.fixed, &all.chance}) {
      std::uint64_t sum = 0;
      for (const std::uint64_t one : *loads) sum += one;
      std::fill(loads->begin(), loads->end(), sum * grid_.homes() / world_.nodes);
    }
    if (all.choices == 0) {
      add_up(all.fixed);
      return;
    }
    work([&] { weights_.emplace(all); });
    std::vector<std::uint64_t> chosen(world_.nodes);
    for (int i = 0; i < kSums; ++i) {
      add_up(all.fixed);
      if (i == 0) continue;
      work([&] { count_.counted().count_chosen(*weights_, chosen); });
      std::fill(chosen.begin(), chosen.end(), all.choices / world_.nodes);
      work([&] { weights_->correct(chosen); });
    }
  }

  // Halves are exchanged and added, halves of these, and so on, and then the sums come back.
  void add_up(std::vector<std::uint64_t> words) {
    const std::vector<std::uint64_t> others = words;
    work([&] {
      for (std::size_t i = 0; i < words.size(); ++i) words[i] += others[i];
    });
    const std::size_t bytes = 2 * words.size() * sizeof(std::uint64_t);
    sent_ += bytes;
    received_ += bytes;
    messages_ += 2 * static_cast<std::size_t>(std::bit_width(world_.nodes - 1));
  }

  void answer() {
    std::vector<Bytes> to;
    work([&] { to = count_.answer(weights_ ? &*weights_ : nullptr); });
    send(to);
    if (grid_.rows() > 1) {
      std::vector<Bytes> from{to[0]};
      for (std::uint32_t r = 1; r < grid_.rows(); ++r) {
        Encoder message;
        put_frame(message, draw_answers(asked(0, r)));
        for (std::size_t i = 1; i < passed_.size(); ++i) {
          put_frame(message, draw_answers(passed_[i][r]));
        }
        from.push_back(message.take());
      }
      receive(from);
      work([&] { count_.take_answers(std::move(from)); });
    }
    work([&] { to = count_.answer_row(); });
    send(to);
    std::vector<Bytes> from{to[0]};
    for (std::uint32_t c = 1; c < grid_.columns(); ++c) {
      Encoder message;
      for (std::uint32_t r = 0; r < grid_.rows(); ++r) {
        put_frame(message, draw_answers(asked(c, r)));
      }
      from.push_back(message.take());
    }
    from.resize(count_.row().size());
    receive(from);
    std::size_t answered = 0;
    work([&] { answered = count_.take(from).size(); });
    if (answered != mine_.size() || !count_.is_sound()) fail("a message that makes no sense");
  }

  // How many questions this node has for a home.
  std::size_t asked(std::uint32_t column, std::uint32_t row) {
    const auto at = [&](std::uint64_t begin) {
      if (begin == kAll) return asked_.end();
      return std::partition_point(asked_.begin(), asked_.end(),
                                  [&](const Fingerprint& name) { return name.leading() < begin; });
    };
    return static_cast<std::size_t>(at(grid_.begin(column, row + 1)) -
                                    at(grid_.begin(column, row)));
  }

  Bytes draw_answers(std::size_t count) {
    plan::Answers answers;
    std::vector<std::uint32_t> places;
    std::vector<std::uint32_t> nodes;
    std::vector<plan::Designated> designated;
    const unsigned copies = std::min(world_.copies, world_.nodes);
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_shared = random_() % world_.chunks < world_.shared;
      const unsigned on = is_shared ? world_.nodes : world_.others;
      draw_nodes(world_.nodes, on < 2 ? 0 : std::min(on, copies), random_, nodes);
      std::sort(nodes.begin(), nodes.end());
      designated.clear();
      for (const std::uint32_t n : nodes) {
        designated.push_back({static_cast<NodeIndex>(n), false, true});
      }
      answers.add(designated);
      places.push_back(static_cast<std::uint32_t>(i));
    }
    answers.encode(places, copies, static_cast<NodeIndex>(world_.nodes), writer_);
    return finished();
  }

  template <typename Work>
  void work(const Work& something) {
    const Meter meter;
    something();
    seconds_ += meter.seconds();
    // What is kept from before is in memory, too.
    memory_ = std::max(memory_, kept_ + static_cast<std::ptrdiff_t>(meter.bytes()));
    kept_ += meter.growth();
  }

  // To others than this node itself, which is the first in its row and column.
  void send(const std::vector<Bytes>& to) {
    for (std::size_t i = 1; i < to.size(); ++i) sent_ += to[i].size();
    messages_ += to.empty() ? 0 : to.size() - 1;
  }
  void receive(const std::vector<Bytes>& from) {
    for (std::size_t i = 1; i < from.size(); ++i) received_ += from[i].size();
  }

  World world_;
  Random random_{7};
  plan::Grid grid_;
  plan::GridCount count_;
  std::vector<std::vector<Fingerprint>> of_nodes_;  // those whose home this is, by node
  std::vector<std::vector<std::size_t>> passed_;    // questions, by place in the row and home
  std::vector<Fingerprint> mine_;
  std::vector<Fingerprint> asked_;  // the same in order
  plan::BitWriter writer_;
  std::optional<plan::Weights> weights_;
  double seconds_ = 0;
  std::size_t messages_ = 0;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::ptrdiff_t memory_ = 0;
  std::ptrdiff_t kept_ = 0;
  std::size_t counted_ = 0;
};

void loads(const World& world) {
  Random random(8);
  plan::Gathering gathering(0, kAll);
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t n = 0; n < world.nodes; ++n) nodes.push_back(n);
  const auto enter = [&] {
    const Fingerprint name = name_between(0, kAll, random);
    for (const std::uint32_t n : nodes) gathering.add(name, static_cast<NodeIndex>(n), nullptr);
  };
  for (std::uint32_t i = 0; i < world.shared; ++i) enter();
  const std::uint64_t others =
      std::uint64_t{world.nodes} * (world.chunks - world.shared) / world.others;
  for (std::uint64_t i = 0; i < others; ++i) {
    draw_nodes(world.nodes, world.others, random, nodes);
    enter();
  }
  const plan::Questions questions = std::move(gathering).finish().questions;
  plan::NameCount count(questions, std::min(world.copies, world.nodes), plan::SettledChunks(1));
  plan::Loads all(static_cast<NodeIndex>(world.nodes));
  count.add_to(all);
  for (std::uint32_t n = 0; n < world.nodes; ++n) {
    all.fixed[n] += n % 3 == 2 ? world.chunks / 3 : world.chunks / 30;
  }
  plan::Weights weights(all);
  std::vector<std::uint64_t> chosen;
  int corrections = 0;
  for (;; ++corrections) {
    chosen.assign(world.nodes, 0);
    count.count_chosen(weights, chosen);
    if (weights.correct(chosen) || corrections + 1 == plan::Weights::kMostCorrections) break;
  }
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  for (std::uint32_t n = 0; n < world.nodes; ++n) {
    const std::uint64_t load = all.fixed[n] + chosen[n];
    sum += load;
    most = std::max(most, load);
  }
  std::printf(
      "{\"nodes\": %u, \"chunks\": %u, \"copies\": %u, \"shared\": %u, \"others\": %u, "
      "\"corrections\": %d, \"load_over_average\": %.4f}\n",
      world.nodes, world.chunks, world.copies, world.shared, world.others, corrections,
      static_cast<double>(most) * world.nodes / static_cast<double>(sum));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) fail("usage: count costs|loads NODES CHUNKS COPIES SHARED OTHERS");
  const World world{parse_nodes(argv[2]), parse_number(argv[3]), parse_number(argv[4]),
                    parse_number(argv[5]), parse_number(argv[6])};
  if (world.shared > world.chunks || world.others == 0 || world.others > world.nodes) {
    fail("more shared chunks than there are, or more nodes than there are");
  }
  if (std::string(argv[1]) == "loads") {
    loads(world);
  } else {
    Simulation simulation(world);
    simulation.run();
  }
  return 0;
}
