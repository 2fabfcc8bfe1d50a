#include "store/flush.h"

#include <linux/magic.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

#include "base/barrier.h"
#include "base/thread.h"
#include "store/fs.h"
#include "store/system.h"

namespace dedup::store {
namespace {

// More than that hardly share anything any more.
constexpr std::size_t kMostThreads = 16;

Status flush_file(const std::string& path) {
  DEDUP_ASSIGN(const fs::File file, fs::open_read(path));
  return fs::sync_data(file);
}

// Whether there is something to wait for, and may be waited for at once.
bool is_worth_threads(const std::string& path) {
  struct statfs about;
  return system().takes_calls_at_once() && system().statfs(path.c_str(), &about) == 0 &&
         about.f_type != TMPFS_MAGIC && about.f_type != RAMFS_MAGIC;
}

}  // namespace

Status flush_together(const std::vector<std::string>& files,
                      const std::vector<std::string>& directories) {
  const std::size_t count = files.size() + directories.size();
  std::vector<Status> done(count);
  const auto flush = [&](std::size_t i) {
    const Status thrown = no_exceptions([&] {
      done[i] = i < files.size() ? flush_file(files[i])
                                 : fs::sync_directory(directories[i - files.size()]);
    });
    if (!thrown.is_ok()) done[i] = thrown;
    return done[i].is_ok();
  };
  const auto first_error = [&] {
    const auto it = std::find_if(done.begin(), done.end(),
                                 [](const Status& status) { return !status.is_ok(); });
    return it == done.end() ? Status::ok() : *it;
  };
  if (count < 2 || !is_worth_threads(files.empty() ? directories[0] : files[0])) {
    for (std::size_t i = 0; i < count && flush(i); ++i) {
    }
    return first_error();
  }
  const std::size_t threads = std::min(count, kMostThreads);
  const auto flush_some = [&](std::size_t first) {
    for (std::size_t i = first; i < count; i += threads) flush(i);
  };
  std::vector<std::thread> others;
  others.reserve(threads);
  for (std::size_t t = 1; t < threads; ++t) {
    auto started = start_thread("dedup-flush", [&flush_some, t] { flush_some(t); });
    if (started.is_ok()) {
      others.push_back(std::move(*started));
    } else {
      flush_some(t);
    }
  }
  flush_some(0);
  for (std::thread& other : others) other.join();
  return first_error();
}

}  // namespace dedup::store
