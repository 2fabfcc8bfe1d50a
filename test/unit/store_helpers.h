// Random content, whole files, and processes of their own, for tests of the store.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "base/types.h"
#include "store/files/index_file.h"
#include "store/files/layout.h"
#include "store/placeholder.h"
#include "store/replacement.h"
#include "store/store.h"

namespace dedup::test {

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t bound) {
  return random() % bound;
}

inline Bytes random_bytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (auto& b : bytes) b = static_cast<std::byte>(random() & 0xff);
  return bytes;
}

inline Fingerprint random_fingerprint(Random& random) {
  Fingerprint f;
  for (auto& b : f.bytes) b = static_cast<std::uint8_t>(random() & 0xff);
  return f;
}

inline Id128 random_id(Random& random) {
  Id128 id;
  for (auto& b : id.bytes) b = static_cast<std::uint8_t>(random() & 0xff);
  return id;
}

// Where a store of files has what.
inline store::Layout layout_of(const store::Store& store) {
  return {store.directory()};
}

// Writes an index of `entries`, in any order.
inline Status write_index(const std::string& path, const Id128& identity, const Id128& attempt,
                          std::vector<store::IndexEntry> entries, bool flush) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.fingerprint < b.fingerprint; });
  DEDUP_ASSIGN(const auto writer, store::IndexFileWriter::create(path, identity, attempt));
  for (const auto& entry : entries) DEDUP_TRY(writer->add(entry));
  return writer->finish(flush);
}

inline Bytes get_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

inline void put_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(out.flush()) << path;
}

// Calls check(damaged) with every truncation of `whole` and with every byte changed, one at a time:
// its lowest bit, its highest bit, and all of them.
template <typename Check>
void for_each_damage(const Bytes& whole, Check&& check) {
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE("cut to " + std::to_string(size));
    check(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  Bytes damaged = whole;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    SCOPED_TRACE("byte " + std::to_string(i));
    for (const auto mask : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
      damaged[i] = whole[i] ^ mask;
      check(damaged);
    }
    damaged[i] = whole[i];
  }
}

// The same for a file: leaves it damaged in `path` for check().
template <typename Check>
void for_each_file_damage(const std::string& path, Check&& check) {
  const Bytes whole = get_file(path);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    SCOPED_TRACE("byte " + std::to_string(i));
    for (const auto mask : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}, std::byte{0}}) {
      const std::byte damaged = whole[i] ^ mask;
      ASSERT_EQ(::pwrite(fd, &damaged, 1, static_cast<off_t>(i)), 1);
      if (mask != std::byte{0}) check();
    }
  }
  for (std::size_t size = whole.size(); size-- > 0;) {
    SCOPED_TRACE("cut to " + std::to_string(size));
    ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
    check();
  }
  ::close(fd);
}

// Makes writes beyond `size` bytes of a file fail, as on a full disk, until destroyed.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t size) {
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{size, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_ = SIG_DFL;
};

inline void put_text(const std::string& path, const std::string& text) {
  put_file(path, std::as_bytes(std::span(text)));
}

// A replacement of what stands at `path` by a placeholder that knows its own inode, as a commit
// makes it; null if that fails.
inline std::unique_ptr<store::Replacement> begin_placeholder(const std::string& path,
                                                             store::Placeholder placeholder) {
  auto begun = store::Replacement::begin(path, Id128::random());
  EXPECT_TRUE(begun.is_ok()) << begun.status().message();
  if (!begun.is_ok()) return nullptr;
  const auto inode = (*begun)->inode();
  EXPECT_TRUE(inode.is_ok());
  placeholder.inode = *inode;
  EXPECT_TRUE((*begun)->write(0, store::encode_placeholder(placeholder)).is_ok());
  EXPECT_TRUE((*begun)->flush().is_ok());
  return std::move(*begun);
}

inline void put_placeholder(const std::string& path, std::uint8_t identity) {
  store::Placeholder placeholder;
  placeholder.identity.bytes[0] = identity;
  placeholder.number = 1;
  const auto replacement = begin_placeholder(path, placeholder);
  ASSERT_TRUE(replacement && replacement->put().is_ok());
}

// Runs `body` in a process of its own; returns its exit code (what `body` returned), or minus the
// number of the signal that ended it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace dedup::test
