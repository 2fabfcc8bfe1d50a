// dedupctl: looks after the stores. Documented in dedupctl(1).
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/warn.h"
#include "hints/hints.h"
#include "hints/node.h"
#include "tools/dedupctl/closest.h"
#include "tools/dedupctl/duration.h"
#include "tools/dedupctl/in_job.h"
#include "tools/dedupctl/mpi_job.h"
#include "tools/dedupctl/owner.h"
#include "tools/dedupctl/scan.h"
#include "tools/dedupctl/session.h"
#include "tools/dedupctl/stores.h"

namespace {

using dedup::ctl::ExitCode;
using dedup::ctl::Options;
using dedup::ctl::Session;
using Run = std::function<ExitCode(Session&)>;
using RunAlone = std::function<ExitCode(const Options&)>;

constexpr const char* kDescription =
    "Looks after the stores of the dedup: driver: of this host, or under dedup-mpiexec of all "
    "nodes of a job together.";
constexpr const char* kFile = "the file's real path, with or without dedup:, or its identity";

constexpr const char* kAcceptLoss =
    "go on although chunks have no good copy on these nodes, which gives them up";

void add_rm(const auto& add, const auto& add_files, const auto& add_generation, Options& options) {
  CLI::App* command =
      add("rm", "remove files from the stores, and their placeholders", dedup::ctl::rm);
  add_files(command, kFile);
  CLI::Option* nodes =
      command
          ->add_option("--on", options.nodes,
                       "only from these nodes' stores, leaving the rest and the placeholder")
          ->type_name("NODE")
          ->allow_extra_args(false);
  CLI::Option* generation = add_generation(command, "only this older generation, which was kept");
  CLI::Option* keep = command
                          ->add_option("--keep", options.keep,
                                       "only older generations, all but the newest N of them")
                          ->type_name("N")
                          ->check(CLI::NonNegativeNumber);
  CLI::Option* older_than =
      command
          ->add_option("--older-than", options.older_than,
                       "only what was committed at least so long ago: files, or older generations "
                       "of those that stay; 90s, 30m, 12h, 7d")
          ->type_name("AGE")
          ->check([](const std::string& text) {
            return dedup::ctl::parse_age(text)
                       ? std::string()
                       : "must be a whole number with s, m, h or d behind it: 12h";
          });
  for (CLI::Option* rule : {keep, older_than}) rule->excludes(nodes)->excludes(generation);
  command->add_flag("--all", options.all, "with --keep or --older-than: of all files");
  command->add_flag("-n,--dry-run", options.dry_run,
                    "with --keep or --older-than: only say what would be removed");
}

// Those that make files, in the stores or elsewhere, and those that free space.
void add_writing_commands(const auto& add, const auto& add_files, Options& options) {
  const auto add_replication = [&](CLI::App* command, const char* what) {
    command->add_option("--replication", options.replication, what)
        ->type_name("K")
        ->check(CLI::Range(1, 16));
  };
  const auto add_generation = [&](CLI::App* command, const char* what) {
    return command->add_option("--generation", options.generation, what)
        ->type_name("N")
        ->check(CLI::PositiveNumber);
  };
  const auto add_incomplete = [&](CLI::App* command) {
    command->add_flag("--incomplete", options.incomplete,
                      "write zeros where data is lost, in place of failing");
  };

  CLI::App* command = add("heal", "bring every chunk back to K copies on the nodes that are there",
                          dedup::ctl::heal);
  add_files(command, "only these files");
  command->add_flag("--verify", options.verify, "check every chunk first, and replace bad copies");
  command->add_flag("--accept-loss", options.accept_loss, kAcceptLoss);
  add_replication(command, "from now on (default: as the file was committed with)");

  add_files(add("flush", "finish what is to be written back to the files' paths (dedup_flush)",
                dedup::ctl::flush),
            "these, whether that was begun or not");

  add_files(add("evict", "drop from the stores what is at its path as a plain file (dedup_flushed)",
                dedup::ctl::evict),
            "only these");

  command = add("export", "write a file out of the stores as a plain one, or all of them",
                dedup::ctl::export_files);
  command->add_option("FILE", options.first, kFile)->type_name("");
  command->add_option("PATH", options.second, "where to; a directory: under the file's name")
      ->type_name("");
  command->add_flag("--all", options.all,
                    "every file: to its own path in place of its placeholder, or below the "
                    "directory that is given");
  command->add_flag("--force", options.force, "replace what is at PATH");
  add_generation(command, "an older generation, which was kept");
  add_incomplete(command);

  command = add("import", "put a plain file into the stores", dedup::ctl::import_file);
  command->add_option("PATH", options.first, "a plain file")->type_name("")->required();
  command->add_option("FILE", options.second, "its name from then on (default: PATH itself)")
      ->type_name("");
  command->add_flag("--force", options.force, "replace FILE");
  command->add_flag("--cache", options.cache,
                    "leave the plain file where it is, and have it in the stores as well");
  add_replication(command, "(default: DEDUP_REPLICATION, else 2)");
  command
      ->add_option("--redundancy", options.redundancy,
                   "how it is kept (default: DEDUP_REDUNDANCY, else copies)")
      ->type_name("WAY")
      ->check([](const std::string& text) {
        const dedup::hints::Entry& hint = *dedup::hints::find("dedup_redundancy");
        dedup::hints::Hints hints;
        return hint.parse(text, hints) ? std::string() : "must be " + hint.allowed;
      });

  command = add("cat", "write files to standard output", dedup::ctl::cat);
  add_files(command, kFile)->required();
  add_generation(command, "an older generation, which was kept");
  add_incomplete(command);

  add_rm(add, add_files, add_generation, options);

  command = add("gc", "free what nothing refers to any more", dedup::ctl::gc);
  command->add_flag("--unnamed", options.unnamed,
                    "list files whose placeholder is found nowhere, and free those that are named");
  command->add_flag("--yes", options.yes, "with --unnamed: free all that it lists");
  add_files(command, "with --unnamed: free these, by their last path or their identity");
}

std::string check_duration(const std::string& text) {
  return dedup::ctl::parse_duration(text) ? std::string()
                                          : "must be a number with s, m, h or d behind it: 1.5h";
}

void add_report(CLI::App* command, Options& options, const char* what) {
  command->add_option("--report", options.report, what)->type_name("FILE")->envname("DEDUP_REPORT");
}

void add_advise(const auto& add, const auto& add_files, Options& options) {
  CLI::App* command =
      add("advise",
          "say what chunk size, mode and redundancy would do for files, and how often to write one",
          dedup::ctl::advise);
  add_files(command, "a plain file, or one in the stores; of several each is a later step");
  command
      ->add_option("--nodes", options.node_count,
                   "how many nodes write it, each a part (default: 8)")
      ->type_name("N")
      ->check(CLI::Range(1U, dedup::ctl::Scan::kMostNodes));
  CLI::Option* mtbf = command->add_option(
      "--mtbf", options.mtbf, "how long the job runs between two failures, on average: 24h");
  CLI::Option* write =
      command->add_option("--write", options.write, "what writing a checkpoint takes: 12s");
  CLI::Option* restart = command->add_option(
      "--restart", options.restart, "what it takes until the job runs again after a failure");
  for (CLI::Option* one : {mtbf, write, restart}) one->type_name("TIME")->check(check_duration);
  write->needs(mtbf);
  restart->needs(mtbf);
  add_report(command, options,
             "without --write: a file of dedup_report, whose commits say what it takes");
}

void add_top(const auto& add, Options& options) {
  CLI::App* command = add("top", "show what is on each node and how that changes, again and again",
                          dedup::ctl::top);
  command->add_option("--interval", options.interval, "between two looks")
      ->type_name("TIME")
      ->check(check_duration)
      ->capture_default_str();
  command->add_option("--count", options.count, "so many looks (default: until it is ended)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  add_report(command, options, "a file of dedup_report, whose new commits are added up");
}

void add_history(const auto& add, const auto& add_files, Options& options) {
  CLI::App* command = add("report",
                          "show files' history, by a file of dedup_report and what is in the "
                          "stores: a table, or a page with pictures",
                          dedup::ctl::report);
  add_files(command, "only these files");
  command->add_option("--html", options.html, "write a page with pictures there")
      ->type_name("PAGE");
  add_report(command, options, "a file of dedup_report");
}

void add_mount(CLI::App& app, Options& options, RunAlone& run_alone) {
  CLI::App* command =
      app.add_subcommand("mount", "show the files of this host's stores as plain ones, to be read");
  command->add_option("DIR", options.path, "an empty directory")->type_name("")->required();
  command->add_flag("-f,--foreground", options.foreground,
                    "stay until it is taken down, or SIGTERM or Ctrl-C comes");
  command->add_option("--log", options.log, "where messages go from then on")->type_name("FILE");
  command->add_flag("--allow-other", options.allow_other,
                    "other users may read, too, what its permissions let them");
  // As tools/mount_in_job.c starts it.
  command->add_option("--for-job", options.job)->group("");
  command->callback([&run_alone] { run_alone = dedup::ctl::mount; });
  command = app.add_subcommand("umount", "take down what mount has put up");
  command->add_option("DIR", options.path, "the directory")->type_name("")->required();
  command->callback([&run_alone] { run_alone = dedup::ctl::umount; });
}

// The subcommands and their options. What is chosen is in `run` or `run_alone` after parsing.
void describe(CLI::App& app, Options& options, Run& run, RunAlone& run_alone) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("dedupctl ") + PACKAGE_VERSION);
  app.fallthrough();
  app.add_option("--store", options.stores,
                 "a store, or a directory with a store for each node; several times for several "
                 "nodes' stores (default: DEDUP_STORE, else /tmp/dedup-UID)")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--search", options.search,
                 "look below this directory, too, for placeholders that were moved")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_flag("--json", options.json, "answer in JSON");
  app.add_flag("-q,--quiet", options.quiet, "no progress bars");
  app.add_flag("--progress", options.progress,
               "progress bars also where standard error is no terminal");

  const auto add = [&](const char* name, const char* what, auto* function) {
    CLI::App* command = app.add_subcommand(name, what);
    command->callback([&run, function] { run = function; });
    return command;
  };
  const auto add_files = [&](CLI::App* command, const char* what) {
    return command->add_option("FILE", options.files, what)->type_name("");
  };
  CLI::App* command = add(
      "ls", "list the files: generations, sizes, copies, nodes, what is missing", dedup::ctl::ls);
  add_files(command, "only these");
  command->add_flag("--generations", options.generations, "and older generations that are kept");
  command =
      add("df", "show how much is in each store, and how full its file system is", dedup::ctl::df);
  // Hands that know df(1) type it.
  command->set_help_flag("--help", "Print this help message and exit");
  command->add_flag("-h,--human-readable")->description("sizes with units, as also without it");
  command = add("stat", "show what a file consists of, and each node's load", dedup::ctl::stat);
  add_files(command, kFile);
  command->add_flag("--prometheus", options.prometheus,
                    "figures of all stores, or of the files, for node_exporter's textfile "
                    "collector");
  add_files(add("explain", "say why files deduplicate well or badly, and what to do about it",
                dedup::ctl::explain),
            kFile)
      ->required();
  add_advise(add, add_files, options);
  add_top(add, options);
  add_history(add, add_files, options);
  command =
      add("check",
          "compare every chunk with its fingerprint, every recipe with its record, and the number "
          "of copies with K",
          dedup::ctl::check);
  add_files(command, "only these files");
  command->add_flag("--repair", options.repair,
                    "replace bad copies by good ones, and bring every chunk back to K copies");
  command->add_flag("--accept-loss", options.accept_loss, kAcceptLoss);
  add_writing_commands(add, add_files, options);
  add_mount(app, options, run_alone);
}

