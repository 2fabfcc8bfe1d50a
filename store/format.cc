#include "store/format.h"

#include "base/xxh3.h"

namespace dedup::store::format {

void put_start(Encoder& out, const Kind& kind) {
  out.put_raw(kind.magic.data(), kind.magic.size());
  out.put(kind.version);
}

Status check_start(Decoder& in, const Kind& kind, const std::string& what) {
  char magic[8] = {};
  in.get_raw(magic, sizeof magic);
  const auto version = in.get<std::uint32_t>();
  if (!in.ok() || std::string_view(magic, sizeof magic) != kind.magic) {
    return corrupt(what, "not a " + std::string(kind.name));
  }
  if (version > kind.version) {
    return {Code::kVersion, what + ": " + std::string(kind.name) +
                                " written by a newer version of dedup: its format is version " +
                                std::to_string(version) + ", this software knows version " +
                                std::to_string(kind.version)};
  }
  if (version == 0) return corrupt(what, std::string(kind.name) + " of version 0");
  if (version < kind.oldest) {
    return {Code::kVersion, what + ": " + std::string(kind.name) +
                                " written by an older version of dedup: its format is version " +
                                std::to_string(version) + ", the oldest that this software reads " +
                                "is version " + std::to_string(kind.oldest)};
  }
  return Status::ok();
}

std::uint32_t version_of(std::span<const std::byte> file) {
  return Decoder(file.subspan(kStartSize - sizeof(std::uint32_t))).get<std::uint32_t>();
}

Bytes encode_file_header(const Kind& kind, const FileHeader& header) {
  Encoder out;
  put_start(out, kind);
  out.put(static_cast<std::uint32_t>(kFileHeaderSize));
  out.put(header.identity);
  out.put(header.number);
  out.put(header.salt);
  out.put(std::uint64_t{0});
  put_checksum(out);
  return out.take();
}

Result<FileHeader> check_file_header(std::span<const std::byte> bytes, const Kind& kind,
                                     const std::string& what) {
  Decoder in(bytes);
  DEDUP_TRY(check_start(in, kind, what));
  const auto size = in.get<std::uint32_t>();
  FileHeader header;
  header.identity = in.get_id();
  header.number = in.get<std::uint64_t>();
  header.salt = in.get<std::uint64_t>();
  if (!in.ok() || size != kFileHeaderSize || !take_checksum(bytes)) {
    return corrupt(what, std::string(kind.name) + " with a damaged header");
  }
  return header;
}

Status corrupt(const std::string& what, const std::string& why) {
  return {Code::kCorrupt, what + ": " + why};
}

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

void put_checksum(Encoder& out) {
  out.put(checksum(out.bytes()));
}

bool take_checksum(std::span<const std::byte>& bytes) {
  if (bytes.size() < sizeof(std::uint64_t)) return false;
  const auto body = bytes.first(bytes.size() - sizeof(std::uint64_t));
  Decoder in(bytes.subspan(body.size()));
  if (in.get<std::uint64_t>() != checksum(body)) return false;
  bytes = body;
  return true;
}

}  // namespace dedup::store::format
