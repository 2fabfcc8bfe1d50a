#include "test/simulation/rank_fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace dedup::simulation {
namespace {

constexpr std::size_t kStack = std::size_t{1} << 20;
constexpr std::uint64_t kEnvelope = 24;      // engine/mpi/checked_message.h
constexpr std::uint64_t kCarried = 1 << 16;  // likewise
constexpr std::uint64_t kLowestLetter = 2 * kEnvelope;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "ranks: %s\n", what);
  std::abort();
}

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

// ---- Stacks ------------------------------------------------------------------------------------

struct RankFibers::Fiber {
  Fiber(int the_rank, ucontext_t& the_return, std::function<void()> the_work)
      : rank(the_rank), back(the_return), work(std::move(the_work)) {
    stack = ::mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) fail("no memory for a stack");
    if (::getcontext(&context) != 0) fail("getcontext failed");
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = kStack;
    context.uc_link = &back;
    // makecontext() passes ints.
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    ::makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::begin), 2,
                  static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  }
  ~Fiber() { ::munmap(stack, kStack); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  static void begin(unsigned high, unsigned low) {
    auto* const self = reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low);
    self->work();
    self->is_done = true;
  }

  int rank;
  ucontext_t& back;
  ucontext_t context{};
  std::function<void()> work;
  void* stack = nullptr;
  bool is_done = false;
};

// ---- Ranks -------------------------------------------------------------------------------------

class RankFibers::Rank final : public Ranks {
 public:
  Rank(RankFibers& all, int rank) : all_(all), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return all_.size(); }
  int speaker_for(NodeIndex node) const override { return node; }

  Status combine(Combining how, std::span<std::uint64_t> values, Waiting) const override {
    Step& step = all_.enter(rank_);
    if (step.came == 1) step.values.assign(values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint64_t& all = step.values[i];
      if (step.came == 1) continue;
      all = how == Combining::kSum     ? all + values[i]
            : how == Combining::kLeast ? std::min(all, values[i])
                                       : std::max(all, values[i]);
    }
    all_.wait_until([&] { return step.came == size(); });
    std::copy(step.values.begin(), step.values.end(), values.begin());
    for (int distance = 1; distance < size(); distance *= 2) {
      all_.count(rank_, (rank_ + distance) % size(), values.size_bytes());
    }
    all_.leave(rank_);
    return Status::ok();
  }
  void broadcast(Bytes& bytes, int root) const override {
    Step& step = all_.enter(rank_);
    if (rank_ == root) step.bytes = {bytes};
    all_.wait_until([&] { return !step.bytes.empty(); });
    bytes = step.bytes.front();
    if (rank_ == root) all_.count_tree(root, {}, kEnvelope + bytes.size());
    all_.leave(rank_);
  }
  void broadcast(Id128& id) const override {
    Bytes bytes = encoded(id);
    broadcast(bytes, 0);
    id = decoded<Id128>(bytes).value();
  }
  std::vector<Bytes> gather(const Bytes& mine) const override {
    Step& step = all_.enter(rank_);
    step.bytes.resize(at(size()));
    step.bytes[at(rank_)] = mine;
    std::vector<Bytes> gathered;
    if (rank_ == 0) {
      all_.wait_until([&] { return step.came == size(); });
      std::vector<std::uint64_t> sizes;
      for (const Bytes& bytes : step.bytes) sizes.push_back(bytes.size());
      all_.count_tree(0, sizes, 0);
      gathered = std::move(step.bytes);
    }
    all_.leave(rank_);
    return gathered;
  }
  std::vector<Bytes> exchange(const std::vector<Bytes>& to) const override {
    Step& step = all_.enter(rank_);
    step.to_each.resize(at(size()));
    step.to_each[at(rank_)] = to;
    all_.wait_until([&] { return step.came == size(); });
    std::vector<Bytes> from;
    for (int r = 0; r < size(); ++r) {
      from.push_back(step.to_each[at(r)][at(rank_)]);
      if (r != rank_) all_.count(rank_, r, kEnvelope + to[at(r)].size());
    }
    all_.leave(rank_);
    return from;
  }
  void exchange_letters(std::span<const int> partners, std::span<const Letter> to,
                        std::vector<Letter>& from,
                        const std::function<void()>& meanwhile) const override {
    for (std::size_t i = 0; i < partners.size(); ++i) {
      all_.letters_[{rank_, partners[i]}].push_back(to[i]);
      if (partners[i] == rank_) continue;
      all_.count(rank_, partners[i], kLowestLetter);
      for (const Bytes* const bytes : {&to[i].said, &to[i].bulk}) {
        if (!bytes->empty()) all_.count(rank_, partners[i], bytes->size());
      }
    }
    ++all_.progress_;
    meanwhile();
    from.clear();
    for (const int partner : partners) {
      std::deque<Letter>& letters = all_.letters_[{partner, rank_}];
      all_.wait_until([&] { return !letters.empty(); });
      from.push_back(std::move(letters.front()));
      letters.pop_front();
    }
  }

 private:
  RankFibers& all_;
  int rank_;
};