// What the positional arguments of `export` and `import` mean.
void sort_arguments(const CLI::App& app, Options& options) {
  if (app.got_subcommand("import")) {
    options.path = options.first;
    if (!options.second.empty()) options.files = {options.second};
  } else if (app.got_subcommand("export")) {
    options.path = options.all ? options.first : options.second;
    if (!options.all && !options.first.empty()) options.files = {options.first};
  }
}

bool takes_driver(const CLI::App& app, const Options& options) {
  return app.got_subcommand("heal") || app.got_subcommand("import") ||
         app.got_subcommand("flush") || (app.got_subcommand("check") && options.repair);
}

bool is_first_rank() {
  const char* rank = std::getenv("PMI_RANK");
  return rank == nullptr || std::string(rank) == "0";
}

// What stands where a command should, if that is what is wrong; else empty.
std::string unknown_command(const CLI::App& app) {
  if (!app.get_subcommands().empty()) return {};
  const std::vector<std::string> words = app.remaining();
  const bool is_command = !words.empty() && !words.front().starts_with('-');
  return is_command ? words.front() : std::string();
}

std::string text_of_unknown(const CLI::App& app, const std::string& command) {
  std::vector<std::string> known;
  for (const CLI::App* const one : app.get_subcommands({})) known.push_back(one->get_name());
  const std::string meant = dedup::ctl::closest(command, known);
  return "there is no command " + command + "; " +
         (meant.empty() ? "dedupctl --help shows all of them" : "did you mean " + meant + "?");
}

