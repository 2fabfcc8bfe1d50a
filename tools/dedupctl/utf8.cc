#include "tools/dedupctl/utf8.h"

#include <nlohmann/json.hpp>

namespace dedup::ctl {

std::string as_utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace dedup::ctl
