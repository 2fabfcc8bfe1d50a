// The first error of a rank in a round that all ranks go through to its end.
#pragma once

#include "base/status.h"

namespace dedup::engine {

// No rank leaves the sequence of collectives: what goes wrong on it is noted, and agreed on later.
class FirstError {
 public:
  void note(const Status& status) {
    if (status_.is_ok()) status_ = status;
  }
  bool none() const { return status_.is_ok(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

}  // namespace dedup::engine
