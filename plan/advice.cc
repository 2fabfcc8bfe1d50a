#include "plan/advice.h"

#include <algorithm>
#include <cmath>

namespace dedup::plan {
namespace {

// Shares of the data.
constexpr double kWorthHalving = 0.05;  // found more by halves, which cost twice the metadata
constexpr double kWorthMoving = 0.10;   // found more wherever it begins
constexpr double kMostlyDense = 0.5;
constexpr double kMany = 0.5;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * share)) + " %";
}

}  // namespace

double found_share(const Findings& findings) {
  return findings.data_bytes == 0
             ? 0
             : 1 - std::min(1.0, share(findings.unique_bytes, findings.data_bytes));
}

std::vector<std::string> advice_on_content(const Findings& findings) {
  const SampleFigures& sample = findings.sample;
  const double as_cut = share(sample.as_cut, sample.bytes);
  const double halves = share(sample.in_halves, sample.bytes);
  const double anywhere = share(sample.anywhere, sample.bytes);
  std::vector<std::string> out;
  if (anywhere - std::max(as_cut, halves) >= kWorthMoving) {
    out.push_back(
        "Equal data begins at different places in its chunks: " + percent(anywhere) +
        " of the sample would be found at any place, " + percent(as_cut) +
        " is as it is cut. Chunks are cut from where each contiguous piece of a rank's write "
        "begins: let equal data begin a piece (an array for each write, headers and what differs "
        "in length apart, in HDF5 a dataset for each array); where it stands in the file "
        "(H5Pset_alignment) does not matter.");
  }
  const bool is_dense = share(sample.dense, sample.bytes) >= kMostlyDense;
  if (is_dense && found_share(findings) < kMany) {
    out.push_back(
        "Most of it looks compressed or encrypted, which hides what is equal: leave that out "
        "(H5Pset_deflate, szip and other filters). If it is neither, its numbers are noise in all "
        "of their bits.");
  }
  return out;
}

std::vector<std::string> advice(const Findings& findings) {
  const SampleFigures& sample = findings.sample;
  if (findings.data_bytes == 0) return {"It is zeros only, which take no space: nothing to do."};
  const double as_cut = share(sample.as_cut, sample.bytes);
  const double halves = share(sample.in_halves, sample.bytes);
  const double duplicates = found_share(findings);
  std::vector<std::string> out;
  if (!findings.is_compared && as_cut >= kFewFound) {
    out.push_back("It was written with dedup_mode=none, which compares nothing: without that, " +
                  percent(as_cut) + " of the sample would be found.");
  }
  if (findings.piece_bytes > 0 && findings.piece_bytes < findings.chunk_size) {
    out.push_back("It is written in pieces of " + std::to_string(findings.piece_bytes) +
                  " bytes, and a chunk is never longer than its piece: write larger ones, from one "
                  "buffer, or collectively.");
  }
  const bool has_halves = findings.chunk_size / 2 >= kMinChunkSize;
  const bool is_worth_halving = has_halves && halves - as_cut >= kWorthHalving;
  if (is_worth_halving) {
    out.push_back("Chunks are too large for it: dedup_chunk_size=" +
                  std::to_string(findings.chunk_size / 2) + " would find " + percent(halves) +
                  " of the sample instead of " + percent(as_cut) + ", or try a still smaller one.");
  }
  for (std::string& sentence : advice_on_content(findings)) out.push_back(std::move(sentence));
  if (!out.empty()) return out;
  if (duplicates >= kFewFound) {
    return {"It deduplicates as well as it can at this chunk size or half of it: " +
            percent(duplicates) + " of its data is duplicates. Nothing to do."};
  }
  std::string text =
      "Its data is different everywhere, at any alignment: no setting will find much. A larger "
      "dedup_chunk_size takes less metadata";
  if (!findings.in_stripes) text += ", and stripes (dedup_redundancy=rs:8+2) less than copies";
  return {text + "."};
}

}  // namespace dedup::plan