// On rank 0: what was asked for, help or the version, or what is wrong with the arguments.
ExitCode answer(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_error = error.get_exit_code() != 0;
  const std::string unknown = is_error ? unknown_command(app) : std::string();
  if (is_first_rank() && !unknown.empty()) dedup::say_error(text_of_unknown(app, unknown));
  if (is_first_rank() && unknown.empty()) app.exit(error, std::cout, std::cerr);
  return is_error ? dedup::ctl::kUsage : dedup::ctl::kFine;
}

ExitCode failed(const dedup::Status& status, bool is_told = true) {
  if (is_told) dedup::say_error(status.message());
  return status.code() == dedup::Code::kArgument     ? dedup::ctl::kUsage
         : status.code() == dedup::Code::kNoSuchFile ? dedup::ctl::kNoStore
                                                     : dedup::ctl::kFailed;
}

// The node that this process is on. In a job the driver is told where its store is.
dedup::Result<std::string> find_node(const dedup::Ranks& ranks, const Options& options,
                                     bool in_job) {
  if (!in_job) return dedup::hints::node_of_process();
  DEDUP_ASSIGN(const std::string node, dedup::hints::node_of_rank(ranks.rank(), ranks.size()));
  DEDUP_TRY(dedup::ctl::set_store_for_driver(options, node));
  return node;
}

