#include "engine/protocol/settled.h"

#include <utility>

namespace dedup::engine {

bool Settled::is(const Id128& attempt) {
  const std::lock_guard lock(mutex_);
  if (writer_ && writer_->is_ready()) writer_.reset();
  return writer_ ? attempt == attempt_ : ask(attempt);
}

// The order is to be told first, and it counts only if the node has heard of that before it says
// that nobody can write. To be told takes a connection: so a look comes before.
bool Settled::ask(const Id128& attempt) {
  const Id128 ticket = Id128::random();
  const auto look = [&] {
    return client_.call(client_.self(), service::AskWriters{identity_, ticket});
  };
  const auto first = look();
  if (!first.is_ok() || first->may_write || first->base != attempt) return false;
  auto writer = client_.start(client_.self(), service::AwaitWriter{identity_, ticket});
  const auto second = look();
  if (!second.is_ok() || !second->is_awaited || second->base != attempt) return false;
  blocks_.clear();
  places_.clear();
  writer_.emplace(std::move(writer));
  attempt_ = attempt;
  return true;
}

Result<std::vector<std::shared_ptr<const Block>>> Settled::read(const BaseRecipe& recipe,
                                                                const Id128& attempt,
                                                                std::vector<std::uint64_t> blocks,
                                                                std::uint64_t end) {
  std::vector<std::shared_ptr<const Block>> out(blocks.size());
  std::vector<std::uint64_t> unknown;
  std::vector<std::size_t> where;
  {
    const std::lock_guard lock(mutex_);
    const auto look_up = [&](std::uint64_t block) {
      return attempt == attempt_ ? blocks_.find(block) : nullptr;
    };
    const auto add = [&](std::size_t i) {
      if (const auto* const known = look_up(blocks[i])) {
        out[i] = *known;
      } else {
        unknown.push_back(blocks[i]);
        where.push_back(i);
      }
    };
    for (std::size_t i = 0; i < out.size(); ++i) add(i);
    // Whoever reads one block after the other, or that piece by piece.
    const bool goes_on = !unknown.empty() && unknown[0] > 0 && look_up(unknown[0] - 1) != nullptr;
    for (std::uint64_t n = 0; goes_on && n < kAhead && blocks.back() + 1 < end; ++n) {
      blocks.push_back(blocks.back() + 1);
      out.emplace_back();
      add(out.size() - 1);
    }
  }
  if (unknown.empty()) return out;
  DEDUP_ASSIGN(std::vector<Block> fresh, recipe.read(unknown));
  const std::lock_guard lock(mutex_);
  for (std::size_t k = 0; k < unknown.size(); ++k) {
    const std::size_t bytes = plan::memory_of(fresh[k]);
    out[where[k]] = std::make_shared<const Block>(std::move(fresh[k]));
    if (attempt == attempt_) blocks_.insert(unknown[k], out[where[k]], bytes);
  }
  return out;
}

}  // namespace dedup::engine
