#include "engine/tell.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "base/text.h"
#include "base/warn.h"
#include "plan/advice.h"

namespace dedup::engine {
namespace {

constexpr std::uint64_t kWorthAdvice = std::uint64_t{64} << 10;
// Of what rank 0 writes between two commits: enough to know it, and some tenth of a second's work.
constexpr std::uint64_t kSampledBytes = std::uint64_t{16} << 20;

bool is_to_tell(const FileHandle& file) {
  return file.rank() == 0 && file.hints.log == hints::Log::kInfo;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", seconds);
  return text;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  const double share = static_cast<double>(part) / static_cast<double>(whole);
  return std::to_string(std::lround(100 * share)) + " %";
}

// "8 ranks", "1 node".
std::string count(std::uint64_t number, const std::string& one) {
  return std::to_string(number) + " " + one + (number == 1 ? "" : "s");
}

std::string what_is_open(const FileHandle& file) {
  const auto view = file.view();
  if (view->committed) {
    const store::CommitRecord& record = view->committed->record;
    const bool is_cached = view->info.real_path == service::FileInfo::RealPath::kPlain;
    return "generation " + std::to_string(record.number) + ", " + human(record.size) +
           (is_cached ? ", cached (it is at its path, too)" : "");
  }
  if (file.plain) return "a plain file of " + human(view->info.plain.size);
  if (view->donor) return "new, shares with " + view->donor->record.path;
  return "new";
}

// As it will be committed.
std::string how_it_is_kept(const FileHandle& file) {
  const hints::Hints& hints = file.hints;
  std::string text = "; chunks of " + human(hints.chunk_size) + ", ";
  if (hints.stripe_parities != 0) {
    text += "stripes " + hints::find("dedup_redundancy")->print(hints);
  } else {
    text += "each on " + count(file.wanted_copies(), "node");
  }
  return text + ", mode " + hints::find("dedup_mode")->print(hints);
}

// What became of what all ranks wrote. Bytes.
struct Found {
  Found(const LastCommit& last, const FileHandle& file)
      : written(last.total("bytes_written")),
        data(written - last.total("bytes_zero")),
        by_ranks(data - last.total("bytes_unique_local")),
        before(last.total("bytes_stored_before")) {
    // Copies: each new chunk was stored on as many nodes, whether these had it or were sent it.
    const std::uint64_t different = file.hints.stripe_parities != 0
                                        ? last.total("bytes_unique_collective")
                                        : last.total("bytes_stored") / file.keeping().copies;
    const std::uint64_t found = by_ranks + before + different;
    together = data - std::min(data, found);
  }

  std::uint64_t written;
  std::uint64_t data;          // without zeros
  std::uint64_t by_ranks;      // equal to something else of the same rank
  std::uint64_t before;        // of the rest: in its node's store already
  std::uint64_t together = 0;  // of the rest: other ranks have it, too
};

std::string shares(const Found& found) {
  if (found.data == 0) return ", all zeros";
  return ": " + percent(found.written - found.data, found.written) + " zeros, of the rest " +
         percent(found.by_ranks, found.data) + " found by each rank alone, " +
         percent(found.together, found.data) + " by all together, " +
         percent(found.before, found.data) + " stored before";
}

void tell_why_little_was_found(const FileHandle& file, const Found& found) {
  plan::Findings findings;
  findings.is_compared = file.hints.mode != hints::Mode::kNone;
  findings.in_stripes = file.hints.stripe_parities != 0;
  findings.chunk_size = file.hints.chunk_size;
  findings.data_bytes = found.data;
  findings.unique_bytes = found.data - found.by_ranks - found.before - found.together;
  if (plan::found_share(findings) >= plan::kFewFound || !file.sample) return;
  findings.sample = file.sample->data.figures();
  if (file.sample->pieces > 0) findings.piece_bytes = file.sample->bytes / file.sample->pieces;
  // Of rank 0's data alone; dedupctl looks at all ranks'.
  inform(file.path + ": little was found: " + plan::advice(findings).front() +
         " (By a sample of what rank 0 wrote; dedupctl explain looks at the whole file.)");
}

}  // namespace

void tell_of_open(const FileHandle& file, double seconds) {
  if (!is_to_tell(file)) return;
  const auto ranks = static_cast<std::uint64_t>(file.topology.size());
  inform(file.path + ": opened to " + (file.writable ? "be written" : "be read") + " by " +
         count(ranks, "rank") + " on " + count(file.topology.nodes().size(), "node") + ": " +
         what_is_open(file) + (file.writable ? how_it_is_kept(file) : "") + "; " +
         seconds_text(seconds));
}

void take_sample(FileHandle& file, std::span<const DumpRun> runs) {
  if (!is_to_tell(file)) return;
  if (!file.sample) file.sample.emplace(file.hints.chunk_size);
  WrittenSample& sample = *file.sample;
  for (const DumpRun& run : runs) {
    if (sample.bytes >= kSampledBytes) return;
    const std::uint64_t some = std::min(run.length, kSampledBytes - sample.bytes);
    sample.data.add_written({run.data, some});
    sample.bytes += some;
    ++sample.pieces;
  }
}

void tell_of_commit(FileHandle& file) {
  if (!is_to_tell(file)) return;
  const LastCommit& last = file.last;
  const Found found(last, file);
  std::string text =
      file.path + ": committed generation " + std::to_string(last.generation) + ": " +
      human(found.written) + " written" + (found.written == 0 ? "" : shares(found)) + "; " +
      human(last.total("bytes_stored")) + " stored, " + human(last.total("bytes_sent")) + " sent";
  if (last.copies_made > 0) text += ", " + count(last.copies_made, "chunk") + " copied again";
  inform(text + "; " + seconds_text(last.figure("seconds_writing").max));
  if (found.data >= kWorthAdvice) tell_why_little_was_found(file, found);
  file.sample.reset();
}

}  // namespace dedup::engine
