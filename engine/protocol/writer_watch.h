// Whether nobody can write to a file, which this process's own node is asked once, and told of when
// it changes: then it costs no request to know that it is still so.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/types.h"
#include "service/client.h"
#include "service/messages/store_node.h"

namespace dedup::engine {

// Of all files of a process. Thread-safe.
class WriterWatch {
 public:
  // The process's; made if there is none. It goes with its last user, before `client`.
  static std::shared_ptr<WriterWatch> of(service::Client& client);
  ~WriterWatch();

  // Since when a file is watched. All are watched anew when one of them changes.
  using Time = std::uint64_t;
  struct Watched {
    Time since = 0;
    Id128 base;  // the generation that it is; zero: none
  };
  enum class Answer {
    kWatched,
    kMayWrite,   // somebody can write, until all have closed the file
    kNotWatched  // it is not known, at the moment or ever
  };
  Answer watch(const Id128& identity, Watched& out);
  // Whether what is watched since then has not changed.
  bool holds(Time since);

 private:
  explicit WriterWatch(service::Client& client) : client_(client) {}
  void look();
  bool begin();

  service::Client& client_;
  std::mutex mutex_;
  std::optional<service::Client::Pending<service::AwaitWriter>> change_;  // under way
  Id128 ticket_;                                                          // of it
  Time now_ = 0;             // counts what was under way
  bool is_possible_ = true;  // to be told
};

}  // namespace dedup::engine
