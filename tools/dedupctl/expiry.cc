#include "tools/dedupctl/expiry.h"

namespace dedup::ctl {

Expired expired(const Expiry& expiry, std::uint64_t now, std::uint64_t newest,
                std::span<const std::uint64_t> kept) {
  const auto is_old = [&](std::uint64_t time) {
    return !expiry.older_than || (time <= now && now - time >= *expiry.older_than);
  };
  Expired out;
  if (!expiry.keep && is_old(newest)) {
    out.whole = true;
    return out;
  }
  for (std::size_t i = kept.size(); i-- > expiry.keep.value_or(0);) {
    if (is_old(kept[i])) out.kept.push_back(i);
  }
  return out;
}

}  // namespace dedup::ctl
