#include "service/neighbours.h"

#include <string>

#include "service/known_places.h"
#include "service/messages/store_node.h"

namespace dedup::service {

class Neighbours::Store : public store::ChunkReader {
 public:
  Store(Neighbours& neighbours, NodeIndex node, const Locate& locate, store::StretchEnds* ends)
      : ChunkReader(ends), neighbours_(neighbours), node_(node), locate_(locate) {}

 private:
  std::optional<std::vector<store::ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) override {
    return locate_(fingerprints);
  }
  std::shared_ptr<const store::SegmentReader> segment(std::uint64_t number) override {
    if (const auto* const asked = asked_.find(number)) return *asked;
    return asked_.insert(number, neighbours_.segment(node_, number));
  }

  Neighbours& neighbours_;
  NodeIndex node_;
  const Locate& locate_;
  // Once is enough to ask, also for what was not lent.
  Lru<std::uint64_t, std::shared_ptr<const store::SegmentReader>> asked_{kMostLent};
};

bool Neighbours::has(NodeIndex node) {
  {
    const std::lock_guard lock(mutex_);
    if (lends_nothing_.contains(node)) return false;
  }
  return client_.is_neighbour(node);
}

std::vector<std::size_t> Neighbours::read(NodeIndex node,
                                          std::span<const store::ChunkTarget> chunks,
                                          const Locate& locate, store::StretchEnds* ends) {
  return Store(*this, node, locate, ends).read(chunks);
}

std::vector<std::size_t> Neighbours::read(NodeIndex node,
                                          std::span<const store::ChunkTarget> chunks) {
  return read(node, chunks, [&](std::span<const Fingerprint> fingerprints) {
    return locate_at(client_, identity_, node, fingerprints);
  });
}

void Neighbours::forget() {
  const std::lock_guard lock(mutex_);
  lent_.clear();
  lends_nothing_.clear();
}

std::shared_ptr<const store::SegmentReader> Neighbours::segment(NodeIndex node,
                                                                std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* const known = lent_.find({node, number})) return *known;
  }
  auto lent = client_.borrow(node, LendSegment{identity_, number});
  if (lent.status().code() == Code::kUnsupported) {
    const std::lock_guard lock(mutex_);
    lends_nothing_.insert(node);
  }
  if (!lent.is_ok()) return nullptr;
  auto reader =
      std::move(lent->segment)
          .open("node " + client_.node_name(node) + ", " + store::segment_text(identity_, number));
  if (!reader.is_ok()) return nullptr;
  if (lent->reply.may_move) return *std::move(reader);
  const std::lock_guard lock(mutex_);
  return lent_.insert({node, number}, *std::move(reader));
}

}  // namespace dedup::service
