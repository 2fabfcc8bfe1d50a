#include "service/neighbours.h"

#include <set>
#include <string>

#include "service/known_places.h"
#include "service/messages/store_node.h"

namespace dedup::service {

class Neighbours::Store : public store::ChunkReader {
 public:
  Store(Neighbours& neighbours, NodeIndex node, const Locate& locate)
      : neighbours_(neighbours), node_(node), locate_(locate) {}

 private:
  std::optional<std::vector<store::ChunkLocation>> locate(
      std::span<const Fingerprint> fingerprints) override {
    return locate_(fingerprints);
  }
  std::shared_ptr<const store::SegmentReader> segment(std::uint64_t number) override {
    if (not_lent_.contains(number)) return nullptr;
    auto reader = neighbours_.segment(node_, number);
    if (reader == nullptr) not_lent_.insert(number);
    return reader;
  }

  Neighbours& neighbours_;
  NodeIndex node_;
  const Locate& locate_;
  std::set<std::uint64_t> not_lent_;  // once is enough to ask
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
                                          const Locate& locate) {
  return Store(*this, node, locate).read(chunks);
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
      (*std::move(lent))
          .open("node " + client_.node_name(node) + ", " + store::segment_text(identity_, number));
  if (!reader.is_ok()) return nullptr;
  const std::lock_guard lock(mutex_);
  return lent_.insert({node, number}, *std::move(reader));
}

}  // namespace dedup::service
