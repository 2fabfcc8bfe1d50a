#include "service/wire.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/codec.h"
#include "base/hasher.h"
#include "base/passed_descriptor.h"
#include "store/format.h"

namespace dedup::service {

Nonce make_nonce() {
  Nonce nonce;
  // Never shorter for requests of up to 256 bytes; only a kernel without the call fails.
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) std::abort();
  return nonce;
}

namespace {

// What only who knows the secret can make; for each `purpose` another one.
bool make_keyed(const Secret& secret, std::string_view purpose, const Nonce& server,
                const Nonce& client, const std::string& server_name, Proof& out) {
  Encoder message;
  message.put(purpose);
  message.put_raw(server.data(), server.size());
  message.put_raw(client.data(), client.size());
  message.put(std::string_view(server_name));
  return hmac_sha256(std::as_bytes(std::span(secret)), message.bytes(), out);
}

}  // namespace

bool make_proof(const Secret& secret, Role role, const Nonce& server, const Nonce& client,
                const std::string& server_name, Proof& out) {
  const char* const purpose = role == Role::kClient ? "dedup client" : "dedup server";
  return make_keyed(secret, purpose, server, client, server_name, out);
}

bool make_frame_key(const Secret& secret, Role sender, const Nonce& server, const Nonce& client,
                    const std::string& server_name, Proof& out) {
  const char* const purpose =
      sender == Role::kClient ? "dedup frames of client" : "dedup frames of server";
  return make_keyed(secret, purpose, server, client, server_name, out);
}

bool same_proof(const Proof& a, const Proof& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string server_name(const std::vector<std::string>& addresses, std::uint16_t port) {
  std::string name = std::to_string(port);
  for (const std::string& address : addresses) name += ' ' + address;
  return name;
}

namespace {

constexpr std::size_t kCheckedSize = kHeaderStartSize + sizeof(Mac);
static_assert(kHeaderSize == kCheckedSize + sizeof(std::uint64_t));

void put_number(std::span<std::byte> out, std::uint64_t value) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
  }
}

}  // namespace

std::array<std::byte, kHeaderStartSize> encode_start(const FrameHeader& header) {
  std::array<std::byte, kHeaderStartSize> out;
  put_number(std::span(out).first(4), header.length);
  put_number(std::span(out).last(4), header.kind);
  return out;
}

HeaderBytes encode_header(const FrameHeader& header) {
  HeaderBytes out;
  const auto start = encode_start(header);
  std::copy(start.begin(), start.end(), out.begin());
  std::copy(header.mac.begin(), header.mac.end(), out.begin() + kHeaderStartSize);
  put_number(std::span(out).subspan(kCheckedSize),
             store::format::checksum(std::span(out).first(kCheckedSize)));
  return out;
}

std::optional<FrameHeader> decode_header(std::span<const std::byte, kHeaderSize> bytes) {
  Decoder decoder(bytes);
  FrameHeader header;
  header.length = decoder.get<std::uint32_t>();
  header.kind = decoder.get<std::uint32_t>();
  decoder.get_raw(header.mac.data(), header.mac.size());
  if (decoder.get<std::uint64_t>() != store::format::checksum(bytes.first(kCheckedSize))) {
    return std::nullopt;
  }
  return header;
}

bool parse_address(const std::string& text, std::uint16_t port, sockaddr_storage& out,
                   socklen_t& size) {
  out = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(out);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    size = sizeof v4;
    return true;
  }
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    size = sizeof v6;
    return true;
  }
  return false;
}

std::string host_socket_name(const Secret& secret, const std::string& server_name) {
  Proof name;
  if (!make_keyed(secret, "dedup socket", {}, {}, server_name, name)) return {};
  Id128 half;
  std::copy_n(name.begin(), half.bytes.size(), half.bytes.begin());
  return "dedup-" + half.hex();
}

