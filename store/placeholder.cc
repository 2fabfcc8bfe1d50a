#include "store/placeholder.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include "base/codec.h"
#include "store/format.h"

namespace dedup::store {
namespace {

constexpr std::size_t kMarkAt = 1024;  // the text ends before it
constexpr std::size_t kMarkSize = kPlaceholderSize - kMarkAt;
constexpr std::size_t kLongestText = 600;  // of a path or template in the text
// The mark's fields of a fixed size, and its checksum.
constexpr std::size_t kFixed = format::kStartSize + 3 * 16 + 4 * 8 + 3 * 4 + 8;

// What every placeholder says after the file's first bytes.
constexpr std::string_view kSentence = "\nThis is a placeholder. The data of this file, ";

std::uint64_t seed_of(const Placeholder& p) {
  return Decoder(std::as_bytes(std::span(p.first))).get<std::uint64_t>();
}

std::string date(std::uint64_t time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm utc{};
  char text[40];
  if (gmtime_r(&seconds, &utc) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc) == 0) {
    return "at an unknown time";
  }
  return text;
}

std::string text_of(const Placeholder& p) {
  return std::string(kSentence) + std::to_string(p.size) + " bytes, is in node-local stores (" +
         p.store.substr(0, kLongestText) +
         "), put there by an MPI program through the dedup: driver. To read it, open the name "
         "with dedup: before it in an MPI program on those nodes; with DEDUP_FLUSH=close the data "
         "is written back here when such a program has changed and closed the file. To get it out "
         "as a plain file, run \"dedup-mpiexec dedupctl export\" on those nodes.\n" +
         describe(p).substr(0, kLongestText / 2) + "\n";
}

}  // namespace

Bytes encode_placeholder(const Placeholder& p) {
  Encoder out;
  out.put_raw(p.first.data(), p.first.size());
  const std::string text = text_of(p);
  out.put_raw(text.data(), std::min(text.size(), kMarkAt - out.size() - 1));
  out.bytes().resize(kMarkAt, std::byte{'\n'});

  Encoder mark;
  format::put_start(mark, format::kPlaceholder);
  mark.put(p.identity);
  mark.put(p.attempt);
  mark.put(p.session);
  mark.put(p.number);
  mark.put(p.size);
  mark.put(p.time);
  mark.put(p.inode);
  std::size_t room = kMarkSize - kFixed;
  const auto put_text = [&](std::string_view part) {
    // A part of a path is worse than none: it names something else.
    if (part.size() > room) part = {};
    room -= part.size();
    mark.put(part);
  };
  put_text(p.store);
  put_text(p.path);
  std::string names;
  for (const std::string& node : p.nodes) {
    if (names.size() + node.size() + 1 > room) break;
    names += node + '\n';
  }
  put_text(names);
  mark.bytes().resize(kMarkSize - sizeof(std::uint64_t));
  mark.put(format::checksum(mark.bytes(), seed_of(p)));
  out.put_raw(mark.bytes().data(), mark.size());
  return out.take();
}

bool looks_like_placeholder(std::span<const std::byte> bytes) {
  const std::size_t first = sizeof Placeholder::first;
  if (bytes.size() < kLeastPlaceholder) return false;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view sentence = text.substr(first, kSentence.size());
  if (sentence == kSentence.substr(0, sentence.size())) return true;
  return text.size() > kMarkAt && text.substr(kMarkAt).starts_with(format::kPlaceholder.magic);
}

Result<Placeholder> decode_placeholder(std::span<const std::byte> bytes, const std::string& what) {
  if (!looks_like_placeholder(bytes)) return format::corrupt(what, "not a placeholder");
  Decoder in(bytes.subspan(std::min(kMarkAt, bytes.size())));
  DEDUP_TRY(format::check_start(in, format::kPlaceholder, what));
  Placeholder p;
  std::memcpy(p.first.data(), bytes.data(), p.first.size());
  if (bytes.size() != kPlaceholderSize) {
    return format::corrupt(what, "a placeholder that was cut off or written to");
  }
  const auto body = bytes.subspan(kMarkAt, kMarkSize - sizeof(std::uint64_t));
  Decoder tail(bytes.subspan(kMarkAt + body.size()));
  if (tail.get<std::uint64_t>() != format::checksum(body, seed_of(p))) {
    return format::corrupt(what, "a placeholder whose checksum does not hold");
  }
  p.identity = in.get_id();
  p.attempt = in.get_id();
  p.session = in.get_id();
  p.number = in.get<std::uint64_t>();
  p.size = in.get<std::uint64_t>();
  p.time = in.get<std::uint64_t>();
  p.inode = in.get<std::uint64_t>();
  p.store = in.get_string();
  p.path = in.get_string();
  const std::string names = in.get_string();
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find('\n', at), names.size());
    p.nodes.push_back(names.substr(at, end - at));
    at = end + 1;
  }
  if (!in.ok()) return format::corrupt(what, "a placeholder whose fields cannot be");
  return p;
}

std::string list_nodes(const Placeholder& p) {
  std::string text;
  for (std::size_t i = 0; i < p.nodes.size(); ++i) {
    if (i == 16) return text + " and " + std::to_string(p.nodes.size() - i) + " more";
    text += (i == 0 ? "" : ", ") + p.nodes[i];
  }
  return text;
}

std::string describe(const Placeholder& p) {
  return "generation " + std::to_string(p.number) + " (attempt " + p.attempt.hex() +
         ") of identity " + p.identity.hex() + ", committed " + date(p.time) + " on nodes " +
         list_nodes(p);
}

}  // namespace dedup::store
