// The reduction's busiest node, for more nodes than there are anywhere.
//
//   reduce drawn|merged NODES F COPIES SHARED
//
// That is the node with the lowest number, whose way to the root is the longest: it merges a set
// from 1, 2, 4, … other nodes. Its own set, its merges and the messages are those of plan/reduce.h.
// With `merged` what arrives was merged from each node's set in the same way; with `drawn` it is
// drawn (sets.h). Every node has F chunks, of which SHARED are on all nodes and the others nowhere
// else. Prints one JSON object.

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/programs/beyond/meter.h"
#include "bench/programs/beyond/sets.h"

using namespace dedup;
using namespace beyond;

namespace {

void reduce(std::uint32_t nodes, std::uint32_t threshold, std::uint32_t copies,
            std::uint32_t shared, bool whole) {
  if (shared > threshold) fail("more shared chunks than the threshold");
  const Data data(nodes, threshold, copies, shared);
  plan::FrequentSet set = leaf(data, 0);
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;
  std::uint64_t elements = 0;
  std::uint64_t most_memory = 0;
  double seconds = 0;
  double longest = 0;
  unsigned merges = 0;
  for (std::uint32_t step = 1; step < nodes; step *= 2, ++merges) {
    Bytes message;
    if (whole) {
      Encoder encoder;
      merged(data, step, step).encode(encoder);
      message = encoder.take();
    } else {
      message = drawn(data, step, step);
    }
    bytes += message.size();
    largest = std::max<std::uint64_t>(largest, message.size());
    const Meter meter;
    Decoder decoder(message);
    const auto other = plan::FrequentSet::decode(decoder);
    if (!decoder.ok() || !decoder.at_end()) fail("a message that makes no sense");
    elements += set.elements().size() + other.elements().size();
    set = plan::FrequentSet::merge(set, other, data.limits);
    seconds += meter.seconds();
    longest = std::max(longest, meter.seconds());
    // The message is in memory, too.
    most_memory = std::max<std::uint64_t>(most_memory, meter.bytes() + message.size());
  }
  const Meter meter;
  set.drop_singles();
  Encoder result;
  set.encode(result);
  std::vector<std::uint32_t> load(nodes);
  for (const auto& e : set.elements()) {
    for (const plan::Designated& d : set.designated(e)) ++load[d.node];
  }
  std::printf(
      "{\"nodes\": %u, \"node_bits\": %zu, \"threshold\": %u, \"copies\": %u, \"shared\": %u, "
      "\"merges\": %u, \"bytes_received\": %llu, \"largest_message\": %llu, "
      "\"elements_merged\": %llu, \"seconds_merging\": %.6f, \"longest_merge\": %.6f, "
      "\"bytes_memory\": %llu, \"bytes_result\": %zu, \"result\": %zu, \"most_designated\": %u}\n",
      nodes, 8 * sizeof(NodeIndex), threshold, copies, shared, merges,
      static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(largest),
      static_cast<unsigned long long>(elements), seconds, longest,
      static_cast<unsigned long long>(most_memory), result.size(), set.elements().size(),
      *std::max_element(load.begin(), load.end()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("usage: reduce drawn|merged NODES F COPIES SHARED");
  reduce(parse_nodes(argv[2]), parse_number(argv[3]), parse_number(argv[4]), parse_number(argv[5]),
         std::string(argv[1]) == "merged");
  return 0;
}
