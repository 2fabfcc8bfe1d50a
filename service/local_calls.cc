#include "service/local_calls.h"

#include <atomic>
#include <optional>
#include <utility>

#include "base/barrier.h"
#include "base/hooks.h"
#include "service/messages/request.h"

namespace dedup::service {

// Guarded by the service's mutex.
struct LocalCalls::Answer {
  std::condition_variable given;
  std::atomic<bool> is_given = false;  // may be read without the mutex
  std::optional<Result<Bytes>> result;
  bool is_dropped = false;  // the handler let go of the request

  void give(Result<Bytes> what) {
    result = std::move(what);
    is_given.store(true, std::memory_order_release);
    given.notify_all();
  }
};

class LocalCalls::LocalResponder : public Responder {
 public:
  LocalResponder(std::shared_ptr<Answer> answer, ConnectionId id)
      : answer_(std::move(answer)), id_(id) {}
  ~LocalResponder() override {
    if (answer_->result) return;
    answer_->is_dropped = true;
    answer_->give(Status(Code::kInternal, "a service dropped a request"));
  }
  ConnectionId connection() const override { return id_; }
  void reply(const Status& status, Bytes body) override {
    if (answer_->result) return;
    answer_->give(status.is_ok() ? Result<Bytes>(std::move(body)) : Result<Bytes>(status));
  }

 private:
  std::shared_ptr<Answer> answer_;
  ConnectionId id_;
};

class LocalCalls::Call : public Transport::Call {
 public:
  Call(LocalCalls& calls, Opcode opcode, Bytes body, Waited waited)
      : calls_(calls), opcode_(opcode), body_(std::move(body)), waited_(std::move(waited)) {
    if (!is_handled_at_once(opcode)) return;
    const std::lock_guard lock(calls_.mutex_);
    begin();
  }
  // As if its connection had ended.
  ~Call() override {
    if (!answer_ || received_) return;
    const std::lock_guard lock(calls_.mutex_);
    if (calls_.handler_ == nullptr) return;
    (void)no_exceptions([&] { calls_.handler_->closed(id_); });
    calls_.after_();
  }

  bool is_ready() override { return answer_ && answer_->is_given.load(std::memory_order_acquire); }

  Result<Bytes> receive() override {
    std::unique_lock lock(calls_.mutex_);
    if (!answer_) begin();
    const auto is_there = [&] { return answer_->result.has_value(); };
    if (!waited_.why_stop) answer_->given.wait(lock, is_there);
    while (!answer_->given.wait_for(lock, waited_.patience, is_there)) {
      lock.unlock();
      const std::string why = waited_.why_stop();
      lock.lock();
      if (!why.empty() && !is_there())
        return Status(Code::kUnreachable, "this node's service: " + why);
    }
    received_ = true;
    calls_.idle_.push_back(id_);
    return *std::move(answer_->result);
  }

 private:
  void begin() {
    answer_ = std::make_shared<Answer>();
    if (calls_.idle_.empty()) {
      id_ = calls_.next_++;
    } else {
      id_ = calls_.idle_.back();
      calls_.idle_.pop_back();
    }
    if (calls_.handler_ == nullptr) {
      answer_->give(Status(Code::kUnreachable, "the service of this node has ended"));
      return;
    }
    note_local_request(static_cast<std::uint8_t>(opcode_));
    const Status status = no_exceptions([&] {
      calls_.handler_->handle(opcode_, body_, std::make_unique<LocalResponder>(answer_, id_));
    });
    // What the responder cannot know when it goes: why.
    if (answer_->is_dropped && !status.is_ok()) answer_->result = status;
    calls_.after_();
  }

  LocalCalls& calls_;
  Opcode opcode_;
  Bytes body_;
  Waited waited_;
  ConnectionId id_ = 0;
  std::shared_ptr<Answer> answer_;  // once it was begun
  bool received_ = false;
};

std::unique_ptr<Transport::Call> LocalCalls::send(Opcode opcode, Bytes body, Waited waited) {
  return std::make_unique<Call>(*this, opcode, std::move(body), std::move(waited));
}

}  // namespace dedup::service