// ---- All of them -------------------------------------------------------------------------------

RankFibers::RankFibers(int ranks) : traffic_(at(ranks)), next_step_(at(ranks)) {
  for (int r = 0; r < ranks; ++r) ranks_.push_back(std::make_unique<Rank>(*this, r));
}

RankFibers::~RankFibers() = default;

const Ranks& RankFibers::rank(int rank) const {
  return *ranks_[at(rank)];
}

void RankFibers::run(const std::function<void(int rank)>& what) {
  ucontext_t scheduler{};
  fibers_.clear();
  for (int r = 0; r < size(); ++r) {
    fibers_.push_back(std::make_unique<Fiber>(r, scheduler, [&what, r] { what(r); }));
  }
  std::size_t done = 0;
  while (done < fibers_.size()) {
    const std::uint64_t before = progress_;
    for (const auto& fiber : fibers_) {
      if (fiber->is_done) continue;
      if (on_switch) on_switch(fiber->rank);
      running_ = fiber.get();
      if (::swapcontext(&scheduler, &fiber->context) != 0) fail("swapcontext failed");
      running_ = nullptr;
      if (!fiber->is_done) continue;
      ++done;
      ++progress_;
    }
    if (progress_ == before) fail("all wait for each other");
  }
  if (on_switch) on_switch(-1);
  fibers_.clear();
}

void RankFibers::yield() {
  if (::swapcontext(&running_->context, &running_->back) != 0) fail("swapcontext failed");
}

void RankFibers::wait_until(const std::function<bool()>& is_so) {
  while (!is_so()) yield();
}

RankFibers::Step& RankFibers::enter(int rank) {
  Step& step = steps_[next_step_[at(rank)]];
  ++step.came;
  ++progress_;
  return step;
}

void RankFibers::leave(int rank) {
  const std::uint64_t number = next_step_[at(rank)]++;
  ++progress_;
  if (++steps_[number].left == size()) steps_.erase(number);
}

void RankFibers::reset_traffic() {
  traffic_.assign(traffic_.size(), {});
}

void RankFibers::count(int from, int to, std::uint64_t bytes) {
  ++traffic(from).sent;
  traffic(from).sent_bytes += bytes;
  ++traffic(to).received;
  traffic(to).received_bytes += bytes;
}

// Along a binomial tree: `up`, what each rank has for the root; or so many bytes down to each.
void RankFibers::count_tree(int root, const std::vector<std::uint64_t>& up, std::uint64_t down) {
  std::vector<std::uint64_t> bundles;
  for (const std::uint64_t size : up) bundles.push_back(kEnvelope + (size > kCarried ? 0 : size));
  for (int distance = 1; distance < size(); distance *= 2) {
    for (int r = 0; r + distance < size(); r += 2 * distance) {
      const int parent = (r + root) % size();
      const int child = (r + distance + root) % size();
      if (up.empty()) {
        count(parent, child, down);
        continue;
      }
      count(child, parent, kEnvelope);
      count(child, parent, bundles[at(child)]);
      bundles[at(parent)] += bundles[at(child)];
    }
  }
  for (int r = 1; r < static_cast<int>(up.size()); ++r) {
    if (up[at(r)] > kCarried) count(r, 0, up[at(r)]);
  }
}

}  // namespace dedup::simulation
