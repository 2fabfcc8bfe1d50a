#include "engine/protocol/writer_watch.h"

#include <map>

namespace dedup::engine {
namespace {

std::mutex registry_mutex;
// One for each client, of which one program that plays several jobs has several. Never destroyed:
// files are closed while the process ends.
std::map<const service::Client*, std::weak_ptr<WriterWatch>>& registry() {
  static auto& map = *new std::map<const service::Client*, std::weak_ptr<WriterWatch>>;
  return map;
}

}  // namespace

std::shared_ptr<WriterWatch> WriterWatch::of(service::Client& client) {
  const std::lock_guard lock(registry_mutex);
  auto& entry = registry()[&client];
  std::shared_ptr<WriterWatch> watch = entry.lock();
  if (!watch) {
    watch.reset(new WriterWatch(client));
    entry = watch;
  }
  return watch;
}

WriterWatch::~WriterWatch() {
  const std::lock_guard lock(registry_mutex);
  const auto it = registry().find(&client_);
  if (it != registry().end() && it->second.expired()) registry().erase(it);
}

// To be told is asked for first, and counts only if the node has heard of that before it says that
// nobody can write. It takes a connection: so a look comes before.
WriterWatch::Answer WriterWatch::watch(const Id128& identity, Watched& out) {
  const std::lock_guard lock(mutex_);
  if (!is_possible_) return Answer::kNotWatched;
  const auto ask = [&] {
    return client_.call(client_.self(), service::AskWriters{identity, ticket_});
  };
  look();
  auto reply = ask();
  if (reply.is_ok() && reply->may_write) return Answer::kMayWrite;
  if (reply.is_ok() && !change_) {
    if (!begin()) return Answer::kNotWatched;
    reply = ask();
  }
  if (!reply.is_ok() || !reply->is_awaited) return Answer::kNotWatched;
  out = {now_, reply->base};
  return Answer::kWatched;
}

bool WriterWatch::holds(Time since) {
  const std::lock_guard lock(mutex_);
  look();
  return change_ && since == now_;
}

void WriterWatch::look() {
  if (change_ && change_->is_ready()) change_.reset();
}

bool WriterWatch::begin() {
  ticket_ = Id128::random();
  ++now_;
  change_.emplace(client_.start(client_.self(), service::AwaitWriter{ticket_}));
  // Nothing was asked about with it yet, so there is nothing to tell: it is a way by which nobody
  // can be told in time.
  is_possible_ = !change_->is_ready();
  if (!is_possible_) change_.reset();
  return is_possible_;
}

}  // namespace dedup::engine
