#include "engine/dump/store_and_exchange.h"

#include <vector>

#include "engine/chunks/copies.h"
#include "engine/chunks/own_chunks.h"
#include "engine/chunks/timer.h"

namespace dedup::engine {
namespace {

// Stores copies that other nodes sent, as they arrive.
class ArrivedCopies {
 public:
  ArrivedCopies(const ExchangeShape& shape, const plan::FrequentSet& frequent, ChunkWriter& writer,
                FirstError& error)
      : shape_(shape), frequent_(frequent), writer_(writer), error_(error) {}

  void store(std::span<const Parcel> parcels) {
    if (!error_.none()) return;
    std::vector<StoredChunk> batch;
    for (const Parcel& parcel : parcels) {
      auto chunk = read_parcel(parcel, shape_.number, writer_.placements());
      error_.note(chunk.status());
      if (!chunk.is_ok()) return;
      bytes_ += parcel.data.size();
      chunk->yields = !chunk->single && frequent_.find(chunk->fingerprint) == nullptr;
      batch.push_back(*chunk);
    }
    error_.note(writer_.store_copies(batch, shape_.round));
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const ExchangeShape& shape_;
  const plan::FrequentSet& frequent_;
  ChunkWriter& writer_;
  FirstError& error_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Moved store_and_exchange(const NamedChunks& chunks, const Verdicts& verdicts, const Sends& sends,
                         const plan::FrequentSet& frequent, const NodePlan& plan,
                         const ExchangeShape& shape, Exchange& exchange, DumpStripes& stripes,
                         ChunkWriter& writer, FirstError& error) {
  Moved moved;
  OwnChunks own(chunks, verdicts, writer, error);
  ArrivedCopies arrived(shape, frequent, writer, error);
  const auto store_some = [&] {
    const Timer timer(moved.seconds_storing);
    return own.store_some();
  };
  if (plan.rounds != 0) {
    ExchangePlan out;
    out.ranges = sends.ranges;
    out.incoming = plan.incoming;
    out.rounds = plan.rounds;
    out.header_size = shape.header_size;
    out.longest = shape.longest;
    out.fill = [&](std::size_t range, std::uint64_t number,
                   std::byte* to) -> std::span<const std::byte> {
      const std::span<std::byte> header(to, shape.header_size);
      const std::uint32_t chunk = sends.chunk_of(range, number);
      if (chunk == Sends::kNone) {
        write_no_copy(header);
        return {};
      }
      const auto slot = static_cast<std::uint32_t>(sends.ranges[range].first + number);
      const CopyHeader said{chunks.name(chunk), shape.number, slot, chunks.is_single(chunk),
                            chunks.checksum(chunk)};
      said.write(verdicts[chunk].placement, header);
      return chunks.data(chunk);
    };
    out.drain = [&](std::span<const Parcel> parcels) {
      const Timer timer(moved.seconds_storing);
      arrived.store(parcels);
    };
    out.meanwhile = store_some;
    exchange.run(out);
  }
  stripes.make(store_some, writer, error);
  while (store_some()) {
  }
  moved.bytes_kept = own.bytes();
  moved.bytes_received = arrived.bytes();
  return moved;
}

void put_to_guests(const NamedChunks& chunks, const Verdicts& verdicts, const Sends& sends,
                   const Topology& topology, ChunkWriter& writer, FirstError& error) {
  std::vector<StoredChunk> batch;
  for (auto it = sends.list.begin(); it != sends.list.end() && error.none();) {
    const NodeIndex target = it->target;
    const bool reached = topology.represented(target);
    for (; it != sends.list.end() && it->target == target; ++it) {
      if (reached) continue;
      batch.push_back({chunks.name(it->chunk), chunks.data(it->chunk),
                       writer.placements().number(verdicts[it->chunk].placement)});
    }
    if (!batch.empty()) error.note(writer.put(target, batch));
    batch.clear();
  }
}

}  // namespace dedup::engine
