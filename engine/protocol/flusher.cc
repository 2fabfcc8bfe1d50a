#include "engine/protocol/flusher.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/warn.h"
#include "engine/protocol/failpoint.h"
#include "engine/protocol/job_file.h"
#include "engine/protocol/leave.h"
#include "engine/protocol/write_back.h"
#include "service/messages/file_home.h"

namespace dedup::engine {

namespace {

constexpr std::chrono::milliseconds kTold{500};

}  // namespace

using service::TellWritten;
using service::WriteBackState;

// A part, and the file as this writer has it open. Used by the executor's thread while it runs.
class Flusher::Part {
 public:
  Part(const JobFile& file, const Id128& handle, const CopyTarget& target, std::uint32_t writer,
       std::vector<ByteRange> ranges)
      : file_(file.client(), alone_),
        target_(target),
        attempt_(file.view()->base()),
        writer_(opened(file, handle), target, writer, std::move(ranges)),
        bytes_left_(writer_.bytes_left()) {}

  const JobFile& file() const { return file_; }
  std::uint64_t bytes_left() const { return bytes_left_; }

  Result<service::Executor::Progress> step() {
    failpoint("writeback.step");
    service::Executor::Progress progress;
    DEDUP_ASSIGN(progress.done, has_ended_unwanted());
    if (progress.done) return progress;
    if (!writer_.is_done()) {
      DEDUP_ASSIGN(progress.bytes, writer_.step());
      bytes_left_ = writer_.bytes_left();
    }
    if (!writer_.is_to_be_noted()) return progress;
    DEDUP_TRY(writer_.flush());
    // Before it is noted: what was read counts if nobody has opened the file for writing by now.
    DEDUP_ASSIGN(progress.done, has_ended_unwanted());
    if (progress.done) return progress;
    writer_.note();
    failpoint("writeback.noted");
    progress.done = writer_.is_done();
    if (progress.done) end(TellWritten::Of::kEnd, {});
    return progress;
  }

  // Ends it if somebody writes to the file, or has deleted it.
  Result<bool> has_ended_unwanted() {
    DEDUP_ASSIGN(const WriteBackState state, tell(TellWritten::Of::kProgress, {}));
    if (!state.is_wanted) end(TellWritten::Of::kGivenUp, {});
    return !state.is_wanted;
  }

  void say_trouble(const Status& trouble) {
    trouble_ = trouble;
    writer_.note_trouble(trouble.message());
    const auto state = tell(TellWritten::Of::kTrouble, {});
    if (state.is_ok() && !(state->is_wanted && state->is_first_trouble)) return;
    warn(file_.path + ": is not written back yet: " + trouble.message() +
         (state.is_ok() ? "; it is tried again at the next close and by MPI_Finalize"
                        : "; dedupctl flush goes on with it"));
  }

  // While no thread takes steps.
  const Status& trouble() const { return trouble_; }
  void give_up() { end(TellWritten::Of::kGivenUp, trouble_); }

  // One writer for all.
  void say_left() {
    const auto state = tell(TellWritten::Of::kTrouble, {});
    if (state.is_ok() && !(state->is_wanted && state->is_first_trouble)) return;
    warn(file_.path + ": is not written back yet: dedupctl flush goes on with it");
  }

  bool is_over() const { return is_over_; }
  // As far as can be told; at any time.
  bool is_wanted() {
    const auto state = tell(TellWritten::Of::kProgress, {});
    return !state.is_ok() || state->is_wanted;
  }

 private:
  JobFile& opened(const JobFile& file, const Id128& handle) {
    file_.hints = file.hints;
    file_.path = file.path;
    file_.handle = handle;
    file_.home = file.home;
    file_.writable = true;
    file_.local = file.local;
    file_.flusher = file.flusher;
    file_.set_view(*file.view());
    return file_;
  }

  Result<WriteBackState> tell(TellWritten::Of of, const Status& trouble) {
    const TellWritten request{
        file_.identity(), file_.handle, writer_.writer(), of, trouble.code() == Code::kNoSpace,
        trouble.message()};
    return file_.client().call(file_.home, request);
  }

  // Nothing of the file is used when the home hears of it.
  void end(TellWritten::Of of, const Status& trouble) {
    is_over_ = true;
    writer_.close();
    file_.local.reset();
    const auto state = tell(of, trouble);
    if (!state.is_ok()) return say_failure(state.status().message());
    if (state->is_last) close(*state);
  }

  // By the last writer, for all.
  void close(const WriteBackState& state) {
    const bool is_whole = state.is_wanted && !state.has_failed;
    // Who has no room is not helped by half a copy; otherwise somebody goes on with it.
    if (!state.is_wanted || state.has_no_room) discard_copy(file_, target_.id);
    const Status left =
        is_whole ? leave_with_copy(file_, target_.id, attempt_) : leave(file_, Leaving::kAsItIs);
    if (state.is_wanted && state.has_failed) say_failure(state.trouble);
    if (!left.is_ok()) say_error(left.message());
  }

