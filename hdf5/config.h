// HDF5_DRIVER_CONFIG, or the text that a program gives with the driver's name.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dedup::hdf5 {

// name=value, separated by semicolons; blanks around either do not count.
struct Config {
  std::vector<std::pair<std::string, std::string>> hints;  // the engine judges them
  // job=world: the ranks of MPI_COMM_WORLD become one job with the first file of each, together.
  bool is_job_of_world = false;
};

// Throws std::invalid_argument with what is wrong and what to do.
Config parse_config(std::string_view text);

}  // namespace dedup::hdf5
