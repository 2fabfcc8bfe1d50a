// store/format.h: each format's versions are read or refused by name.
#include "store/format.h"

#include <gtest/gtest.h>

#include <string>

namespace dedup::store::format {
namespace {

Status start_of(const Kind& kind, std::uint32_t version) {
  Kind other = kind;
  other.version = version;
  Encoder out;
  put_start(out, other);
  const Bytes bytes = out.take();
  Decoder in(bytes);
  return check_start(in, kind, "/store/x");
}

class FormatVersions : public testing::TestWithParam<Kind> {};

TEST_P(FormatVersions, AreReadUpToTheNewest) {
  const Kind& kind = GetParam();
  for (std::uint32_t version = kind.oldest; version <= kind.version; ++version) {
    EXPECT_TRUE(start_of(kind, version).is_ok()) << version;
  }
}

TEST_P(FormatVersions, OfNewerAndTooOldSoftwareAreRefusedByName) {
  const Kind& kind = GetParam();
  for (const std::uint32_t version : {kind.version + 1, kind.version + 2, ~std::uint32_t{0}}) {
    const Status status = start_of(kind, version);
    ASSERT_EQ(status.code(), Code::kVersion) << version;
    for (const std::string& part :
         {std::string("/store/x"), std::string(kind.name), std::string("newer"),
          "version " + std::to_string(version), "version " + std::to_string(kind.version)}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  }
  EXPECT_EQ(start_of(kind, 0).code(), Code::kCorrupt);
  for (std::uint32_t version = 1; version < kind.oldest; ++version) {
    const Status status = start_of(kind, version);
    ASSERT_EQ(status.code(), Code::kVersion) << version;
    EXPECT_NE(status.message().find("older"), std::string::npos) << status.message();
  }
}

TEST_P(FormatVersions, BelongToOneKind) {
  const Kind& kind = GetParam();
  Kind other = kind;
  other.magic = "DEDUPXXX";
  Encoder out;
  put_start(out, other);
  const Bytes bytes = out.take();
  Decoder in(bytes);
  EXPECT_EQ(check_start(in, kind, "x").code(), Code::kCorrupt);
  Decoder cut(std::span<const std::byte>(bytes).first(kStartSize - 1));
  EXPECT_EQ(check_start(cut, other, "x").code(), Code::kCorrupt);
}

INSTANTIATE_TEST_SUITE_P(All, FormatVersions,
                         testing::Values(kStore, kPathEntry, kMark, kSegment, kLog, kIndex, kShard,
                                         kRecord, kPlaceholder),
                         [](const testing::TestParamInfo<Kind>& each) {
                           return std::string(each.param.magic);
                         });

}  // namespace
}  // namespace dedup::store::format