void host_address(const std::string& name, sockaddr_un& out, socklen_t& size) {
  out = {};
  out.sun_family = AF_UNIX;
  // Behind a zero: it is no name of a file.
  const std::size_t length = std::min(name.size(), sizeof out.sun_path - 1);
  std::memcpy(out.sun_path + 1, name.data(), length);
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

Status tune_connection(int fd, std::chrono::seconds patience) {
  constexpr int kYes = 1;
  constexpr int kProbes = 3;
  // Half of the time until the first probe, the other half for all of them.
  const int seconds = static_cast<int>(patience.count());
  const int idle = std::max(1, seconds / 2);
  const int between = std::max(1, seconds / (2 * kProbes));
  const auto set = [fd](int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
  };
  if (set(IPPROTO_TCP, TCP_NODELAY, kYes) && set(SOL_SOCKET, SO_KEEPALIVE, kYes) &&
      set(IPPROTO_TCP, TCP_KEEPIDLE, idle) && set(IPPROTO_TCP, TCP_KEEPINTVL, between) &&
      set(IPPROTO_TCP, TCP_KEEPCNT, kProbes) &&
      set(IPPROTO_TCP, TCP_USER_TIMEOUT, 1000 * seconds)) {
    return {};
  }
  return Status::from_errno(errno, "setting up a connection");
}

std::ptrdiff_t receive_some(int fd, std::span<std::byte> out, int flags) {
  ssize_t n;
  do {
    n = recv(fd, out.data(), out.size(), flags);
  } while (n < 0 && errno == EINTR);
  return n;
}

namespace {

// sendmsg of header and body from byte `sent` on, and of a descriptor, if it is not negative.
std::ptrdiff_t send_parts(int fd, const HeaderBytes& header, std::span<const std::byte> body,
                          std::size_t sent, int descriptor, int flags) {
  iovec parts[2];
  std::size_t count = 0;
  const auto add = [&](std::span<const std::byte> part, std::size_t skip) {
    // sendmsg only reads, but iovec serves readv too.
    parts[count].iov_base = const_cast<std::byte*>(part.data() + skip);
    parts[count].iov_len = part.size() - skip;
    ++count;
  };
  if (sent < header.size()) add(header, sent);
  const std::size_t body_sent = sent > header.size() ? sent - header.size() : 0;
  if (body_sent < body.size()) add(body, body_sent);
  return send_with(fd, {parts, count}, flags | MSG_NOSIGNAL, descriptor);
}

}  // namespace

std::ptrdiff_t send_some(int fd, const HeaderBytes& header, std::span<const std::byte> body,
                         std::size_t sent, int flags) {
  return send_parts(fd, header, body, sent, -1, flags);
}

std::ptrdiff_t send_some(int fd, const HeaderBytes& header, std::span<const std::byte> body,
                         const store::LentSegment& lent, int flags) {
  return send_parts(fd, header, body, 0, lent.descriptor().fd(), flags);
}

std::ptrdiff_t receive_some(int fd, std::span<std::byte> out, store::LentSegment& lent) {
  Descriptor passed;
  const ssize_t n = receive_with(fd, out, 0, passed);
  if (passed.is_open()) lent = store::LentSegment(std::move(passed));
  return n;
}

namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};

// Empty for what other hosts cannot use.
std::string numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return inet_ntop(AF_INET, &in, text, sizeof text) == nullptr ? "" : text;
  }
  if (address->sa_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&in)) return {};
    return inet_ntop(AF_INET6, &in, text, sizeof text) == nullptr ? "" : text;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> host_addresses(const std::string& wanted) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return Status::from_errno(errno, "listing network interfaces");
  const std::unique_ptr<ifaddrs, FreeInterfaces> guard(list);
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  std::string known;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if ((i->ifa_flags & IFF_UP) == 0) continue;
    const std::string address = numeric(i->ifa_addr);
    if (address.empty()) continue;
    known += std::string(known.empty() ? "" : ", ") + i->ifa_name + " (" + address + ")";
    const bool loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
    const bool take = wanted.empty() ? !loopback : wanted == i->ifa_name || wanted == address;
    auto& out = i->ifa_addr->sa_family == AF_INET ? v4 : v6;
    if (take && std::find(out.begin(), out.end(), address) == out.end()) out.push_back(address);
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  if (v4.empty() && !wanted.empty()) {
    return Status(Code::kArgument, "DEDUP_INTERFACE is '" + wanted +
                                       "', which is neither an interface nor an address of this "
                                       "host: there are " +
                                       (known.empty() ? "none" : known));
  }
  if (v4.empty()) v4.push_back("127.0.0.1");
  return v4;
}

}  // namespace dedup::service
