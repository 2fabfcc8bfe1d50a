// Under the thread sanitizer runs thread_tests, which has the tests of the rooms that start
// threads. A test of another room that starts one fails here: it would have to be among them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>

namespace dedup {
namespace {

// As the sources in test/unit begin, and as Makefile.am has them.
constexpr std::array<std::string_view, 3> kRoomsWithThreads = {"base_", "store_", "service_"};

std::atomic<int> started{0};

bool may_start_threads(const std::string& source) {
  const std::string name = std::filesystem::path(source).filename();
  return std::any_of(kRoomsWithThreads.begin(), kRoomsWithThreads.end(),
                     [&](std::string_view room) { return name.starts_with(room); });
}

class ThreadsOnlyInTheirRooms : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { before_ = started; }

  void OnTestEnd(const testing::TestInfo& test) override {
    if (started != before_ && !may_start_threads(test.file())) {
      ADD_FAILURE()
          << "starts a thread: thread_tests must have the tests of this room (Makefile.am)";
    }
  }

  int before_ = 0;
};

const bool listens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new ThreadsOnlyInTheirRooms);
  return true;
}();

}  // namespace
}  // namespace dedup

// In place of the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) {
  static const auto next =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  ++dedup::started;
  return next(thread, attributes, start, argument);
}
