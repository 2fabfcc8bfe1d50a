// What this process writes back in the background (dedup_flush=background): parts of files, one
// after the other, in a thread of its own.
//
// Whoever closes such a file adds the parts of the nodes that he speaks for. Each has the file open
// (service/messages/file_home.h, BeginWriteBack); the writer that ends last, of all nodes', puts
// the copy at the path and closes the file. A writer that gets an error keeps its part, and tries
// again when the next file is closed and before MPI_Finalize.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "engine/protocol/part_writer.h"
#include "service/executor.h"

namespace dedup::engine {

struct JobFile;

// Thread-safe, but for finish() and stop(), which are one thread's at a time.
class Flusher {
 public:
  explicit Flusher(const service::Executor::Options& options = service::Executor::Options());
  // stop().
  ~Flusher();

  // Takes over the part of writer `writer` of `file`, whose client must outlive this.
  void add(const JobFile& file, const Id128& handle, const CopyTarget& target, std::uint32_t writer,
           std::vector<ByteRange> ranges);
  // Of parts that are not ended and not being tried again now: the file's path, and why.
  using Troubles = std::vector<std::pair<std::string, std::string>>;
  Troubles troubles();
  // What has failed is tried again.
  void retry();
  // Lets go of parts of this file that are not wanted any more. For whoever has just opened it:
  // what they have of its store (LocalFile) may be of before others closed it.
  void drop_unwanted(const Id128& identity);

  struct Progress {
    std::size_t parts = 0;  // not ended
    std::uint64_t bytes_left = 0;
  };
  // Waits until all has ended, but for what is left to others (dedup_flush_wait), which stops.
  // Calls `tell` now and then. What fails again is given up, and said.
  void finish(const std::function<void(const Progress&)>& tell);
  // Nothing is written any more when it returns. What is not done stays for who comes next.
  void stop();
  // By hand, in place of the thread: a step, if there is something to do. False if there was not.
  bool run_one();

 private:
  class Part;
  class Task;

  void start(const std::shared_ptr<Part>& part);
  void ended(const std::shared_ptr<Part>& part, const Status& outcome);
  void leave_to_others();
  Progress progress() const;

  mutable std::mutex mutex_;
  std::map<service::Executor::Ticket, std::shared_ptr<Part>> running_;
  std::vector<std::shared_ptr<Part>> failed_;
  service::Executor executor_;  // goes first
};

}  // namespace dedup::engine
