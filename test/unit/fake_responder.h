// Where a handler's answer to a request goes, in unit tests.
#pragma once

#include <memory>
#include <utility>

#include "base/codec.h"
#include "base/status.h"
#include "service/server.h"

namespace dedup::service {

struct Outcome {
  int answers = 0;
  Status status;
  Bytes body;
  bool waits() const { return answers == 0; }
  bool is_ok() const { return answers == 1 && status.is_ok(); }
  Code code() const { return answers == 1 ? status.code() : Code::kOk; }
};

class FakeResponder : public Responder {
 public:
  FakeResponder(ConnectionId connection, std::shared_ptr<Outcome> outcome)
      : connection_(connection), outcome_(std::move(outcome)) {}
  ConnectionId connection() const override { return connection_; }
  void reply(const Status& status, Bytes body) override {
    ++outcome_->answers;
    outcome_->status = status;
    outcome_->body = std::move(body);
  }

 private:
  ConnectionId connection_;
  std::shared_ptr<Outcome> outcome_;
};

}  // namespace dedup::service
