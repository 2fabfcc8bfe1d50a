#include "base/text.h"

#include <gtest/gtest.h>

namespace dedup {
namespace {

TEST(Abbreviate, LeavesAloneWhatFits) {
  const std::string text = "/a/very/long/path/to/a/checkpoint: no such file";
  EXPECT_EQ(abbreviate(text, text.size()), text);
  EXPECT_EQ(abbreviate("", 0), "");
}

TEST(Abbreviate, ShortensPathsAndKeepsTheCause) {
  const std::string text =
      "/scratch/run/with/a/long/name/ckpt.h5: node n1: /local/dedup/files/0123456789/record: "
      "written by a newer version";
  EXPECT_EQ(abbreviate(text, 80), ".../ckpt.h5: node n1: .../record: written by a newer version");
}

TEST(Abbreviate, StopsAsSoonAsItFits) {
  const std::string text = "/aaaaaaaaaa/bbbbbbbbbb/cccccccccc: /aaaaaaaaaa/bbbbbbbbbb/dddddddddd";
  EXPECT_EQ(abbreviate(text, text.size() - 1), ".../cccccccccc: /aaaaaaaaaa/bbbbbbbbbb/dddddddddd");
}

TEST(Abbreviate, TellsPathsFromOtherSlashes) {
  const std::string text = "100 kB/s/and/so/on/and/so/forth/until (/aaaaaaaaaa/bbbbbbbbbb/cc/)";
  EXPECT_EQ(abbreviate(text, 60), "100 kB/s/and/so/on/and/so/forth/until (.../cc/)");
}

TEST(Abbreviate, CutsWhatIsStillTooLong) {
  EXPECT_EQ(abbreviate("no path at all", 7), "no path");
  EXPECT_EQ(abbreviate("/" + std::string(100, 'x'), 10), "..." + std::string("/xxxxxx"));
  EXPECT_EQ(abbreviate(std::string(100, '/'), 10), "...//");
}

TEST(Printable, LeavesWhatIsNoControlCharacter) {
  EXPECT_EQ(printable("a b\xc3\xa9~"), "a b\xc3\xa9~");
  EXPECT_EQ(printable(std::string("\0\n\x1f\x7f", 4)), "\\x00\\x0a\\x1f\\x7f");
}

TEST(Human, HasTheUnitThatFits) {
  EXPECT_EQ(human(0), "0 B");
  EXPECT_EQ(human(1023), "1023 B");
  EXPECT_EQ(human(4096), "4.0 KiB");
  EXPECT_EQ(human((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human(~std::uint64_t{0}), "16.0 EiB");
}

}  // namespace
}  // namespace dedup
