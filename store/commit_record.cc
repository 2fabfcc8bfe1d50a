#include "store/commit_record.h"

#include <algorithm>

#include "base/codec.h"
#include "store/format.h"

namespace dedup::store {
namespace {

void put(Encoder& out, const CommitRecord& r) {
  out.put(r.identity);
  out.put(r.number);
  out.put(r.attempt);
  out.put(r.parent);
  out.put(std::string_view(r.path));
  out.put(r.directory.type);
  out.put(r.directory.system);
  out.put(r.directory.inode);
  out.put(r.size);
  out.put(r.replication);
  out.put(r.chunk_size);
  out.put(std::string_view(r.fingerprint));
  out.put(r.time);
  out.put(static_cast<std::uint32_t>(r.stores.size()));
  for (const auto& store : r.stores) {
    out.put(store.uuid);
    out.put(std::string_view(store.node));
  }
  out.put(static_cast<std::uint32_t>(r.shards.size()));
  for (const auto& shard : r.shards) {
    out.put_raw(shard.digest.data(), shard.digest.size());
    out.put(shard.stores);
  }
  out.put(static_cast<std::uint32_t>(r.lineage.size()));
  for (const auto& entry : r.lineage) {
    out.put(entry.session);
    out.put(entry.last);
  }
}

// What came with version 2: each with a tag, so that software that does not know it can say so.
enum class Addition : std::uint32_t { kStripes = 1, kKey = 4, kKept = 5, kKeptOf = 6 };
constexpr std::uint32_t kExclusiveOr = 2;
constexpr std::uint32_t kReedSolomon = 3;
// Of a tag: whoever does not know it may go on without.
constexpr std::uint32_t kMayBeIgnored = std::uint32_t{1} << 31;

std::uint32_t scheme_of(const StripeShape& stripes) {
  return stripes.parities == 1 ? kExclusiveOr : kReedSolomon;
}

using Additions = std::map<std::uint32_t, Bytes>;

Additions additions_of(const CommitRecord& r) {
  Additions out = r.ignored;
  const auto add = [&](Addition tag, Encoder& bytes) {
    out.emplace(static_cast<std::uint32_t>(tag), bytes.take());
  };
  if (!r.key.is_zero()) {
    Encoder bytes;
    bytes.put(r.key);
    add(Addition::kKey, bytes);
  }
  if (!r.kept.empty()) {
    Encoder bytes;
    bytes.put(static_cast<std::uint32_t>(r.kept.size()));
    for (const KeptGeneration& one : r.kept) {
      bytes.put(one.number);
      bytes.put(one.attempt);
    }
    add(Addition::kKept, bytes);
  }
  if (!r.kept_of.file.is_zero()) {
    Encoder bytes;
    bytes.put(r.kept_of.file);
    bytes.put(r.kept_of.number);
    add(Addition::kKeptOf, bytes);
  }
  if (r.stripes.parities != 0) {
    Encoder bytes;
    bytes.put(scheme_of(r.stripes));
    bytes.put(std::uint32_t{r.stripes.data});
    bytes.put(std::uint32_t{r.stripes.parities});
    add(Addition::kStripes, bytes);
  }
  return out;
}

bool take_stripes(Decoder& in, StripeShape& stripes) {
  const auto scheme = in.get<std::uint32_t>();
  const auto data = in.get<std::uint32_t>();
  const auto parities = in.get<std::uint32_t>();
  if (data == 0 || parities == 0 || data > 63 || parities > 8 || data + parities > 64) return false;
  stripes = {static_cast<std::uint8_t>(data), static_cast<std::uint8_t>(parities)};
  return scheme == scheme_of(stripes);
}

// False if it cannot be: none has nothing to say.
bool take(Addition tag, std::span<const std::byte> bytes, CommitRecord& r) {
  Decoder in(bytes);
  bool says_something = false;
  switch (tag) {
    case Addition::kKey:
      r.key = in.get_id();
      says_something = !r.key.is_zero();
      break;
    case Addition::kKept:
      r.kept.resize(in.get_count(8 + 16));
      for (KeptGeneration& one : r.kept) {
        one.number = in.get<std::uint64_t>();
        one.attempt = in.get_id();
      }
      says_something = !r.kept.empty();
      break;
    case Addition::kKeptOf:
      r.kept_of.file = in.get_id();
      r.kept_of.number = in.get<std::uint64_t>();
      says_something = !r.kept_of.file.is_zero();
      break;
    case Addition::kStripes:
      says_something = take_stripes(in, r.stripes);
      break;
  }
  return says_something && in.ok() && in.at_end();
}

bool is_known(std::uint32_t tag) {
  return tag == static_cast<std::uint32_t>(Addition::kStripes) ||
         (tag >= static_cast<std::uint32_t>(Addition::kKey) &&
          tag <= static_cast<std::uint32_t>(Addition::kKeptOf));
}

void put_additions(Encoder& out, const Additions& additions) {
  out.put(static_cast<std::uint32_t>(additions.size()));
  for (const auto& [tag, bytes] : additions) {
    out.put(tag);
    out.put_bytes(bytes);
  }
}

Status get_additions(Decoder& in, const std::string& what, CommitRecord& r) {
  std::uint32_t last = 0;
  const std::uint32_t count = in.get_count(4 + 4);
  for (std::uint32_t left = count; left > 0; --left) {
    const auto tag = in.get<std::uint32_t>();
    const auto bytes = in.get_bytes();
    const bool in_order = in.ok() && tag > last;
    if (!in_order || (is_known(tag) && !take(static_cast<Addition>(tag), bytes, r))) {
      return format::corrupt(what, "its additions cannot be");
    }
    last = tag;
    if (is_known(tag)) continue;
    r.ignored.emplace(tag, Bytes(bytes.begin(), bytes.end()));
    if ((tag & kMayBeIgnored) == 0) {
      return {Code::kVersion, what + ": written by a newer version of dedup: it has addition " +
                                  std::to_string(tag) + ", which this software does not know"};
    }
  }
  return count != 0 ? Status::ok() : format::corrupt(what, "it has no additions");
}

CommitRecord get(Decoder& in) {
  CommitRecord r;
  r.identity = in.get_id();
  r.number = in.get<std::uint64_t>();
  r.attempt = in.get_id();
  r.parent = in.get_id();
  r.path = in.get_string();
  r.directory.type = in.get<std::uint64_t>();
  r.directory.system = in.get<std::uint64_t>();
  r.directory.inode = in.get<std::uint64_t>();
  r.size = in.get<std::uint64_t>();
  r.replication = in.get<std::uint32_t>();
  r.chunk_size = in.get<std::uint32_t>();
  r.fingerprint = in.get_string();
  r.time = in.get<std::uint64_t>();
  r.stores.resize(in.get_count(16 + 4));
  for (auto& store : r.stores) {
    store.uuid = in.get_id();
    store.node = in.get_string();
  }
  r.shards.resize(in.get_count(32 + 2));
  for (auto& shard : r.shards) {
    in.get_raw(shard.digest.data(), shard.digest.size());
    shard.stores = in.get_nodes();
    for (const NodeIndex store : shard.stores) {
      if (store >= r.stores.size()) in.fail();
    }
  }
  r.lineage.resize(in.get_count(16 + 8));
  for (auto& entry : r.lineage) {
    entry.session = in.get_id();
    entry.last = in.get<std::uint64_t>();
  }
  return r;
}

}  // namespace

Bytes CommitRecord::encode() const {
  Encoder out;
  const Additions additions = additions_of(*this);
  // One without additions is of the version that had none.
  format::put_start(out, {format::kRecord.magic, additions.empty() ? 1u : 2u, {}});
  put(out, *this);
  if (!additions.empty()) put_additions(out, additions);
  const Digest digest = format::sha256(out.bytes());
  out.put_raw(digest.data(), digest.size());
  return out.take();
}

Result<CommitRecord> CommitRecord::decode(std::span<const std::byte> bytes) {
  const std::string what = "commit record";
  Decoder in(bytes);
  DEDUP_TRY(format::check_start(in, format::kRecord, what));
  Digest digest;
  if (in.left() < digest.size()) return format::corrupt(what, "cut off");
  const auto body = bytes.first(bytes.size() - digest.size());
  std::memcpy(digest.data(), bytes.data() + body.size(), digest.size());
  if (format::sha256(body) != digest) {
    return format::corrupt(what, "damaged: its digest does not hold");
  }
  Decoder fields(body.subspan(format::kStartSize));
  CommitRecord record = get(fields);
  if (format::version_of(bytes) > 1) DEDUP_TRY(get_additions(fields, what, record));
  if (!fields.ok() || !fields.at_end()) return format::corrupt(what, "its fields cannot be");
  return record;
}

void CommitRecord::encode(Encoder& e) const {
  e.put_bytes(encode());
}

CommitRecord CommitRecord::decode(Decoder& d) {
  auto record = decode(d.get_bytes());
  if (record.is_ok()) return *std::move(record);
  d.fail();
  return {};
}

bool descends_from(const CommitRecord& younger, const CommitRecord& older) {
  if (younger.identity != older.identity) return false;
  if (younger.attempt == older.attempt) return true;
  // Two attempts at one number: at most one of them is an ancestor of anything.
  if (older.lineage.empty() || younger.number <= older.number) return false;
  const Id128& session = older.lineage.back().session;
  return std::any_of(younger.lineage.begin(), younger.lineage.end(), [&](const LineageEntry& e) {
    return e.session == session && e.last >= older.number;
  });
}

}  // namespace dedup::store