// All ranks end with rank 0's code. `takes_away`: data or names, so that what is there must be
// settled.
ExitCode run_together(const dedup::Ranks& ranks, const Options& options, const Run& run,
                      bool in_job, bool takes_away) {
  const dedup::Result<std::string> node = find_node(ranks, options, in_job);
  const dedup::Status found = ranks.agree(node.status());
  if (!found.is_ok()) return failed(found, ranks.is_root());
  if (in_job) dedup::set_speaker("rank " + std::to_string(ranks.rank()) + " on " + *node);
  Session session{{ranks, {}, {}}, options, {}};
  session.look_again = [&] {
    session.local = dedup::ctl::open_stores(options.stores, *node, in_job);
    session.catalog = make_catalog(ranks, session.local, options.search, takes_away);
  };
  session.look_again();
  std::uint64_t code = session.is_root() ? static_cast<std::uint64_t>(run(session))
                                         : (run(session), std::uint64_t{0});
  ranks.sum({&code, 1});
  return static_cast<ExitCode>(code);
}

ExitCode run_in_mpi(const Options& options, const Run& run, bool takes_away) {
  const dedup::ctl::MpiJob job;
  return run_together(job.ranks(), options, run, true, takes_away);
}

}  // namespace

int main(int argc, char** argv) {
  dedup::set_program("dedupctl");
  CLI::App app(kDescription, "dedupctl");
  Options options;
  Run run;
  RunAlone run_alone;
  describe(app, options, run, run_alone);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return answer(app, e);
  }
  const bool in_job = dedup::ctl::is_mpi_rank();
  if (!in_job) {
    const auto directories =
        dedup::ctl::store_directories(options.stores, dedup::hints::node_of_process());
    const dedup::Status status = dedup::ctl::become_owner(directories);
    if (!status.is_ok()) return failed(status);
  }
  if (run_alone) return run_alone(options);
  sort_arguments(app, options);
  if (!in_job && takes_driver(app, options)) {
    return failed(dedup::ctl::run_in_job(options, {argv + 1, argv + argc}));
  }
  const bool takes_away =
      (app.got_subcommand("rm") && !options.dry_run) || app.got_subcommand("gc");
  const ExitCode code = in_job ? run_in_mpi(options, run, takes_away)
                               : run_together(dedup::OneRank(), options, run, false, takes_away);
  return std::fflush(stdout) == 0 ? code : dedup::ctl::kFailed;
}
