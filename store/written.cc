#include "store/written.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/byte_ranges.h"
#include "base/piece.h"
#include "store/format.h"

namespace dedup::store {

bool WrittenPart::possible() const {
  return std::all_of(ranges.begin(), ranges.end(), [](const ByteRange& range) {
    return range.length <= kMaxOffset && range.offset <= kMaxOffset - range.length;
  });
}

Bytes WrittenPart::encode(const Id128& attempt) const {
  Encoder out;
  format::put_start(out, format::kWritten);
  out.put(attempt);
  out.put(writer);
  out.put(copy);
  out.put(static_cast<std::uint32_t>(ranges.size()));
  for (const ByteRange& range : ranges) {
    out.put(range.offset);
    out.put(range.length);
  }
  out.put(std::string_view(trouble));
  format::put_checksum(out);
  return out.take();
}

Result<WrittenPart> WrittenPart::decode(std::span<const std::byte> bytes, const Id128& attempt,
                                        const std::string& what) {
  Decoder start(bytes);
  DEDUP_TRY(format::check_start(start, format::kWritten, what));
  if (!format::take_checksum(bytes) || bytes.size() < format::kStartSize) {
    return format::corrupt(what, "damaged: its checksum does not hold");
  }
  Decoder in(bytes.subspan(format::kStartSize));
  const bool is_same = in.get_id() == attempt;
  WrittenPart part;
  part.writer = in.get<std::uint32_t>();
  part.copy = in.get_id();
  part.ranges.resize(in.get_count(2 * sizeof(std::uint64_t)));
  for (ByteRange& range : part.ranges) {
    range.offset = in.get<std::uint64_t>();
    range.length = in.get<std::uint64_t>();
  }
  part.trouble = in.get_string();
  if (!in.ok() || !in.at_end()) return format::corrupt(what, "damaged");
  if (!is_same) return format::corrupt(what, "written part of another generation");
  if (!part.possible()) return format::corrupt(what, "a range that no file has");
  return part;
}

std::vector<WrittenCopy> by_copy(std::span<const WrittenPart> parts) {
  std::map<Id128, WrittenCopy> copies;
  for (const WrittenPart& part : parts) {
    WrittenCopy& copy = copies[part.copy];
    copy.ranges.insert(copy.ranges.end(), part.ranges.begin(), part.ranges.end());
    if (copy.trouble.empty()) copy.trouble = part.trouble;
    copy.is_untouched = copy.is_untouched || part.writer == WrittenPart::kNobody;
  }
  std::vector<WrittenCopy> out;
  for (auto& [id, copy] : copies) {
    copy.copy = id;
    copy.ranges = joined(std::move(copy.ranges));
    copy.bytes = bytes_of(copy.ranges);
    out.push_back(std::move(copy));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const WrittenCopy& a, const WrittenCopy& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace dedup::store
