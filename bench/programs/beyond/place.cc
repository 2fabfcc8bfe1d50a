// What every leader does once the reduction is over, and what an open does, for many nodes.
//
//   place load|ring NODES COPIES paper|lognormal SHARED    plan/deal.h
//   place choose NODES                                     store/choose.h
//
// SHARED chunks are on all nodes and designated to COPIES of them, in turn; others only one node
// has. Prints one JSON object.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/fields.h"
#include "bench/programs/beyond/meter.h"
#include "bench/programs/beyond/sets.h"
#include "plan/deal.h"
#include "service/messages/store_node.h"
#include "store/choose.h"
#include "store/segment.h"

using namespace dedup;
using namespace beyond;

namespace {

// Chunks that each node has alone. "paper": 100 for every third node, 10 for the others (IPDPS
// 2015, III-B), in random order; else around 1000, lognormal with a standard deviation of half the
// logarithm.
std::vector<std::uint64_t> chunks_alone(std::uint32_t nodes, const std::string& kind) {
  Random random(3);
  std::vector<std::uint64_t> out(nodes);
  std::lognormal_distribution<double> lognormal(std::log(1000.0), 0.5);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    out[n] = kind == "paper" ? (n % 3 == 2 ? 100 : 10)
                             : static_cast<std::uint64_t>(std::llround(lognormal(random)));
  }
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

void place(std::uint32_t nodes, std::uint32_t copies, bool ring, const std::string& kind,
           std::uint32_t shared) {
  const Data data(nodes, std::max(shared, 1u), copies, shared);
  plan::FrequentSet result;
  if (shared > 0) {
    const Bytes message = drawn(data, 0, nodes);
    Decoder decoder(message);
    result = plan::FrequentSet::decode(decoder);
    result.drop_singles();
  }
  std::vector<plan::NodeState> states;
  const std::vector<std::uint64_t> alone = chunks_alone(nodes, kind);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    states.push_back(
        {static_cast<NodeIndex>(n), std::uint64_t{1} << 50, alone[n], alone[n] * kChunk, 0, 0});
  }
  const Meter meter;
  const plan::Dealing dealing =
      plan::deal_all({data.limits.copies, ring, store::kMostBesideChunk, states, &result, {}});
  const double seconds = meter.seconds();
  if (!dealing.feasible) fail("there is room, and no dealing");
  std::vector<std::uint64_t> sent(nodes);
  std::vector<std::uint64_t> received(nodes);
  for (const plan::Flow& flow : dealing.flows) {
    sent[flow.from] += flow.chunks;
    received[flow.to] += flow.chunks;
  }
  const auto over_average = [&](const std::vector<std::uint64_t>& all) {
    double sum = 0;
    for (const std::uint64_t one : all) sum += static_cast<double>(one);
    return static_cast<double>(*std::max_element(all.begin(), all.end())) * nodes / sum;
  };
  std::printf(
      "{\"nodes\": %u, \"copies\": %u, \"partners\": \"%s\", \"data\": \"%s\", \"shared\": %u, "
      "\"seconds\": %.6f, \"bytes_memory\": %zu, \"bytes_gathered\": %llu, \"flows\": %zu, "
      "\"send_over_average\": %.4f, \"receive_over_average\": %.4f}\n",
      nodes, copies, ring ? "ring" : "load", kind.c_str(), shared, seconds, meter.bytes(),
      48ULL * nodes, dealing.flows.size(), over_average(sent), over_average(received));
}

void choose(std::uint32_t nodes) {
  Random random(4);
  const auto id = [&] {
    Id128 out;
    for (auto& byte : out.bytes) byte = static_cast<std::uint8_t>(random());
    return out;
  };
  store::CommitRecord record;
  record.identity = id();
  record.number = 7;
  record.attempt = id();
  record.replication = 3;
  record.chunk_size = kChunk;
  record.fingerprint = "sha256";
  record.path = "/scratch/run/checkpoint";
  record.lineage = {{id(), 7}};
  for (std::uint32_t n = 0; n < nodes; ++n) {
    record.stores.push_back({id(), "node" + std::to_string(n)});
    record.shards.push_back({{},
                             {static_cast<NodeIndex>(n), static_cast<NodeIndex>((n + 1) % nodes),
                              static_cast<NodeIndex>((n + 2) % nodes)}});
  }
  const Bytes whole = record.encode();
  // As engine/protocol/search.cc has it: a digest from every node, and the record from one.
  service::FindReply reply;
  reply.records.push_back(record);
  std::vector<Bytes> answers;
  std::size_t gathered = whole.size();
  for (std::uint32_t n = 0; n < nodes; ++n) {
    reply.store = {record.stores[n].uuid, record.stores[n].node};
    gathered += answers.emplace_back(encoded(reply)).size();
  }
  const Meter meter;
  store::KnownRecords known;
  auto first = store::CommitRecord::decode(whole);
  if (!first.is_ok()) fail(first.status().message());
  known.add(std::move(*first));
  std::vector<store::StoreReport> reports(nodes);
  for (std::uint32_t n = 0; n < nodes; ++n) {
    auto told = decoded<service::FindReply>(answers[n]);
    if (!told || !known.complete(told->records.at(0))) fail("an answer that cannot be");
    reports[n].node = static_cast<NodeIndex>(n);
    reports[n].store = told->store.uuid;
    reports[n].node_name = told->store.node;
    reports[n].records = std::move(told->records);
  }
  const auto choice = store::choose_generation(record.path, reports);
  if (!choice.is_ok() || !choice->exists || !choice->missing.empty()) fail("a wrong choice");
  std::printf(
      "{\"nodes\": %u, \"bytes_record\": %zu, \"bytes_gathered\": %llu, \"seconds\": %.6f, "
      "\"bytes_memory\": %zu}\n",
      nodes, whole.size(), static_cast<unsigned long long>(gathered), meter.seconds(),
      meter.bytes());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "choose" && argc == 3) {
    choose(parse_nodes(argv[2]));
  } else if ((what == "load" || what == "ring") && argc == 6) {
    place(parse_nodes(argv[2]), parse_number(argv[3]), what == "ring", argv[4],
          parse_number(argv[5]));
  } else {
    fail("usage: place load|ring NODES COPIES paper|lognormal SHARED, or place choose NODES");
  }
  return 0;
}
