// explain: why a file deduplicates well or badly, and what to do about it.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plan/advice.h"
#include "plan/sample.h"
#include "tools/dedupctl/content.h"
#include "tools/dedupctl/holding.h"
#include "tools/dedupctl/output.h"
#include "tools/dedupctl/progress.h"
#include "tools/dedupctl/repetition.h"
#include "tools/dedupctl/select.h"
#include "tools/dedupctl/session.h"

namespace dedup::ctl {
namespace {

// What is found of one file; on rank 0.
struct Explanation {
  plan::Findings findings;
  std::uint64_t references = 0;
  ChunkCount unique;
  std::vector<ChunkCount> on_nodes;  // of chunks in copies: by how many nodes have them
  std::uint64_t in_stripes = 0;      // bytes of the different chunks that are in stripes
  std::vector<Repetition::Row> repetition;
  std::uint64_t left_out = 0;  // blocks of the sample that cannot be read as a whole
};

// Collective. Reads the recipe, indexes, and a sample of the chunks.
Result<Explanation> explain_generation(const Session& session, Generation& generation) {
  const store::CommitRecord& record = generation.record();
  DEDUP_ASSIGN(const Holding holding, measure(generation, generation.wanted()));
  const bool is_root = generation.ranks().is_root();
  const std::uint64_t blocks = (record.size + kBlockSpan - 1) / kBlockSpan;
  Explanation out;
  Repetition repetition;
  plan::Sample sample(record.chunk_size);
  Progress progress(session, record.path, record.size);
  DEDUP_TRY(generation.walk([&](std::span<const NumberedBlock> some) -> Status {
    for (const NumberedBlock& block : some) {
      progress.add(kBlockSpan);
      for (const Piece& piece : block.block.pieces) {
        if (is_root && !piece.is_zero()) repetition.add(piece);
      }
      if (!plan::is_sampled(block.number, blocks)) continue;
      const ReadBlock read = read_block(generation, block);
      if (read.lost_bytes > 0) {
        ++out.left_out;
      } else if (is_root) {
        sample.add(block.block, read.content);
      }
    }
    return Status::ok();
  }));
  out.findings.is_compared = record.fingerprint != "none";
  out.findings.in_stripes = record.stripes.parities > 0;
  out.findings.chunk_size = record.chunk_size;
  out.findings.data_bytes = holding.tally.data_bytes();
  out.findings.unique_bytes = holding.unique().bytes;
  out.findings.sample = sample.figures();
  out.references = holding.tally.references();
  out.unique = holding.unique();
  out.on_nodes = holding.of_copies;
  for (const ChunkCount& count : holding.in_stripes) out.in_stripes += count.bytes;
  out.repetition = repetition.rows();
  return out;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  const double share = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{:.1f} %", 100 * share);
}

std::uint64_t duplicates_of(const plan::Findings& findings) {
  return findings.data_bytes - std::min(findings.data_bytes, findings.unique_bytes);
}

Json json_of(const Session& session, const FileRow& file, const Explanation& explanation) {
  const plan::Findings& findings = explanation.findings;
  const plan::SampleFigures& sample = findings.sample;
  Json repetition = Json::array();
  for (const Repetition::Row& row : explanation.repetition) {
    repetition.push_back({{"least", row.least}, {"most", row.most}, {"share", row.share}});
  }
  Json on_nodes = Json::array();
  for (std::size_t n = 1; n < explanation.on_nodes.size(); ++n) {
    const ChunkCount& count = explanation.on_nodes[n];
    if (count.chunks == 0) continue;
    on_nodes.push_back({{"nodes", n}, {"chunks", count.chunks}, {"bytes", count.bytes}});
  }
  Json out = json_of(session, file);
  out["data_bytes"] = findings.data_bytes;
  out["zero_bytes"] = file.record().size - findings.data_bytes;
  out["duplicate_bytes"] = duplicates_of(findings);
  out["references"] = explanation.references;
  out["unique_chunks"] = explanation.unique.chunks;
  out["occurrences"] = std::move(repetition);
  out["on_nodes"] = std::move(on_nodes);
  out["in_stripes_bytes"] = explanation.in_stripes;
  out["sample"] = {{"blocks", sample.blocks},
                   {"left_out", explanation.left_out},
                   {"bytes", sample.bytes},
                   {"found_bytes", sample.as_cut},
                   {"found_in_halves_bytes", sample.in_halves},
                   {"found_by_content_bytes", sample.anywhere},
                   {"dense_bytes", sample.dense}};
  out["advice"] = plan::advice(findings);
  return out;
}

std::string text_of_repetition(const std::vector<Repetition::Row>& rows) {
  std::string text;
  for (const Repetition::Row& row : rows) {
    const std::string times = row.least == row.most ? std::to_string(row.most)
                                                    : fmt::format("{} to {}", row.least, row.most);
    text += fmt::format("{}{:.1f} % occurs {} time{}", text.empty() ? "" : ", ", 100 * row.share,
                        times, row.most == 1 ? "" : "s");
  }
  return text;
}

std::string text_of_nodes(const Explanation& explanation) {
  std::string text;
  for (std::size_t n = 1; n < explanation.on_nodes.size(); ++n) {
    const std::uint64_t bytes = explanation.on_nodes[n].bytes;
    if (bytes == 0) continue;
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ",
                        percent(bytes, explanation.unique.bytes), n);
  }
  if (explanation.in_stripes > 0) {
    text += fmt::format("{}{} in stripes", text.empty() ? "" : ", ",
                        percent(explanation.in_stripes, explanation.unique.bytes));
  }
  return text;
}

std::string text_of(const FileRow& file, const std::string& path, const Explanation& explanation) {
  const store::CommitRecord& record = file.record();
  const plan::Findings& findings = explanation.findings;
  const plan::SampleFigures& sample = findings.sample;
  std::string out = printable(path) + "\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    out += fmt::format("  {:<14} {}\n", name, value);
  };
  line("zeros", fmt::format("{} of {}", percent(record.size - findings.data_bytes, record.size),
                            human(record.size)));
  line("data", fmt::format("{} in {} pieces, chunks of at most {}", human(findings.data_bytes),
                           explanation.references, human(record.chunk_size)));
  line("duplicates", fmt::format("{} of the data: {} chunks are different, {}",
                                 percent(duplicates_of(findings), findings.data_bytes),
                                 explanation.unique.chunks, human(findings.unique_bytes)));
  if (!explanation.repetition.empty()) {
    line("occurrences", text_of_repetition(explanation.repetition));
  }
  if (const std::string nodes = text_of_nodes(explanation); !nodes.empty()) {
    line("nodes", fmt::format("of the different chunks {}; {} nodes wanted, where duplicates are "
                              "on fewer copies are made, or stripes",
                              nodes, record.replication));
  }
  if (sample.bytes > 0) {
    line("sample", fmt::format("{} in {} blocks of {}, of which there are duplicates:",
                               human(sample.bytes), sample.blocks, human(kBlockSpan)));
    line("  as it is cut", percent(sample.as_cut, sample.bytes));
    if (sample.in_halves > 0) line("  in halves", percent(sample.in_halves, sample.bytes));
    line("  by content", percent(sample.anywhere, sample.bytes));
    line("  dense", percent(sample.dense, sample.bytes) + " is, or looks, compressed or encrypted");
  }
  if (explanation.left_out > 0) {
    line("  left out",
         fmt::format("{} blocks, of which the stores here lack something", explanation.left_out));
  }
  out += "  what to do\n";
  for (const std::string& sentence : plan::advice(findings)) out += "  - " + sentence + "\n";
  return out;
}

}  // namespace

ExitCode explain(Session& session) {
  Json files = Json::array();
  std::string text;
  const ExitCode code =
      for_each_file(session, [&](const FileRow* file, const std::string& path) -> ExitCode {
        const auto generation =
            Generation::open(session.ranks, session.local, session.catalog, file);
        if (!generation.is_ok()) return fail(session, generation.status());
        const auto explanation = explain_generation(session, **generation);
        if (!explanation.is_ok()) return fail(session, explanation.status());
        if (!session.is_root()) return kFine;
        if (session.options.json) {
          files.push_back(json_of(session, *file, *explanation));
        } else {
          text += (text.empty() ? "" : "\n") + text_of(*file, path, *explanation);
        }
        return explanation->left_out > 0 ? kProblems : kFine;
      });
  if (session.is_root()) print_files(session, "explain", std::move(files), text);
  return code;
}

}  // namespace dedup::ctl
