#include "engine/protocol/kept_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fields.h"
#include "engine/protocol/search.h"
#include "service/messages/homes.h"
#include "store/choose.h"
#include "store/kept.h"
#include "store/real_path.h"

namespace dedup::engine {
namespace {

using Kind = store::PathState::Kind;

// What rank 0 tells all.
struct Asked {
  bool for_generation = false;
  std::string path;  // of the file
  Id128 identity;    // that a placeholder there names
};
struct Found {
  std::string path;  // what is to be opened
  bool is_kept = false;
  KeptFile kept;
};

// `generation`: as the hint has it; of a name what that says.
Result<Asked> what_is_asked(const JobFile& file, std::int64_t& generation,
                            store::PathState& state) {
  Asked asked{generation != 0, file.path, {}};
  if (!asked.for_generation) {
    const auto name = store::parse_kept_path(file.path);
    if (!name) return asked;
    DEDUP_ASSIGN(const store::PathState at_name, store::look_at(file.path));
    if (at_name.kind != Kind::kNothing && at_name.kind != Kind::kNoDirectory) return asked;
    asked = {true, name->path, {}};
    generation = static_cast<std::int64_t>(name->number);
  }
  DEDUP_ASSIGN(state, store::look_at(asked.path));
  asked.identity = state.placeholder.identity;
  return asked;
}

// The file's newest generation.
Result<store::CommitRecord> newest(const Asked& asked, const store::PathState& state,
                                   const SearchResult& found) {
  DEDUP_ASSIGN(const bool shared, is_shared(found, asked.path));
  if (shared && state.kind == Kind::kPlain) {
    store::Choice cached = store::choose_cached(state.stamp, found.reports);
    if (cached.exists) return std::move(cached.record);
  }
  if (shared && state.kind != Kind::kPlaceholder) {
    return Status(
        Code::kNoSuchFile,
        asked.path + (state.kind == Kind::kPlain ? ": is a plain file, which has no generations"
                                                 : ": no such file"));
  }
  auto choice = shared ? store::choose_named(asked.path, state.placeholder, found.reports)
                       : store::choose_generation(asked.path, found.reports);
  DEDUP_TRY(choice.status());
  if (choice->exists) return std::move(choice->record);
  return Status(Code::kNoSuchFile, asked.path + ": no such file in the stores of this job");
}

Result<Found> choose(const Asked& asked, std::int64_t generation,
                     const store::CommitRecord& record) {
  std::vector<store::KeptGeneration> all{{record.number, record.attempt}};
  all.insert(all.end(), record.kept.begin(), record.kept.end());
  const auto before = static_cast<std::uint64_t>(-generation);
  auto wanted = std::find_if(all.begin(), all.end(), [&](const store::KeptGeneration& one) {
    return one.number == static_cast<std::uint64_t>(generation);
  });
  if (generation < 0) {
    wanted = all.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(before, all.size()));
  }
  if (wanted == all.begin()) return Found{asked.path, false, {}};
  if (wanted != all.end()) {
    const Id128 identity = store::kept_identity(record.identity, wanted->attempt);
    return Found{store::kept_path(asked.path, wanted->number),
                 true,
                 {identity, record.identity, wanted->attempt}};
  }
  std::string text;
  for (const store::KeptGeneration& one : all) {
    text += (text.empty() ? "" : ", ") + std::to_string(one.number);
  }
  return Status(Code::kNoSuchFile, asked.path + ": no generation " + std::to_string(generation) +
                                       "; there is: " + text + " (dedup_keep says how many stay)");
}

}  // namespace

Result<std::optional<KeptFile>> find_kept(JobFile& file, bool create) {
  const bool may_be_kept = file.hints.generation != 0 || store::parse_kept_path(file.path);
  if (create || !may_be_kept) return std::optional<KeptFile>();
  Asked asked;
  std::int64_t generation = file.hints.generation;
  store::PathState state;
  Status status;
  if (file.rank() == 0) {
    auto wanted = what_is_asked(file, generation, state);
    status = wanted.status();
    if (status.is_ok()) asked = std::move(*wanted);
  }
  DEDUP_TRY(file.ranks().share(status, asked));
  if (!asked.for_generation) return std::optional<KeptFile>();
  // Rank 0 tells what it finds wrong, also if all have heard of it.
  const auto result =
      search(file.client(), file.ranks(), {asked.path, asked.identity, file.hints.store});
  Found found;
  if (file.rank() == 0) {
    const auto record = result.is_ok() ? newest(asked, state, *result)
                                       : Result<store::CommitRecord>(result.status());
    auto chosen =
        record.is_ok() ? choose(asked, generation, *record) : Result<Found>(record.status());
    status = chosen.status();
    if (status.is_ok()) found = std::move(*chosen);
  }
  DEDUP_TRY(file.ranks().share(status, found));
  file.path = found.path;
  file.home = service::file_home(file.path, file.nodes());
  return found.is_kept ? std::optional<KeptFile>(found.kept) : std::nullopt;
}

}  // namespace dedup::engine
