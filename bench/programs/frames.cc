// What a frame between a rank and a service costs: its MAC, and a request whose reply has so many
// bytes, there and back over loopback. Prints a line for each size.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "service/client.h"
#include "service/frame_mac.h"
#include "service/server.h"

namespace {

using namespace dedup;
using namespace dedup::service;

constexpr std::size_t kSizes[] = {0, 64, 4096, std::size_t{64} << 10, std::size_t{512} << 10};
constexpr Secret kSecret = {1};

int repetitions(std::size_t size) {
  return size > 10000 ? 300 : 10000;
}

double seconds_of_thread() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of processor time, a frame.
double mac_seconds(std::size_t size) {
  auto mac = FrameMac::create(kSecret, Role::kClient, make_nonce(), make_nonce(), "");
  const Bytes body(size, std::byte{1});
  const int count = repetitions(size);
  const double begin = seconds_of_thread();
  for (int i = 0; i < count; ++i) {
    if (!mac || !mac->seal(1, body)) return 0;
  }
  return (seconds_of_thread() - begin) / count;
}

struct Sized {
  static constexpr Opcode kOpcode = static_cast<Opcode>(1);
  struct Reply {
    std::size_t size = 0;
    static Reply decode(Decoder& d) { return {d.left()}; }
  };
  std::string size;
  void encode(Encoder& e) const { e.put(std::string_view(size)); }
};

class Giving : public Handler {
 public:
  void handle(Opcode, std::span<const std::byte> body,
              std::unique_ptr<Responder> responder) override {
    responder->reply({}, Bytes(std::stoul(Decoder(body).get_string())));
  }
  void closed(ConnectionId) override {}
};

// The median, of time on the clock.
double round_trip_seconds(Client& client, std::size_t size) {
  std::vector<double> times;
  for (int i = repetitions(size); i > 0; --i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto reply = client.call(0, Sized{std::to_string(size)});
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    if (!reply.is_ok() || reply->size != size) return 0;
    times.push_back(time.count());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

int main() {
  auto server = Server::start(kSecret, true, std::make_unique<Giving>());
  if (!server.is_ok()) {
    std::fprintf(stderr, "frames: %s\n", server.status().message().c_str());
    return 1;
  }
  Client client({{"n", (*server)->addresses(), (*server)->port()}}, 0, kSecret);
  std::printf("%8s %12s %16s\n", "bytes", "MAC (us)", "round trip (us)");
  for (const std::size_t size : kSizes) {
    std::printf("%8zu %12.2f %16.1f\n", size, 1e6 * mac_seconds(size),
                1e6 * round_trip_seconds(client, size));
  }
  return 0;
}
