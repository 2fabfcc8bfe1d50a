#include "test/unit/damaged_recv.h"

#include <dlfcn.h>
#include <sys/socket.h>

#include <cstddef>
#include <mutex>

namespace dedup {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::mutex mutex;
std::uint64_t received = 0;
std::uint64_t damaged_byte = kNever;
unsigned damaged_bit = 0;

void pass(std::byte* bytes, std::uint64_t count) {
  const std::lock_guard lock(mutex);
  if (damaged_byte >= received && damaged_byte - received < count) {
    bytes[damaged_byte - received] ^= std::byte{1} << damaged_bit;
  }
  received += count;
}

}  // namespace

void damage_received(std::uint64_t byte, unsigned bit) {
  const std::lock_guard lock(mutex);
  received = 0;
  damaged_byte = byte;
  damaged_bit = bit;
}

std::uint64_t stop_damage() {
  const std::lock_guard lock(mutex);
  damaged_byte = kNever;
  const std::uint64_t count = received;
  received = 0;
  return count;
}

}  // namespace dedup

extern "C" ssize_t recv(int fd, void* buffer, std::size_t size, int flags) {
  using Recv = ssize_t (*)(int, void*, std::size_t, int);
  static const auto real = reinterpret_cast<Recv>(dlsym(RTLD_NEXT, "recv"));
  const ssize_t n = real(fd, buffer, size, flags);
  if (n > 0) dedup::pass(static_cast<std::byte*>(buffer), static_cast<std::uint64_t>(n));
  return n;
}
