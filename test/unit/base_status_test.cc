#include "base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace dedup {
namespace {

TEST(Status, TellsErrnoValuesApart) {
  const std::pair<int, Code> cases[] = {
      {ENOENT, Code::kNoSuchFile}, {EEXIST, Code::kFileExists},
      {EACCES, Code::kAccess},     {EPERM, Code::kAccess},
      {EROFS, Code::kReadOnly},    {ENAMETOOLONG, Code::kBadFile},
      {ENOSPC, Code::kNoSpace},    {EDQUOT, Code::kQuota},
      {ENOMEM, Code::kNoMemory},   {EIO, Code::kIo},
      {EMFILE, Code::kIo},
  };
  for (const auto& [error, code] : cases) EXPECT_EQ(Status::from_errno(error, "x").code(), code);
  EXPECT_EQ(Status::from_errno(ENOSPC, "cannot write f").message(),
            "cannot write f: No space left on device");
}

TEST(Status, KeepsItsCodeWithAContext) {
  const Status status = Status(Code::kQuota, "full").with_context("node n1");
  EXPECT_EQ(status.code(), Code::kQuota);
  EXPECT_EQ(status.message(), "node n1: full");
  EXPECT_TRUE(Status::ok().with_context("node n1").is_ok());
  EXPECT_EQ(Status::ok().with_context("node n1").message(), "");
}

Result<int> half(int n) {
  if (n % 2 != 0) return Status(Code::kArgument, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  DEDUP_ASSIGN(const int once, half(n));
  DEDUP_ASSIGN(const int twice, half(once));
  return twice;
}

Status check(int n) {
  DEDUP_TRY(quarter(n).status());
  return Status::ok();
}

TEST(Result, CarriesAValueOrAnError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().code(), Code::kArgument);
  EXPECT_TRUE(check(4).is_ok());
  EXPECT_EQ(check(3).message(), "odd");
}

TEST(Result, MovesWhatCannotBeCopied) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto use = [&]() -> Result<int> {
    DEDUP_ASSIGN(const auto pointer, make());
    return *pointer;
  };
  EXPECT_EQ(*use(), 5);
}

}  // namespace
}  // namespace dedup
