#include "engine/protocol/settled.h"

#include <utility>

namespace dedup::engine {

Settled::Settled(service::Client& client, const Id128& identity)
    : identity_(identity), watch_(WriterWatch::of(client)) {}

bool Settled::is(const Id128& attempt) {
  const std::lock_guard lock(mutex_);
  if (may_write_) return false;
  if (!watched_ || !watch_->holds(watched_->since)) {
    WriterWatch::Watched watched;
    const WriterWatch::Answer answer = watch_->watch(identity_, watched);
    may_write_ = answer == WriterWatch::Answer::kMayWrite;
    watched_.reset();
    if (answer != WriterWatch::Answer::kWatched) return false;
    watched_ = watched;
  }
  if (watched_->base != attempt) return false;
  // What is known of a generation stays true when others of this process's files change.
  if (attempt_ != attempt) {
    blocks_.clear();
    places_.clear();
    attempt_ = attempt;
  }
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
