#include "base/store_place.h"

namespace dedup {

std::string StorePlace::text() const {
  std::string text;
  for (const StoreTier& tier : tiers_) {
    if (!text.empty()) text += ':';
    for (const char c : tier.directory) {
      if (c == '%' || c == ':' || c == '=') text += '%';
      text += c;
    }
    if (tier.limit) text += '=' + std::to_string(*tier.limit);
  }
  return text;
}

}  // namespace dedup
