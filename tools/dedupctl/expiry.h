// Which generations of a file rm removes since they are too many or too old.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dedup::ctl {

struct Expiry {
  std::optional<std::uint64_t> keep{};        // older generations that stay: the newest of them
  std::optional<std::uint64_t> older_than{};  // seconds

  bool is_given() const { return keep || older_than; }
};

struct Expired {
  bool whole = false;             // the file, with all that it keeps
  std::vector<std::size_t> kept;  // else these of its older generations, the oldest first

  bool operator==(const Expired&) const = default;
};

// What goes of a file whose newest generation was committed at `newest` and whose older ones, the
// newest first, at `kept`; all in seconds since 1970. With `keep` the file itself stays; with both,
// what is too many and too old goes. What was committed after `now`, by another node's clock, is
// not old.
Expired expired(const Expiry& expiry, std::uint64_t now, std::uint64_t newest,
                std::span<const std::uint64_t> kept);

}  // namespace dedup::ctl
