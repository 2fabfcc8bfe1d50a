#include "tools/dedupctl/select.h"

#include "tools/dedupctl/output.h"

namespace dedup::ctl {
namespace {

// Where the placeholder is that the user means, if it is one.
std::string found_at(const Catalog& catalog, const std::string& name, const FileRow& row) {
  const std::string path = absolute_path(without_prefix(name));
  const auto state = store::look_at(path);
  const bool is_its = state.is_ok() && state->kind == store::PathState::Kind::kPlaceholder &&
                      !state->is_copy() && state->placeholder.identity == row.identity;
  return is_its ? path : catalog.place_of(row);
}

}  // namespace

ExitCode worse(ExitCode a, ExitCode b) {
  if (a == kFine) return b;
  return a == kProblems && b != kFine ? b : a;
}

ExitCode for_each_file(
    Session& session, const std::vector<std::string>& names,
    const std::function<ExitCode(const FileRow* file, const std::string& path)>& visit) {
  ExitCode code = kFine;
  std::vector<std::pair<const FileRow*, std::string>> rows;
  if (session.is_root()) {
    code = session.code_of_stores();
    print_troubles(session);
    const auto add = [&](const FileRow& row, const std::string& path) {
      if (row.exists()) {
        rows.emplace_back(&row, path);
      } else if (!row.deleted && row.chosen_status.code() != Code::kNotFound) {
        code = worse(code, fail(session, row.chosen_status));
      }
    };
    for (const std::string& name : names) {
      const auto found = session.catalog.find(name, session.options.generation);
      if (!found.is_ok()) {
        code = worse(code, fail(session, found.status()));
      } else if ((*found)->chosen_status.code() == Code::kNotFound) {
        code = worse(code, fail(session, (*found)->chosen_status));
      } else {
        add(**found, found_at(session.catalog, name, **found));
      }
    }
    if (names.empty()) {
      for (const FileRow& row : session.catalog.files) add(row, session.catalog.place_of(row));
    }
  }
  std::uint64_t count = rows.size();
  session.ranks.sum({&count, 1});
  for (std::uint64_t i = 0; i < count; ++i) {
    code =
        worse(code, session.is_root() ? visit(rows[i].first, rows[i].second) : visit(nullptr, {}));
  }
  return code;
}

ExitCode for_each_file(
    Session& session,
    const std::function<ExitCode(const FileRow* file, const std::string& path)>& visit) {
  return for_each_file(session, session.options.files, visit);
}

}  // namespace dedup::ctl
