#include "base/thread.h"

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace dedup {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  // A thread inherits the mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int error = 0;
  try {
    thread = std::thread(std::move(body));
  } catch (const std::system_error& failure) {
    error = failure.code().value();
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return Status::from_errno(error, "starting the thread " + std::string(name));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace dedup
