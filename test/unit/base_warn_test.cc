#include "base/warn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

namespace dedup {
namespace {

class WarnTest : public testing::Test {
 protected:
  WarnTest() {
    hear_warnings([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~WarnTest() override {
    hear_warnings(nullptr);
    set_program("dedup");
    set_speaker("");
  }

  std::vector<std::string> lines_;
};

TEST_F(WarnTest, ALineSaysWhoSaysIt) {
  warn("/f: is old");
  set_speaker("rank 3 on n1");
  warn("/f: is old");
  say_error("/f: is gone");
  EXPECT_EQ(lines_, (std::vector<std::string>{"dedup: warning: /f: is old",
                                              "dedup: warning: rank 3 on n1: /f: is old",
                                              "dedup: error: rank 3 on n1: /f: is gone"}));
}

TEST_F(WarnTest, ALineBeginsWithTheProgram) {
  set_program("dedupctl");
  say_error("there is no file /f");
  set_speaker("rank 0 on n0");
  warn("/f: is old");
  EXPECT_EQ(lines_, (std::vector<std::string>{"dedupctl: error: there is no file /f",
                                              "dedupctl: warning: rank 0 on n0: /f: is old"}));
}

TEST_F(WarnTest, DoesNothingToATerminalWhateverAPathHas) {
  warn("/\x1b[2J\x7f/f\xc3\xa9: is old");
  EXPECT_EQ(lines_, std::vector<std::string>{"dedup: warning: /\\x1b[2J\\x7f/f\xc3\xa9: is old"});
}

TEST_F(WarnTest, IsOneLineWhateverAPathHas) {
  warn("/a\nb\n: is old");
  EXPECT_EQ(lines_, std::vector<std::string>{"dedup: warning: /a b : is old"});
}

TEST_F(WarnTest, LinesOfThreadsComeWhole) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) warn("abc");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines_, std::vector<std::string>(400, "dedup: warning: abc"));
}

TEST(Warn, GoesToStandardErrorAsItIs) {
  testing::internal::CaptureStderr();
  warn("one");
  say_error(std::string(100000, 'x'));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dedup: warning: one\ndedup: error: " + std::string(100000, 'x') + "\n");
}

TEST(WaitUntilRead, WaitsForWhoReadsAPipe) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::array<char, 1000> bytes{};
  ASSERT_EQ(::write(pipe[1], bytes.data(), bytes.size()), 1000);
  std::thread reader([&] {
    std::array<char, 300> part{};
    for (int left = 1000; left > 0;)
      left -= static_cast<int>(::read(pipe[0], part.data(), part.size()));
  });
  wait_until_read(pipe[1]);
  int unread = -1;
  EXPECT_EQ(::ioctl(pipe[1], FIONREAD, &unread), 0);
  EXPECT_EQ(unread, 0);
  reader.join();
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(WaitUntilRead, DoesNotWaitForAFile) {
  const int fd = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  wait_until_read(fd);
  wait_until_read(-1);
  ::close(fd);
}

}  // namespace
}  // namespace dedup
