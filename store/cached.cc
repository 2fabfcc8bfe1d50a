#include "store/cached.h"

#include "store/format.h"

namespace dedup::store {

Bytes CachedNote::encode() const {
  Encoder out;
  format::put_start(out, format::kCached);
  out.put(attempt);
  for (const std::uint64_t field : {plain.inode, plain.size, plain.modified, plain.changed}) {
    out.put(field);
  }
  format::put_checksum(out);
  return out.take();
}

Result<CachedNote> CachedNote::decode(std::span<const std::byte> bytes, const Id128& attempt,
                                      const std::string& what) {
  Decoder start(bytes);
  DEDUP_TRY(format::check_start(start, format::kCached, what));
  if (!format::take_checksum(bytes) || bytes.size() < format::kStartSize) {
    return format::corrupt(what, "damaged: its checksum does not hold");
  }
  Decoder in(bytes.subspan(format::kStartSize));
  CachedNote note;
  note.attempt = in.get_id();
  for (std::uint64_t* field :
       {&note.plain.inode, &note.plain.size, &note.plain.modified, &note.plain.changed}) {
    *field = in.get<std::uint64_t>();
  }
  if (!in.ok() || !in.at_end()) return format::corrupt(what, "damaged");
  if (note.attempt != attempt) return format::corrupt(what, "note of another generation");
  return note;
}

}  // namespace dedup::store