  void say_failure(const std::string& why) const {
    say_error(file_.path + ": could not be written back (its data stays in the stores): " + why +
              "; dedupctl flush tries again");
  }

  OneRank alone_;
  JobFile file_;
  const CopyTarget target_;
  const Id128 attempt_;
  PartWriter writer_;
  std::atomic<std::uint64_t> bytes_left_;
  std::atomic<bool> is_over_ = false;
  Status trouble_;  // the last
};

class Flusher::Task final : public service::Executor::Task {
 public:
  Task(Flusher& flusher, std::shared_ptr<Part> part) : flusher_(flusher), part_(std::move(part)) {}

  Result<service::Executor::Progress> step(service::Executor::Beside&) override {
    auto done = part_->step();
    if (!done.is_ok()) part_->say_trouble(done.status());
    return done;
  }
  void ended(const Status& outcome) override { flusher_.ended(part_, outcome); }

 private:
  Flusher& flusher_;
  std::shared_ptr<Part> part_;
};

Flusher::Flusher(const service::Executor::Options& options) : executor_(options) {
  executor_.set_waker([] {});
}

Flusher::~Flusher() {
  stop();
}

void Flusher::add(const JobFile& file, const Id128& handle, const CopyTarget& target,
                  std::uint32_t writer, std::vector<ByteRange> ranges) {
  start(std::make_shared<Part>(file, handle, target, writer, std::move(ranges)));
}

void Flusher::start(const std::shared_ptr<Part>& part) {
  const std::lock_guard lock(mutex_);
  const auto ticket =
      executor_.add(std::make_unique<Task>(*this, part), service::Executor::Precedence::kBackground,
                    part->file().hints.flush_rate);
  running_.emplace(ticket, part);
}

void Flusher::ended(const std::shared_ptr<Part>& part, const Status& outcome) {
  const std::lock_guard lock(mutex_);
  const auto ended = std::erase_if(running_, [&](const auto& one) { return one.second == part; });
  // One that was left is nobody's any more.
  if (ended != 0 && !outcome.is_ok()) failed_.push_back(part);
}

Flusher::Troubles Flusher::troubles() {
  executor_.deliver();
  const std::lock_guard lock(mutex_);
  Troubles troubles;
  for (const auto& part : failed_) {
    if (!part->is_over()) troubles.emplace_back(part->file().path, part->trouble().message());
  }
  return troubles;
}

void Flusher::retry() {
  executor_.deliver();
  std::vector<std::shared_ptr<Part>> again;
  {
    const std::lock_guard lock(mutex_);
    again.swap(failed_);
  }
  for (const auto& part : again) start(part);
}

void Flusher::drop_unwanted(const Id128& identity) {
  const auto is_dropped = [&](const std::shared_ptr<Part>& part) {
    return part->file().identity() == identity && !part->is_wanted();
  };
  const std::lock_guard lock(mutex_);
  std::erase_if(failed_, is_dropped);
  std::erase_if(running_, [&](const auto& one) {
    const auto& [ticket, part] = one;
    if (!is_dropped(part)) return false;
    // One that takes a step just now finds it out by the next one.
    executor_.cancel(ticket);
    return true;
  });
}

Flusher::Progress Flusher::progress() const {
  const std::lock_guard lock(mutex_);
  Progress progress;
  for (const auto& [ticket, part] : running_) {
    ++progress.parts;
    progress.bytes_left += part->bytes_left();
  }
  return progress;
}

void Flusher::finish(const std::function<void(const Progress&)>& tell) {
  retry();
  leave_to_others();
  // Once more also what fails now for the first time.
  for (int i = 0; i < 2; ++i) {
    while (!executor_.wait_until_idle(kTold)) tell(progress());
    if (i == 0) retry();
  }
  executor_.deliver();
  std::vector<std::shared_ptr<Part>> failed;
  {
    const std::lock_guard lock(mutex_);
    failed.swap(failed_);
  }
  for (const auto& part : failed) part->give_up();
}

// What is not wanted any more, or not waited for.
void Flusher::leave_to_others() {
  std::map<service::Executor::Ticket, std::shared_ptr<Part>> parts;
  {
    const std::lock_guard lock(mutex_);
    parts = running_;
  }
  for (const auto& [ticket, part] : parts) {
    const bool is_left = part->file().hints.flush_wait == hints::FlushWait::kLeave;
    if (!is_left && part->is_wanted()) continue;
    {
      const std::lock_guard lock(mutex_);
      running_.erase(ticket);
    }
    executor_.cancel_and_wait(ticket);
    if (part->is_over()) continue;
    const auto ended = part->has_ended_unwanted();
    if (!ended.is_ok() || !*ended) part->say_left();
  }
}

void Flusher::stop() {
  executor_.stop();
  executor_.deliver();
  const std::lock_guard lock(mutex_);
  for (const auto& part : failed_) {
    if (!part->is_over()) part->say_left();
  }
  failed_.clear();
}

bool Flusher::run_one() {
  return executor_.run_one();
}

}  // namespace dedup::engine
