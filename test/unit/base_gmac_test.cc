#include "base/gmac.h"

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace dedup {
namespace {

using Instructions = IpsecMbGmac::Instructions;
using Key = std::array<std::uint8_t, 16>;
using Random = std::mt19937_64;

constexpr Instructions kAll[] = {Instructions::kSse, Instructions::kAvx, Instructions::kAvx2,
                                 Instructions::kAvx512};

std::string hex(const GmacTag& tag) {
  return hex_string(tag.data(), tag.size());
}

Bytes bytes_of(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

template <typename Array>
Array array_of(const std::string& hex) {
  const Bytes bytes = bytes_of(hex);
  Array out{};
  EXPECT_EQ(bytes.size(), out.size());
  std::memcpy(out.data(), bytes.data(), std::min(bytes.size(), out.size()));
  return out;
}

template <typename Array>
Array random_array(Random& random) {
  Array out;
  for (auto& byte : out) byte = static_cast<std::uint8_t>(random());
  return out;
}

// Both libraries, the one of them with each set of instructions that it and the processor have, and
// the one that is taken.
class All {
 public:
  explicit All(const Key& key) : openssl_(OpensslGmac::create(key)), chosen_(Gmac::create(key)) {
    for (const Instructions most : kAll) {
      if (auto gmac = IpsecMbGmac::create(key, most)) ipsec_mb_.push_back(std::move(*gmac));
    }
    EXPECT_TRUE(openssl_.has_value());
    EXPECT_TRUE(chosen_.is_ok());
  }

  std::size_t of_ipsec_mb() const { return ipsec_mb_.size(); }

  // OpenSSL's tag, once all have given it.
  GmacTag tag(const GmacNonce& nonce, GmacMessage message) {
    GmacTag expected{};
    EXPECT_TRUE(openssl_->tag(nonce, message, expected));
    GmacTag tag{};
    EXPECT_TRUE(chosen_->tag(nonce, message, tag));
    EXPECT_EQ(hex(tag), hex(expected));
    for (const IpsecMbGmac& gmac : ipsec_mb_) {
      gmac.tag(nonce, message, tag);
      if (tag != expected) ADD_FAILURE() << hex(tag) << " is not " << hex(expected);
    }
    return expected;
  }

 private:
  std::optional<OpensslGmac> openssl_;
  Result<Gmac> chosen_;
  std::vector<IpsecMbGmac> ipsec_mb_;
};

// Random bytes between two pages that nobody may touch.
class Fenced {
 public:
  static constexpr std::size_t kSize = 18 * 4096;

  explicit Fenced(Random& random) {
    void* const memory = ::mmap(nullptr, kSize + std::size_t{2} * kPage, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    memory_ = static_cast<std::byte*>(memory);
    if (::mprotect(memory_ + kPage, kSize, PROT_READ | PROT_WRITE) != 0) std::abort();
    for (std::size_t i = 0; i < kSize; ++i) memory_[kPage + i] = static_cast<std::byte>(random());
  }
  ~Fenced() { ::munmap(memory_, kSize + std::size_t{2} * kPage); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  std::span<const std::byte> first(std::size_t size) const { return {memory_ + kPage, size}; }
  std::span<const std::byte> last(std::size_t size) const {
    return {memory_ + kPage + kSize - size, size};
  }
  std::span<const std::byte> at(std::size_t offset, std::size_t size) const {
    return {memory_ + kPage + offset, size};
  }

 private:
  static constexpr std::size_t kPage = 64 << 10;  // of any processor

  std::byte* memory_;
};

// Of NIST's validation vectors (gcmEncryptExtIV128.rsp) and of GCM's specification those without a
// text; the last is of IEEE 802.1AE.
TEST(Gmac, GivesKnownAnswers) {
  const struct {
    const char* key;
    const char* nonce;
    const char* message;
    const char* tag;
  } known[] = {
      {"00000000000000000000000000000000", "000000000000000000000000", "",
       "58e2fccefa7e3061367f1d57a4e7455a"},
      {"11754cd72aec309bf52f7687212e8957", "3c819d9a9bed087615030b65", "",
       "250327c674aaf477aef2675748cf6971"},
      {"77be63708971c4e240d1cb79e8d77feb", "e0e00f19fed7ba0136a797f3",
       "7a43ec1d9c0a5a78a0b16533a6213cab", "209fcc8d3675ed938e9c7166709dd946"},
      {"ad7a2bd03eac835a6f620fdcb506b345", "12153524c0895e81b2c28465",
       "d609b1f056637a0d46df998d88e5222ab2c2846512153524c0895e8108000f10111213141516171819"
       "1a1b1c1d1e1f202122232425262728292a2b2c2d2e2f30313233340001",
       "f09478a9b09007d06f46e9b6a1da25dd"},
  };
  for (const auto& one : known) {
    All all(array_of<Key>(one.key));
    const Bytes message = bytes_of(one.message);
    EXPECT_EQ(hex(all.tag(array_of<GmacNonce>(one.nonce), {message})), one.tag);
  }
}

// Else the tests here compare OpenSSL with itself.
TEST(Gmac, TakesTheFasterLibraryWhereItIsBuiltIn) {
  const std::size_t found = All(Key{}).of_ipsec_mb();
#ifdef DEDUP_IPSEC_MB
  if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) {
    GTEST_SKIP() << "the processor has no instructions for AES and carry-less multiplication";
  }
  EXPECT_EQ(found, std::size(kAll));
#else
  EXPECT_EQ(found, 0u);
#endif
}

TEST(Gmac, IsTheSameByBothLibrariesForAllSizesAndPlaces) {
  Random random(1);
  const Fenced data(random);
  All all(random_array<Key>(random));
  for (std::size_t size = 0; size <= 70000; size += size < 1100 ? 1 : 97) {
    const auto nonce = random_array<GmacNonce>(random);
    const auto last = data.last(size);
    all.tag(nonce, {last});
    all.tag(nonce, {data.first(size)});
    all.tag(nonce, {data.at(1 + random() % 127, size)});
    if (HasFailure()) FAIL() << "of " << size << " bytes";
  }
  for (const std::size_t size : {4095, 4096, 4097, 16384, 65535, 65536, 70000}) {
    for (std::size_t offset = 0; offset < 64; ++offset) {
      all.tag(GmacNonce{}, {data.at(offset, size)});
    }
  }
}

TEST(Gmac, DoesNotDependOnHowTheMessageIsInParts) {
  Random random(2);
  const Fenced data(random);
  All all(random_array<Key>(random));
  for (const std::size_t size : {0, 1, 16, 17, 40, 300, 4096, 5000, 70000}) {
    const auto message = data.last(size);
    const auto nonce = random_array<GmacNonce>(random);
    const GmacTag whole = all.tag(nonce, {message});
    for (std::size_t i = 0; i < 100; ++i) {
      const std::size_t a = i < 50 ? std::min(i, size) : random() % (size + 1);
      const std::size_t b = random() % (size - a + 1);
      EXPECT_EQ(all.tag(nonce, {message.first(a), message.subspan(a)}), whole) << size << ' ' << a;
      EXPECT_EQ(all.tag(nonce, {message.first(a), message.subspan(a, b), message.subspan(a + b)}),
                whole)
          << size << ' ' << a << ' ' << b;
    }
  }
}

TEST(Gmac, DependsOnKeyNonceAndMessage) {
  Random random(3);
  const Key key = random_array<Key>(random);
  Key other_key = key;
  other_key[15] ^= 1;
  GmacNonce other_nonce{};
  other_nonce[11] = 1;
  const Bytes message(5000, std::byte{7});
  Bytes other_message = message;
  other_message[4999] = std::byte{6};
  All all(key);
  const GmacTag tag = all.tag(GmacNonce{}, {message});
  EXPECT_EQ(all.tag(GmacNonce{}, {message}), tag);
  EXPECT_NE(all.tag(other_nonce, {message}), tag);
  EXPECT_NE(all.tag(GmacNonce{}, {other_message}), tag);
  EXPECT_NE(All(other_key).tag(GmacNonce{}, {message}), tag);
}

// As Hasher does: files are closed in exit handlers.
TEST(Gmac, WorksAfterOpensslHasCleanedUp) {
  const auto give_all = [](All& early) {
    const GmacTag before = early.tag(GmacNonce{}, {});
    OPENSSL_cleanup();
    const bool right = early.tag(GmacNonce{}, {}) == before &&
                       All(Key{}).tag(GmacNonce{}, {}) == before && !testing::Test::HasFailure();
    std::_Exit(right ? 0 : 1);
  };
  All early(Key{});
  EXPECT_EXIT(give_all(early), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dedup
