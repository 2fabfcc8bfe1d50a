#include "hdf5/config.h"

#include <algorithm>
#include <stdexcept>

namespace dedup::hdf5 {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

}  // namespace

Config parse_config(std::string_view text) {
  Config config;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    const std::string_view pair = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      throw std::invalid_argument("HDF5_DRIVER_CONFIG: \"" + std::string(pair) +
                                  "\" has no =: write name=value;name=value, as in "
                                  "dedup_store=/local/me;dedup_replication=2");
    }
    const std::string_view name = trimmed(pair.substr(0, equals));
    const std::string_view value = trimmed(pair.substr(equals + 1));
    if (name == "job") {
      if (value != "world" && value != "file") {
        throw std::invalid_argument("HDF5_DRIVER_CONFIG: job=" + std::string(value) +
                                    ": it is world or file");
      }
      config.is_job_of_world = value == "world";
    } else {
      config.hints.emplace_back(name, value);
    }
  }
  return config;
}

}  // namespace dedup::hdf5
